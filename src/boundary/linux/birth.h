/* birth.h - a child that does little and then executes another program, without a copy of its parent's memory. */
#pragma once

#include <linux/sched.h>
#include <stddef.h>
#include <sys/types.h>

enum { BIRTH_STACK_BYTES = 32 * 1024 };

/* clone3(2) with CLONE_VM and CLONE_VFORK: the child runs `child` in the caller's memory, on a stack of its own, while the caller stands
 * still until it has executed or exited. So it must do nothing but system calls that are async-signal-safe, write nothing that the caller
 * does not expect, and must not return. args->stack is filled in. The child's pid, or -errno. */
pid_t birth(struct clone_args *args, void (*child)(const void *context), const void *context);
