/* test_collect.c - the collector: all of an output place by the rules, or nothing; never what is outside of it, and never a hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/collect.h"
#include "base/fd.h"
#include "remove_tree.h"

enum {
	HANG_S = 120, /* whatever takes longer hangs */
	NESTED = 10000,
	CHANGE_ROUNDS = 10000, /* until the other process gets a turn in the middle */
	RACE_ROUNDS = 2000,    /* CAISSON_RACE_ROUNDS */
	RACE_ROUNDS_MAX = 50,  /* times as many, until there are so many collisions */
	RACE_COLLISIONS = 100,
};

static const char canary[] = "CANARY: this was never meant to be read";
static const char honest[] = "HONEST: this is what the guest has made";
static const char other[] = "OTHERS: this is what the guest did also";

struct place {
	char path[64];
	int top, out; /* the scratch directory; the output place in it */
	struct store *store;
	struct artifact_list list;
};

static const struct collect_rules defaults = {.max_files = 64, .max_file_bytes = 1 << 20, .max_bytes = 4 << 20};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct err err = ERR_INIT;
	/* A tmpfs, as the place of a guest is; and syncing costs nothing there. */
	const char *above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(place->path, sizeof(place->path), "%s/caisson-collect-XXXXXX", above);
	if (!mkdtemp(place->path))
		return -1;
	place->top = open(place->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	mkdirat(place->top, "out", 0755);
	mkdirat(place->top, "store", 0700);
	place->out = openat(place->top, "out", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	FD_AUTO int store = openat(place->top, "store", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	alarm(HANG_S);
	*state = place;
	return store_open(store, &place->store, &err);
}

static int teardown(void **state)
{
	struct place *place = *state;
	alarm(0);
	artifact_list_done(&place->list);
	store_free(place->store);
	close(place->out);
	close(place->top);
	int status = remove_tree(place->path);
	free(place);
	return status;
}

static void make(int dir, const char *name, const void *bytes, size_t count, mode_t mode)
{
	FD_AUTO int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, count), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void make_text(int dir, const char *name, const char *text)
{
	make(dir, name, text, strlen(text), 0644);
}

static void collect(struct place *place, const struct collect_rules *rules)
{
	struct err err = ERR_INIT;
	artifact_list_done(&place->list);
	int result = artifact_collect(place->out, rules, place->store, &place->list, &err);
	if (result < 0)
		fail_msg("%s", err.text);
	assert_true(place->list.count == 0 || place->list.rejected == 0);
}

static void expect_artifact(struct place *place, size_t index, const char *path, const char *text, unsigned mode)
{
	struct digest digest;
	digest_of(text, strlen(text), &digest);
	assert_true(index < place->list.count);
	const struct artifact *artifact = &place->list.items[index];
	assert_string_equal(artifact->path, path);
	assert_int_equal(artifact->size_bytes, strlen(text));
	assert_int_equal(artifact->mode, mode);
	assert_true(digest_equal(&artifact->sha256, &digest));
	assert_int_equal(store_check(place->store, &artifact->sha256, NULL), 0);
}

/* The only rejection. */
static void expect_rejection(struct place *place, const char *path, const char *reason)
{
	assert_int_equal(place->list.rejected, 1);
	assert_string_equal(place->list.rejections[0].path, path);
	assert_string_equal(place->list.rejections[0].reason, reason);
	assert_int_equal(place->list.count, 0);
}

static bool stored(struct place *place, const char *text)
{
	struct digest digest;
	digest_of(text, strlen(text), &digest);
	return store_check(place->store, &digest, NULL) == 0;
}

static void nothing_is_a_result_too(void **state)
{
	struct place *place = *state;
	collect(place, &defaults);
	assert_int_equal(place->list.count + place->list.rejected, 0);
}

static void files_come_out_in_the_order_of_their_bytes_with_plain_modes(void **state)
{
	struct place *place = *state;
	mkdirat(place->out, "b", 0700);
	mkdirat(place->out, "empty", 0755);
	make_text(place->out, "b/z", "deep");
	make(place->out, "b.txt", "", 0, 0600);
	make(place->out, "a.out", "code", 4, 06711);
	make(place->out, "secret", "locked", 6, 0);
	collect(place, &defaults);
	assert_int_equal(place->list.count, 4);
	expect_artifact(place, 0, "a.out", "code", 0755);
	expect_artifact(place, 1, "b.txt", "", 0644);
	expect_artifact(place, 2, "b/z", "deep", 0644);
	expect_artifact(place, 3, "secret", "locked", 0644);
}

static void any_name_that_the_kernel_allows_is_one(void **state)
{
	struct place *place = *state;
	static const char *const names[] = {
		"\x01\x02", "\n", " ", " lead", "\"'`$(id)", "-rf", "..x", "...", "A", "\\x0a", "a", "two\nlines", "\xc3\xa9",
		"\xff\xfe",
	};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	char longest[256];
	memset(longest, 'n', 255);
	longest[255] = '\0';
	for (size_t i = 0; i < COUNT; i++)
		make_text(place->out, names[i], names[i]);
	make_text(place->out, longest, "long");
	collect(place, &defaults);
	assert_int_equal(place->list.count, COUNT + 1);
	for (size_t i = 0; i < COUNT; i++) {
		size_t at = 0;
		while (at < place->list.count && strcmp(place->list.items[at].path, names[i]) != 0)
			at++;
		expect_artifact(place, at, names[i], names[i], 0644);
	}
}

static void a_hard_link_is_copied_as_bytes_of_its_own(void **state)
{
	struct place *place = *state;
	make_text(place->top, "elsewhere", honest);
	assert_int_equal(linkat(place->top, "elsewhere", place->out, "one", 0), 0);
	assert_int_equal(linkat(place->top, "elsewhere", place->out, "two", 0), 0);
	collect(place, &defaults);
	expect_artifact(place, 0, "one", honest, 0644);
	expect_artifact(place, 1, "two", honest, 0644);
	char path[DIGEST_HEX_SIZE + 16], hex[DIGEST_HEX_SIZE];
	struct stat object, source;
	digest_hex(&place->list.items[0].sha256, hex);
	snprintf(path, sizeof(path), "store/objects/%.2s/%s", hex, hex + 2);
	assert_int_equal(fstatat(place->top, path, &object, 0), 0);
	assert_int_equal(fstatat(place->top, "elsewhere", &source, 0), 0);
	assert_true(object.st_ino != source.st_ino && source.st_nlink == 3);
}

static void a_link_is_named_and_never_followed(void **state)
{
	struct place *place = *state;
	make_text(place->top, "canary", canary);
	make_text(place->out, "good", honest);
	assert_int_equal(symlinkat("../canary", place->out, "relative"), 0);
	assert_int_equal(symlinkat("/etc/shadow", place->out, "absolute"), 0);
	assert_int_equal(symlinkat("nowhere", place->out, "dangling"), 0);
	assert_int_equal(symlinkat("good", place->out, "inside"), 0);
	assert_int_equal(symlinkat("..", place->out, "parent"), 0);
	collect(place, &defaults);
	static const char *const names[] = {"absolute", "dangling", "inside", "parent", "relative"};
	assert_int_equal(place->list.rejected, 5);
	assert_int_equal(place->list.count, 0);
	for (size_t i = 0; i < 5; i++) {
		assert_string_equal(place->list.rejections[i].path, names[i]);
		assert_string_equal(place->list.rejections[i].reason, "is a symbolic link");
	}
	assert_false(stored(place, canary));
	assert_false(stored(place, honest)); /* with a rejection nothing is even copied */
}

static void a_required_path_through_a_link_is_not_there(void **state)
{
	struct place *place = *state;
	static const char *const required[] = {"dir/result"};
	struct collect_rules rules = defaults;
	rules.required = required;
	rules.required_count = 1;
	mkdirat(place->top, "other", 0755);
	make_text(place->top, "other/result", canary);
	assert_int_equal(symlinkat("../other", place->out, "dir"), 0);
	collect(place, &rules);
	assert_int_equal(place->list.rejected, 2);
	assert_string_equal(place->list.rejections[0].path, "dir");
	assert_string_equal(place->list.rejections[1].path, "dir/result");
	assert_string_equal(place->list.rejections[1].reason, "is required, and no file is there");
	assert_false(stored(place, canary));
}

static void a_fifo_hangs_nobody(void **state)
{
	struct place *place = *state;
	assert_int_equal(mkfifoat(place->out, "fifo", 0644), 0);
	collect(place, &defaults);
	expect_rejection(place, "fifo", "is a FIFO");
}

static void a_socket_is_named(void **state)
{
	struct place *place = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	FD_AUTO int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/out/socket", place->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	collect(place, &defaults);
	expect_rejection(place, "socket", "is a socket");
}

static void a_device_is_named_and_not_opened(void **state)
{
	struct place *place = *state;
	if (mknodat(place->out, "zero", S_IFCHR | 0666, (1 << 8) | 5) < 0)
		skip();
	collect(place, &defaults);
	expect_rejection(place, "zero", "is a device");
}

static void another_file_system_is_not_entered(void **state)
{
	struct place *place = *state;
	char target[96];
	snprintf(target, sizeof(target), "%s/out/mounted", place->path);
	mkdirat(place->out, "mounted", 0755);
	if (mount("tmpfs", target, "tmpfs", 0, "size=64k") < 0)
		skip();
	collect(place, &defaults);
	assert_int_equal(umount(target), 0);
	expect_rejection(place, "mounted", "leads out of the output place");
}

static void a_sparse_file_counts_with_its_apparent_size(void **state)
{
	struct place *place = *state;
	FD_AUTO int fd = openat(place->out, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, INT64_C(1) << 40), 0);
	collect(place, &defaults);
	expect_rejection(place, "huge", "has 1099511627776 bytes, more than 1048576");
}

static void a_hole_below_the_cap_is_zeros(void **state)
{
	struct place *place = *state;
	static const char zeros[65536];
	struct digest digest;
	FD_AUTO int fd = openat(place->out, "hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, sizeof(zeros)), 0);
	digest_of(zeros, sizeof(zeros), &digest);
	collect(place, &defaults);
	assert_int_equal(place->list.count, 1);
	assert_true(digest_equal(&place->list.items[0].sha256, &digest));
}

static void each_cap_is_met_exactly_or_named(void **state)
{
	struct place *place = *state;
	const struct collect_rules exact = {.max_files = 3, .max_file_bytes = 5, .max_bytes = 9};
	struct collect_rules less = exact;
	make_text(place->out, "a", "12345");
	make_text(place->out, "b", "1234");
	make_text(place->out, "c", "");
	collect(place, &exact);
	assert_int_equal(place->list.count, 3);
	less.max_files = 2;
	collect(place, &less);
	expect_rejection(place, "", "more than 2 files");
	less = exact;
	less.max_file_bytes = 4;
	collect(place, &less);
	expect_rejection(place, "a", "has 5 bytes, more than 4");
	less = exact;
	less.max_bytes = 8;
	collect(place, &less);
	expect_rejection(place, "", "9 bytes together, more than 8");
}

static void what_is_required_must_be_there_and_not_empty(void **state)
{
	struct place *place = *state;
	static const char *const required[] = {"dir/there", "empty", "missing", "dir", "link"};
	struct collect_rules rules = defaults;
	rules.required = required;
	rules.required_count = 5;
	mkdirat(place->out, "dir", 0755);
	make_text(place->out, "dir/there", honest);
	make_text(place->out, "empty", "");
	assert_int_equal(symlinkat("dir/there", place->out, "link"), 0);
	collect(place, &rules);
	assert_int_equal(place->list.rejected, 4);
	assert_string_equal(place->list.rejections[0].reason, "is a symbolic link"); /* named once, with its own reason */
	assert_string_equal(place->list.rejections[1].path, "empty");
	assert_string_equal(place->list.rejections[1].reason, "is required, and empty");
	assert_string_equal(place->list.rejections[2].path, "missing");
	assert_string_equal(place->list.rejections[3].path, "dir");
	rules.required_count = 1;
	assert_int_equal(unlinkat(place->out, "link", 0), 0);
	collect(place, &rules);
	assert_int_equal(place->list.count, 2);
}

static void more_names_than_anybody_may_have_end_the_walk(void **state)
{
	struct place *place = *state;
	struct collect_rules rules = defaults;
	char name[32];
	rules.max_files = 1 << 20;
	for (int i = 0; i < ARTIFACT_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_text(place->out, name, "");
	}
	collect(place, &rules);
	assert_int_equal(place->list.count, ARTIFACT_FILES_MAX);
	for (int i = ARTIFACT_FILES_MAX; i <= COLLECT_ENTRIES_MAX; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		mkdirat(place->out, name, 0755);
	}
	collect(place, &rules);
	expect_rejection(place, "", "more than 4096 names");
}

static void ten_thousand_levels_are_refused_without_recursion(void **state)
{
	struct place *place = *state;
	int dir = fcntl(place->out, F_DUPFD_CLOEXEC, 0);
	for (int level = 0; level < NESTED; level++) {
		assert_int_equal(mkdirat(dir, "d", 0755), 0);
		int deeper = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(deeper >= 0);
		close(dir);
		dir = deeper;
	}
	make_text(dir, "bottom", honest);
	close(dir);
	collect(place, &defaults);
	assert_int_equal(place->list.rejected, 1);
	assert_string_equal(place->list.rejections[0].reason, "is more than 64 levels deep");
}

static void a_path_that_no_call_takes_is_refused(void **state)
{
	struct place *place = *state;
	char name[251];
	int dir = fcntl(place->out, F_DUPFD_CLOEXEC, 0);
	memset(name, 'p', 250);
	name[250] = '\0';
	for (int level = 0; level < 20; level++) {
		assert_int_equal(mkdirat(dir, name, 0755), 0);
		int deeper = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = deeper;
	}
	close(dir);
	collect(place, &defaults);
	assert_int_equal(place->list.rejected, 1);
	assert_string_equal(place->list.rejections[0].reason, "has a path of more than 4095 bytes");
	assert_int_equal(strlen(place->list.rejections[0].path), ARTIFACT_SHOWN_SIZE - 1);
}

/* Another process, which does this without pause until it is killed. */
struct meddler {
	pid_t pid;
	volatile long *turns;
};

static struct meddler meddle(void (*act)(void *context), void *context)
{
	struct meddler meddler = {
		.turns = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	};
	meddler.pid = fork();
	assert_true(meddler.pid >= 0);
	if (meddler.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			act(context);
			++*meddler.turns;
		}
	}
	while (*meddler.turns == 0)
		sched_yield();
	return meddler;
}

static void stop(struct meddler *meddler)
{
	kill(meddler->pid, SIGKILL);
	waitpid(meddler->pid, NULL, 0);
	munmap((void *)meddler->turns, sizeof(long));
}

static void overwrite(void *context)
{
	static char byte = 'a';
	int fd = *(int *)context;
	byte ^= 3;
	if (pwrite(fd, &byte, 1, 512 * 1024) != 1)
		_exit(1);
}

static void a_change_while_it_is_read_is_noticed(void **state)
{
	struct place *place = *state;
	FD_AUTO int fd = openat(place->out, "victim", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	struct meddler writer = meddle(overwrite, &fd);
	/* Before 6.13 a tmpfs stamps by the tick, and what happens within one cannot be seen. */
	for (int round = 0; round < CHANGE_ROUNDS && place->list.rejected == 0; round++)
		collect(place, &defaults);
	stop(&writer);
	expect_rejection(place, "victim", "changed while it was read");
	collect(place, &defaults);
	assert_int_equal(place->list.count, 1);
}

static void append_a_byte(void *context)
{
	if (write(*(int *)context, "x", 1) != 1)
		_exit(1);
}

static void growth_while_it_is_read_is_noticed(void **state)
{
	struct place *place = *state;
	FD_AUTO int fd = openat(place->out, "victim", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 512 * 1024), 0);
	const struct collect_rules roomy = {.max_files = 1, .max_file_bytes = 1 << 30, .max_bytes = 1 << 30};
	struct meddler writer = meddle(append_a_byte, &fd);
	for (int round = 0; round < CHANGE_ROUNDS && place->list.rejected == 0; round++)
		collect(place, &roomy);
	stop(&writer);
	expect_rejection(place, "victim", "changed while it was read");
}

/* What is exchanged with what, in turn. */
static const char *const exchanges[][2] = {
	{"out/file", "spare/link"}, /* a link to the canary */
	{"out/file", "spare/fifo"},
	{"out/file", "spare/other"}, /* another file, of the same size */
	{"out/dir", "spare/parent"}, /* a link to a directory with the canary under the same name */
};

struct exchange {
	int top;
	const char *const *pair;
};

static void exchange(void *context)
{
	const struct exchange *exchange = context;
	if (renameat2(exchange->top, exchange->pair[0], exchange->top, exchange->pair[1], RENAME_EXCHANGE) < 0)
		_exit(1);
}

static void lay_out(struct place *place)
{
	mkdirat(place->top, "spare", 0755);
	mkdirat(place->top, "outside", 0755);
	mkdirat(place->out, "dir", 0755);
	make_text(place->top, "outside/inner", canary);
	make_text(place->out, "file", honest);
	make_text(place->out, "dir/inner", honest);
	make_text(place->top, "spare/other", other);
	assert_int_equal(symlinkat("../outside/inner", place->top, "spare/link"), 0);
	assert_int_equal(symlinkat("../outside", place->top, "spare/parent"), 0);
	assert_int_equal(mkfifoat(place->top, "spare/fifo", 0666), 0);
}

/* The round's result is one that some order of events explains. Was the collector caught in the middle? */
static bool check_round(struct place *place)
{
	struct digest may[2];
	digest_of(honest, strlen(honest), &may[0]);
	digest_of(other, strlen(other), &may[1]);
	for (size_t i = 0; i < place->list.count; i++)
		assert_true(digest_equal(&place->list.items[i].sha256, &may[0]) ||
		            digest_equal(&place->list.items[i].sha256, &may[1]));
	if (place->list.rejected == 0) {
		assert_int_equal(place->list.count, 2);
		return false;
	}
	assert_int_equal(place->list.rejected, 1);
	const struct artifact_rejection *rejection = &place->list.rejections[0];
	assert_true(strcmp(rejection->path, "file") == 0 || strcmp(rejection->path, "dir") == 0 ||
	            strcmp(rejection->path, "dir/inner") == 0);
	if (strcmp(rejection->reason, "changed while it was read") == 0 ||
	    strcmp(rejection->reason, "leads out of the output place") == 0)
		return true;
	if (strcmp(rejection->reason, "is a symbolic link") != 0 && strcmp(rejection->reason, "is a FIFO") != 0)
		fail_msg("%s: %s", rejection->path, rejection->reason);
	return false;
}

/* The kinds of exchange in turn, back to the beginning after each. Returns the collisions. */
static long race(struct place *place, long rounds, long *turns)
{
	enum { KINDS = sizeof(exchanges) / sizeof(exchanges[0]) };
	long collisions = 0;
	for (int kind = 0; kind < KINDS; kind++) {
		struct exchange context = {.top = place->top, .pair = exchanges[kind]};
		struct stat before, after;
		assert_int_equal(fstatat(place->top, exchanges[kind][0], &before, AT_SYMLINK_NOFOLLOW), 0);
		struct meddler meddler = meddle(exchange, &context);
		for (long round = 0; round < rounds / KINDS; round++) {
			collect(place, &defaults);
			collisions += check_round(place);
		}
		*turns += *meddler.turns;
		stop(&meddler);
		assert_int_equal(fstatat(place->top, exchanges[kind][0], &after, AT_SYMLINK_NOFOLLOW), 0);
		if (after.st_ino != before.st_ino)
			exchange(&context);
	}
	return collisions;
}

static void an_exchange_at_any_moment_brings_out_no_canary(void **state)
{
	struct place *place = *state;
	const char *wanted = getenv("CAISSON_RACE_ROUNDS");
	long rounds = wanted ? strtol(wanted, NULL, 10) : RACE_ROUNDS, done = 0, collisions = 0, turns = 0;
	lay_out(place);
	while (done == 0 || (collisions < RACE_COLLISIONS && done < rounds * RACE_ROUNDS_MAX)) {
		collisions += race(place, rounds, &turns);
		done += rounds;
	}
	print_message("%ld rounds, %ld exchanges, %ld collisions\n", done, turns, collisions);
	assert_false(stored(place, canary));
	assert_true(collisions >= RACE_COLLISIONS);
}

static void a_full_store_is_our_failure_and_no_rejection(void **state)
{
	struct place *place = *state;
	struct err err = ERR_INIT;
	char target[96];
	snprintf(target, sizeof(target), "%s/small", place->path);
	mkdirat(place->top, "small", 0700);
	if (mount("tmpfs", target, "tmpfs", 0, "size=64k") < 0)
		skip();
	FD_AUTO int dir = openat(place->top, "small", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	struct store *small = NULL;
	FD_AUTO int fd = openat(place->out, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(store_open(dir, &small, &err), 0);
	assert_int_equal(artifact_collect(place->out, &defaults, small, &place->list, &err), ERR_NO_SPACE);
	assert_int_equal(place->list.count + place->list.rejected, 0);
	store_free(small);
	fd_close(&dir);
	assert_int_equal(umount(target), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_a_result_too),
		CASE(files_come_out_in_the_order_of_their_bytes_with_plain_modes),
		CASE(any_name_that_the_kernel_allows_is_one),
		CASE(a_hard_link_is_copied_as_bytes_of_its_own),
		CASE(a_link_is_named_and_never_followed),
		CASE(a_required_path_through_a_link_is_not_there),
		CASE(a_fifo_hangs_nobody),
		CASE(a_socket_is_named),
		CASE(a_device_is_named_and_not_opened),
		CASE(another_file_system_is_not_entered),
		CASE(a_sparse_file_counts_with_its_apparent_size),
		CASE(a_hole_below_the_cap_is_zeros),
		CASE(each_cap_is_met_exactly_or_named),
		CASE(what_is_required_must_be_there_and_not_empty),
		CASE(more_names_than_anybody_may_have_end_the_walk),
		CASE(ten_thousand_levels_are_refused_without_recursion),
		CASE(a_path_that_no_call_takes_is_refused),
		CASE(a_change_while_it_is_read_is_noticed),
		CASE(growth_while_it_is_read_is_noticed),
		CASE(an_exchange_at_any_moment_brings_out_no_canary),
		CASE(a_full_store_is_our_failure_and_no_rejection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
