/* filter_generate.c - build-time program: writes the seccomp filter of filter_table.c as a C array.
 *
 * The filter is two programs of libseccomp, one behind the other. The first knows the conditions, the second the groups. Where
 * the first has no answer it returns a marker action; each such return is replaced by a jump to the second program, one
 * instruction for one, so that no other offset changes. (A single libseccomp program cannot say "allow ioctl, but not these
 * two requests" while its default is to refuse.)
 *
 * A foreign architecture or an x32 call kills the process in both. Usage: filter_generate OUTPUT */
#include "init/filter/filter_table.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILTER_INSTRUCTIONS_MAX = 2048 }; /* BPF_MAXINSNS is 4096; ours is a quarter of that */

#define ACTION_NO_ANSWER SCMP_ACT_TRACE(1) /* used for nothing else, so its returns are easy to find */

struct program {
	struct sock_filter code[FILTER_INSTRUCTIONS_MAX];
	size_t count;
};

static _Noreturn void die(const char *what, const char *name, int rc)
{
	fprintf(stderr, "filter_generate: %s: %s: %s\n", what, name, strerror(rc < 0 ? -rc : rc));
	exit(EXIT_FAILURE);
}

static uint32_t libseccomp_action(enum filter_action action)
{
	switch (action) {
	case FILTER_ALLOW:
		return SCMP_ACT_ALLOW;
	case FILTER_REFUSE:
		return SCMP_ACT_ERRNO(EPERM);
	case FILTER_IGNORE:
		return SCMP_ACT_ERRNO(0);
	}
	abort();
}

/* The number of a call. Negative, and to be skipped, where this architecture does not have it; a name that libseccomp has never
 * heard of is a slip in the table and ends the build. */
static int call_number(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);
	if (number == __NR_SCMP_ERROR)
		die("unknown system call", name, EINVAL);
	return number;
}

static scmp_filter_ctx new_context(uint32_t default_action)
{
	scmp_filter_ctx context = seccomp_init(default_action);
	if (!context)
		die("seccomp_init", "no context", ENOMEM);
	int rc = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc < 0)
		die("seccomp_attr_set", "context", rc);
	return context;
}

/* Reads the finished program back through a memory file: libseccomp 2.5 exports to a descriptor only. */
static void export_program(scmp_filter_ctx context, struct program *ret)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);
	if (fd < 0)
		die("memfd_create", "filter", errno);
	int rc = seccomp_export_bpf(context, fd);
	if (rc < 0)
		die("seccomp_export_bpf", "filter", rc);
	ssize_t size = pread(fd, ret->code, sizeof(ret->code), 0);
	if (size <= 0 || (size_t)size == sizeof(ret->code) || (size_t)size % sizeof(ret->code[0]) != 0)
		die("export", "program does not fit", E2BIG);
	ret->count = (size_t)size / sizeof(ret->code[0]);
	close(fd);
	seccomp_release(context);
}

static void compile_conditions(struct program *ret)
{
	scmp_filter_ctx context = new_context(ACTION_NO_ANSWER);
	for (size_t i = 0; i < filter_condition_count; i++) {
		const struct filter_condition *condition = &filter_conditions[i];
		int number = call_number(condition->call);
		if (number < 0)
			continue;
		int rc = seccomp_rule_add_exact_array(context, libseccomp_action(condition->action), number, condition->arg_count,
		                                      condition->args);
		if (rc < 0)
			die("condition", condition->call, rc);
	}
	export_program(context, ret);
}

static void compile_groups(struct program *ret)
{
	scmp_filter_ctx context = new_context(SCMP_ACT_ERRNO(ENOSYS));
	for (size_t i = 0; i < filter_group_count; i++) {
		for (const char *const *call = filter_groups[i].calls; *call; call++) {
			int number = call_number(*call);
			if (number < 0)
				continue;
			int rc = seccomp_rule_add_exact(context, libseccomp_action(filter_groups[i].action), number, 0);
			if (rc < 0)
				die("group", *call, rc);
		}
	}
	export_program(context, ret);
}

/* Each call stands in one group only, or the table does not say what it means. */
static void check_table(void)
{
	for (size_t i = 0; i < filter_group_count; i++) {
		for (const char *const *call = filter_groups[i].calls; *call; call++) {
			size_t times = 0;
			for (size_t j = 0; j < filter_group_count; j++) {
				for (const char *const *other = filter_groups[j].calls; *other; other++)
					times += strcmp(*call, *other) == 0;
			}
			if (times != 1)
				die("listed more than once", *call, EEXIST);
		}
	}
}

/* Turns "no answer" of the first program into a jump to its end, where the second begins. */
static void chain_to_next(struct program *first)
{
	bool found = false;
	for (size_t i = 0; i < first->count; i++) {
		struct sock_filter *instruction = &first->code[i];
		if (instruction->code != (BPF_RET | BPF_K) || instruction->k != ACTION_NO_ANSWER)
			continue;
		*instruction = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(first->count - i - 1));
		found = true;
	}
	if (!found)
		die("conditions", "no return to chain from", EINVAL);
}

static void write_program(FILE *out, const struct program *program)
{
	for (size_t i = 0; i < program->count; i++) {
		const struct sock_filter *instruction = &program->code[i];
		fprintf(out, "\t{0x%02x, %u, %u, 0x%08x},\n", instruction->code, instruction->jt, instruction->jf, instruction->k);
	}
}

static void write_header(const char *path, const struct program *first, const struct program *second)
{
	FILE *out = fopen(path, "we");
	if (!out)
		die("cannot write", path, errno);
	fprintf(out,
	        "/* guest_filter.h - the guest's seccomp filter. Made by filter_generate from filter_table.c: change the table. "
	        "*/\n"
	        "#pragma once\n\n#include <linux/filter.h>\n\n"
	        "#define GUEST_FILTER_COUNT %zu\n\n"
	        "static const struct sock_filter guest_filter[GUEST_FILTER_COUNT] = {\n",
	        first->count + second->count);
	write_program(out, first);
	write_program(out, second);
	fprintf(out, "};\n");
	if (ferror(out) || fclose(out) != 0)
		die("cannot write", path, errno);
}

int main(int argc, char **argv)
{
	static struct program conditions, groups;

	if (argc != 2)
		die("usage", "filter_generate OUTPUT", EINVAL);
	check_table();
	compile_conditions(&conditions);
	chain_to_next(&conditions);
	compile_groups(&groups);
	write_header(argv[1], &conditions, &groups);
	return EXIT_SUCCESS;
}
