/* foreign_calls.c - H90: system calls by the x32 numbers and by int 0x80, each in a child that may die of it. */
#include <fcntl.h>

#include "probe.h"

enum { X32_BIT = 0x40000000, X32_GETPID = 39, I386_GETPID = 20 };

static long call_i386(long number)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static void in_child(const char *name, int foreign)
{
	pid_t child = fork();

	if (child == 0) {
		long result = foreign ? call_i386(I386_GETPID) : syscall(X32_BIT + X32_GETPID);

		/* 0: the call was really made. */
		_exit(result == getpid() ? 0 : 1);
	}
	report_child(name, child);
}

int main(void)
{
	in_child("x32", 0);
	in_child("int80", 1);
	return 0;
}
