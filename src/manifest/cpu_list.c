/* cpu_list.c - sets of CPUs: reads and writes "0,2-3". */
#include "manifest/cpu_list.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"

enum { NUMBER_DIGITS_MAX = 4 };

void cpu_list_add(struct cpu_list *list, int cpu)
{
	list->words[cpu / CPU_LIST_WORD_BITS] |= UINT64_C(1) << cpu % CPU_LIST_WORD_BITS;
}

bool cpu_list_has(const struct cpu_list *list, int cpu)
{
	return list->words[cpu / CPU_LIST_WORD_BITS] >> cpu % CPU_LIST_WORD_BITS & 1;
}

int cpu_list_count(const struct cpu_list *list)
{
	int count = 0;

	for (size_t i = 0; i < sizeof list->words / sizeof list->words[0]; i++)
		count += __builtin_popcountll(list->words[i]);
	return count;
}

/* Moves *at behind the number, which is written without leading zeros. */
static bool read_number(const char **at, int *ret)
{
	size_t digits = strspn(*at, DIGITS);
	int number = 0;

	if (digits < 1 || digits > NUMBER_DIGITS_MAX || (digits > 1 && **at == '0'))
		return false;
	for (; digits > 0; digits--)
		number = number * 10 + (*(*at)++ - '0');
	*ret = number;
	return number < CPU_LIST_CPUS;
}

bool cpu_list_parse(const char *text, struct cpu_list *ret)
{
	struct cpu_list list = {{0}};

	for (;; text++) {
		int first, last;
		if (!read_number(&text, &first))
			return false;
		last = first;
		if (*text == '-' && (text++, !read_number(&text, &last) || last < first))
			return false;
		for (int cpu = first; cpu <= last; cpu++)
			cpu_list_add(&list, cpu);
		if (*text != ',')
			break;
	}
	if (*text != '\0')
		return false;
	*ret = list;
	return true;
}

const char *cpu_list_format(const struct cpu_list *list, char text[static CPU_LIST_TEXT_SIZE])
{
	size_t used = 0;

	text[0] = '\0';
	for (int first = 0; first < CPU_LIST_CPUS; first++) {
		int last = first;
		if (!cpu_list_has(list, first))
			continue;
		while (last + 1 < CPU_LIST_CPUS && cpu_list_has(list, last + 1))
			last++;
		const char *comma = used > 0 ? "," : "";
		used += (size_t)(last > first ? snprintf(text + used, CPU_LIST_TEXT_SIZE - used, "%s%d-%d", comma, first, last)
		                              : snprintf(text + used, CPU_LIST_TEXT_SIZE - used, "%s%d", comma, first));
		first = last;
	}
	return text;
}

int cpu_list_first_beyond(const struct cpu_list *list, const struct cpu_list *others)
{
	for (int cpu = 0; cpu < CPU_LIST_CPUS; cpu++)
		if (cpu_list_has(list, cpu) && !cpu_list_has(others, cpu))
			return cpu;
	return -1;
}
