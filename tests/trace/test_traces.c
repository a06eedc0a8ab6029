/* test_traces.c - replays every *.trace of a directory and compares it, whole, with what the lifecycle answers now.
 *
 * With CAISSON_TRACE_UPDATE=1 the files are rewritten instead: for a change that is meant, to be read in the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "story.h"

enum { STORIES_MAX = 128, STORIES_MIN = 20, PATTERN_MAX = 4096 };

static bool updating(void)
{
	const char *wanted = getenv("CAISSON_TRACE_UPDATE");

	return wanted && strcmp(wanted, "1") == 0;
}

static void read_story(const char *path, struct buf *ret)
{
	struct err err = ERR_INIT;
	FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	if (fd_read_rest(fd, ret, &err) < 0)
		fail_msg("%s: %s", path, err.text);
}

static void write_story(const char *path, const struct buf *text)
{
	FD_AUTO int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text->data, text->len), 0);
}

/* Shows the first line that differs: the rest of a long text only hides it. */
static void fail_at_difference(const char *path, const char *written, const char *told)
{
	int line = 1;

	for (;;) {
		size_t old_length = strcspn(written, "\n"), new_length = strcspn(told, "\n");
		if (old_length != new_length || memcmp(written, told, old_length) != 0)
			fail_msg("%s:%d\n  written: %.*s\n  now:     %.*s", path, line, (int)old_length, written, (int)new_length,
			         told);
		if (written[old_length] == '\0' || told[new_length] == '\0')
			fail_msg("%s:%d: one of the two ends here", path, line);
		written += old_length + 1;
		told += new_length + 1;
		line++;
	}
}

static void the_story_is_as_written(void **state)
{
	const char *path = *state;
	BUF_AUTO struct buf written = BUF_INIT(STORY_MAX_BYTES);
	BUF_AUTO struct buf told = BUF_INIT(STORY_MAX_BYTES);
	struct err err = ERR_INIT;

	read_story(path, &written);
	assert_true(written.len > 0);
	if (story_tell(written.data, &told, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	if (updating())
		write_story(path, &told);
	else if (strcmp(written.data, told.data) != 0)
		fail_at_difference(path, written.data, told.data);
}

int main(int argc, char **argv)
{
	static struct CMUnitTest tests[STORIES_MAX];
	char pattern[PATTERN_MAX];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.trace", argc > 1 ? argv[1] : ".");
	if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc < STORIES_MIN || found.gl_pathc > STORIES_MAX) {
		fprintf(stderr, "%s: not between %d and %d stories\n", pattern, STORIES_MIN, STORIES_MAX);
		return 1;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		tests[i] = (struct CMUnitTest){.name = basename(found.gl_pathv[i]), .test_func = the_story_is_as_written,
		                               .initial_state = found.gl_pathv[i]};
	int failed = _cmocka_run_group_tests("traces", tests, found.gl_pathc, NULL, NULL);
	globfree(&found);
	return failed;
}
