/* filter_table.h - which system calls a guest may make: the table the seccomp filter is generated from. */
#pragma once

#include <stddef.h>

#include <seccomp.h>

/* A call in no group and no condition does not exist for a guest: ENOSYS, which is what libraries fall back on. */
enum filter_action {
	FILTER_ALLOW,
	FILTER_REFUSE, /* EPERM: a call that a kernel of this age has, and that a guest may not make */
	FILTER_IGNORE, /* 0, and nothing is done: for what is so already, and what programs treat as fatal when it fails */
};

enum { FILTER_ARGS_MAX = 3 };

/* Calls that are treated alike whatever their arguments are, and why. `calls` ends with NULL. */
struct filter_group {
	enum filter_action action;
	const char *reason;
	const char *const *calls;
};

/* One case of a call, told by its arguments. Conditions are tried before the groups; a call that meets none of its
 * conditions is judged by its group. The conditions of one call never overlap. */
struct filter_condition {
	enum filter_action action;
	const char *call;
	unsigned int arg_count;
	struct scmp_arg_cmp args[FILTER_ARGS_MAX];
};

extern const struct filter_group filter_groups[];
extern const size_t filter_group_count;

extern const struct filter_condition filter_conditions[];
extern const size_t filter_condition_count;
