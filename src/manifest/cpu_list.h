/* cpu_list.h - a set of CPUs by number, written as the kernel writes it: "0,2-3" (cpuset(7), List format). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	CPU_LIST_CPUS = 1024,      /* numbers from 0 to one less, as in a cpu_set_t */
	CPU_LIST_TEXT_SIZE = 4096, /* of the longest list, NUL included */
	CPU_LIST_WORD_BITS = 64,
};

/* All zero: no CPU. */
struct cpu_list {
	uint64_t words[CPU_LIST_CPUS / CPU_LIST_WORD_BITS];
};

void cpu_list_add(struct cpu_list *list, int cpu);
bool cpu_list_has(const struct cpu_list *list, int cpu);
int cpu_list_count(const struct cpu_list *list);

/* Numbers and rising ranges in any order. False when the text is no such list, or names no CPU, or one that is too high. */
bool cpu_list_parse(const char *text, struct cpu_list *ret);
/* The canonical form: rising, neighbours joined; "" for no CPU. */
const char *cpu_list_format(const struct cpu_list *list, char text[static CPU_LIST_TEXT_SIZE]);

/* The first CPU of `list` that `others` does not have, or -1. */
int cpu_list_first_beyond(const struct cpu_list *list, const struct cpu_list *others);
