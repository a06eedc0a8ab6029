/* fuzz_plan.c - a plan is accepted in its canonical form only. */
#include "fuzz.h"

#include <string.h>

#include "manifest/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	PLAN_AUTO struct plan *plan = NULL;

	if (plan_parse((const char *)data, size, &plan, NULL) != 0)
		return 0;
	HOLDS(plan->canonical_length == size && memcmp(plan->canonical, data, size) == 0);
	return 0;
}
