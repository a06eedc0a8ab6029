/* birth.c - clone3 in the manner of vfork(2). The C library has no function for it, and a raw system call would return twice on one stack.
 *
 * Copying the page tables of the worker, and the pages that both then write to, is a third of what a clone with new namespaces takes. */
#include "boundary/linux/birth.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* AddressSanitizer keeps account of one stack a thread: there the child gets a copy, and the stack that it knows. */
#ifdef __SANITIZE_ADDRESS__
pid_t birth(struct clone_args *args, void (*child)(const void *context), const void *context)
{
	long pid = syscall(SYS_clone3, args, sizeof(*args));
	if (pid == 0)
		child(context);
	return pid < 0 ? -errno : (pid_t)pid;
}
#else
/* In the child the stack is new, and what must survive the call is in registers. */
static long clone_and_call(struct clone_args *args, void (*child)(const void *context), const void *context)
{
#if defined(__x86_64__)
	long result = SYS_clone3;
	register void (*call)(const void *) __asm__("r12") = child;
	register const void *with __asm__("r13") = context;
	__asm__ volatile("syscall\n\t"
	                 "test %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "xor %%ebp, %%ebp\n\t"
	                 "mov %%r13, %%rdi\n\t"
	                 "call *%%r12\n\t"
	                 "hlt\n"
	                 "1:"
	                 : "+a"(result)
	                 : "D"(args), "S"(sizeof(*args)), "r"(call), "r"(with)
	                 : "rcx", "r11", "memory", "cc");
	return result;
#elif defined(__aarch64__)
	register long result __asm__("x0") = (long)(uintptr_t)args;
	register long size __asm__("x1") = sizeof(*args);
	register long number __asm__("x8") = SYS_clone3;
	register void (*call)(const void *) __asm__("x20") = child;
	register const void *with __asm__("x21") = context;
	__asm__ volatile("svc 0\n\t"
	                 "cbnz x0, 1f\n\t"
	                 "mov x29, xzr\n\t"
	                 "mov x0, x21\n\t"
	                 "blr x20\n\t"
	                 "brk 1\n"
	                 "1:"
	                 : "+r"(result)
	                 : "r"(size), "r"(number), "r"(call), "r"(with)
	                 : "memory", "cc");
	return result;
#else
#error "birth: the registers of this processor are not known"
#endif
}

pid_t birth(struct clone_args *args, void (*child)(const void *context), const void *context)
{
	char stack[BIRTH_STACK_BYTES] __attribute__((aligned(16)));
	args->flags |= CLONE_VM | CLONE_VFORK;
	args->stack = (uint64_t)(uintptr_t)stack;
	args->stack_size = sizeof(stack);
	return (pid_t)clone_and_call(args, child, context);
}
#endif
