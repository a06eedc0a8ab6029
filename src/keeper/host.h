/* host.h - the facts of this host that the plan compiler needs. */
#pragma once

#include "base/error.h"
#include "manifest/plan.h"

int host_facts(struct plan_host *ret, struct err *err);
