/* test_sweep.c - who holds the store keeps a sweep out, and who sweeps it sees all that is in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/fd.h"
#include "remove_tree.h"

enum { SHORT_MS = 50, LONG_MS = 20 * 1000 };

struct place {
	char path[64];
	int dir;
	struct store *store, *other; /* as two processes have it */
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct err err = ERR_INIT;
	snprintf(place->path, sizeof(place->path), "/tmp/caisson-sweep-XXXXXX");
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	*state = place;
	int result = store_open(place->dir, &place->store, &err);
	return result ? result : store_open(place->dir, &place->other, &err);
}

static int teardown(void **state)
{
	struct place *place = *state;
	store_free(place->store);
	store_free(place->other);
	close(place->dir);
	int status = remove_tree(place->path);
	free(place);
	return status;
}

static struct digest put(struct place *place, const char *text)
{
	struct digest digest;
	assert_int_equal(store_put_bytes(place->store, text, strlen(text), false, &digest, NULL), 0);
	return digest;
}

static void a_hold_keeps_a_sweep_out_until_the_last_release(void **state)
{
	struct place *place = *state;
	assert_int_equal(store_hold(place->store, NULL), 0);
	assert_int_equal(store_hold(place->store, NULL), 0);
	assert_int_equal(store_sweep_begin(place->other, SHORT_MS, NULL), ERR_BUSY);
	store_release(place->store);
	assert_int_equal(store_sweep_begin(place->other, SHORT_MS, NULL), ERR_BUSY);
	store_release(place->store);
	assert_int_equal(store_sweep_begin(place->other, SHORT_MS, NULL), 0);
	store_release(place->store); /* once too often is nothing */
	store_sweep_end(place->other);
}

static void two_may_hold_it_and_one_may_sweep_it(void **state)
{
	struct place *place = *state;
	assert_int_equal(store_hold(place->store, NULL), 0);
	assert_int_equal(store_hold(place->other, NULL), 0);
	store_release(place->store);
	store_release(place->other);
	assert_int_equal(store_sweep_begin(place->store, SHORT_MS, NULL), 0);
	assert_int_equal(store_sweep_begin(place->other, SHORT_MS, NULL), ERR_BUSY);
	store_sweep_end(place->store);
}

static void one_process_does_not_do_both(void **state)
{
	struct place *place = *state;
	assert_int_equal(store_hold(place->store, NULL), 0);
	assert_int_equal(store_sweep_begin(place->store, SHORT_MS, NULL), ERR_STATE);
	store_release(place->store);
	assert_int_equal(store_sweep_begin(place->store, SHORT_MS, NULL), 0);
	assert_int_equal(store_hold(place->store, NULL), ERR_STATE);
	store_sweep_end(place->store);
}

static void the_hold_of_a_dead_process_holds_nobody_up(void **state)
{
	struct place *place = *state;
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		struct store *own = NULL;
		if (store_open(place->dir, &own, NULL) < 0 || store_hold(own, NULL) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(store_sweep_begin(place->store, SHORT_MS, NULL), ERR_BUSY);
	kill(child, SIGKILL);
	assert_int_equal(store_sweep_begin(place->store, LONG_MS, NULL), 0);
	store_sweep_end(place->store);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

static void nothing_is_removed_but_in_a_sweep(void **state)
{
	struct place *place = *state;
	struct digest digest = put(place, "bytes");
	assert_int_equal(store_remove(place->store, &digest, NULL), ERR_STATE);
	assert_int_equal(store_check(place->store, &digest, NULL), 0);
	assert_int_equal(store_sweep_begin(place->store, SHORT_MS, NULL), 0);
	assert_int_equal(store_remove(place->store, &digest, NULL), 0);
	assert_int_equal(store_remove(place->store, &digest, NULL), ERR_NOT_FOUND);
	store_sweep_end(place->store);
	assert_int_equal(store_check(place->store, &digest, NULL), ERR_NOT_FOUND);
}

struct seen {
	struct digest wanted;
	int objects, strays;
	int64_t bytes;
	bool found;
	char strays_text[512];
};

static int note(void *context, const struct store_entry *entry)
{
	struct seen *seen = context;
	size_t used = strlen(seen->strays_text);
	if (entry->stray) {
		seen->strays++;
		snprintf(seen->strays_text + used, sizeof(seen->strays_text) - used, "%s ", entry->name);
		return 0;
	}
	seen->objects++;
	seen->bytes += entry->size_bytes;
	seen->found = seen->found || digest_equal(&entry->digest, &seen->wanted);
	assert_true(entry->stored_at_ms > 0);
	return 0;
}

static void a_walk_tells_objects_from_strays(void **state)
{
	struct place *place = *state;
	struct seen seen = {.wanted = put(place, "one")};
	char hex[DIGEST_HEX_SIZE], name[96];
	put(place, "three");
	digest_hex(&seen.wanted, hex);
	snprintf(name, sizeof(name), "objects/%.2s/half", hex);
	close(openat(place->dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(openat(place->dir, "objects/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(openat(place->dir, "tmp/left", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(symlinkat("/etc", place->dir, "objects/zz"), 0);
	assert_int_equal(symlinkat("/etc", place->dir, "objects/aa"), 0);
	assert_int_equal(store_walk(place->store, note, &seen, NULL), 0);
	assert_int_equal(seen.objects, 2);
	assert_int_equal(seen.bytes, 8);
	assert_true(seen.found);
	assert_int_equal(seen.strays, 5);
	assert_non_null(strstr(seen.strays_text, "objects/file "));
	assert_non_null(strstr(seen.strays_text, "/half "));
	assert_non_null(strstr(seen.strays_text, "tmp/left "));
}

static int stop_at_once(void *context, const struct store_entry *entry)
{
	(void)entry;
	return ++*(int *)context;
}

static void a_walk_ends_when_it_is_told_to(void **state)
{
	struct place *place = *state;
	int count = 0;
	put(place, "one");
	put(place, "two");
	assert_int_equal(store_walk(place->store, stop_at_once, &count, NULL), 1);
	assert_int_equal(count, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_hold_keeps_a_sweep_out_until_the_last_release),
		CASE(two_may_hold_it_and_one_may_sweep_it),
		CASE(one_process_does_not_do_both),
		CASE(the_hold_of_a_dead_process_holds_nobody_up),
		CASE(nothing_is_removed_but_in_a_sweep),
		CASE(a_walk_tells_objects_from_strays),
		CASE(a_walk_ends_when_it_is_told_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
