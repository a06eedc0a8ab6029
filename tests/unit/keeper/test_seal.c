/* test_seal.c - inputs are copied in before anything else; what cannot be is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/tree.h"
#include "base/fd.h"
#include "keeper/seal.h"

enum { PATH_SIZE = 128, DOCUMENT_SIZE = 1024, TREE_FDS = 16 };

/* A directory with a file "file" that holds "bytes", a directory "dir", a FIFO "fifo", and an empty store. */
struct scene {
	char path[PATH_SIZE];
	struct store *store;
	struct manifest *manifest;
	struct sealed sealed;
	struct err err;
};

static void set_up(struct scene *scene)
{
	*scene = (struct scene){.path = "/tmp/caisson-test-seal-XXXXXX", .err = ERR_INIT};
	assert_non_null(mkdtemp(scene->path));

	FD_AUTO int top = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO int file = openat(top, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(fd_write_all(file, "bytes", 5), 0);
	assert_int_equal(mkdirat(top, "dir", 0700), 0);
	assert_int_equal(mkfifoat(top, "fifo", 0600), 0);
	assert_int_equal(mkdirat(top, "store", 0700), 0);

	FD_AUTO int store = openat(top, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(store_open(store, &scene->store, NULL), 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
	(void)status;
	(void)kind;
	(void)at;
	return remove(path);
}

static void tear_down(struct scene *scene)
{
	seal_done(&scene->sealed);
	manifest_free(scene->manifest);
	store_free(scene->store);
	assert_int_equal(nftw(scene->path, remove_one, TREE_FDS, FTW_DEPTH | FTW_PHYS), 0);
}

/* The manifest of `before`, the path of `name` in the scene (NULL: none), and `after`. */
static void read_manifest(struct scene *scene, const char *before, const char *name, const char *after)
{
	BUF_AUTO struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);

	assert_int_equal(buf_printf(&text, NULL, "{\"version\":\"" MANIFEST_VERSION "\",\"command\":{\"argv\":[\"x\"]},%s%s%s%s%s}",
	                            before, name ? scene->path : "", name ? "/" : "", name ? name : "", after),
	                 0);
	if (manifest_parse(text.data, text.len, &scene->manifest, &scene->err))
		fail_msg("%s", scene->err.text);
}

static int seal(struct scene *scene, struct store *store)
{
	return seal_inputs(store, scene->manifest, &scene->sealed, &scene->err);
}

static void input_from(struct scene *scene, const char *name)
{
	read_manifest(scene, "\"inputs\":[{\"source\":\"", name, "\",\"target\":\"/box/in\"}]");
}

static void expect_bytes(struct scene *scene, const struct plan_input *input)
{
	struct digest digest;

	digest_of("bytes", 5, &digest);
	assert_true(digest_equal(&digest, &input->digest));
	assert_int_equal(input->size_bytes, 5);
	assert_int_equal(store_check(scene->store, &digest, NULL), 0);
}

static void a_file_is_in_the_store_afterwards(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene);
	input_from(&scene, "file");
	assert_int_equal(seal(&scene, scene.store), 0);
	assert_int_equal(scene.sealed.plan.input_count, 1);
	expect_bytes(&scene, &scene.sealed.plan.inputs[0]);
	tear_down(&scene);
}

static void text_and_stdin_are_sealed_too(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene);
	read_manifest(&scene, "\"inputs\":[{\"text\":\"bytes\",\"target\":\"/box/in\"}],\"stdin\":{\"source\":\"", "file", "\"}");
	assert_int_equal(seal(&scene, scene.store), 0);
	expect_bytes(&scene, &scene.sealed.plan.inputs[0]);
	expect_bytes(&scene, &scene.sealed.plan.stdin_input);
	tear_down(&scene);
}

static void a_digest_must_be_in_the_store(void **state)
{
	struct scene scene;
	char text[DIGEST_TEXT_SIZE], document[DOCUMENT_SIZE];
	struct digest digest;

	(void)state;
	set_up(&scene);
	digest_of("bytes", 5, &digest);
	snprintf(document, sizeof(document), "\"inputs\":[{\"digest\":\"%s\",\"target\":\"/box/in\"}]", digest_text(&digest, text));
	read_manifest(&scene, document, NULL, "");
	assert_int_equal(seal(&scene, scene.store), ERR_NOT_FOUND);
	assert_int_equal(store_put_bytes(scene.store, "bytes", 5, false, &digest, NULL), 0);
	seal_done(&scene.sealed);
	assert_int_equal(seal(&scene, scene.store), 0);
	expect_bytes(&scene, &scene.sealed.plan.inputs[0]);
	tear_down(&scene);
}

static void what_is_no_regular_file_is_refused_by_name(void **state)
{
	static const struct {
		const char *name, *words;
		int code;
	} cases[] = {
		{"fifo", "is neither a regular file nor a directory", ERR_INVALID},
		{"nosuch", "cannot be read", ERR_NOT_FOUND},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;

		set_up(&scene);
		input_from(&scene, cases[i].name);
		assert_int_equal(seal(&scene, scene.store), cases[i].code);
		assert_non_null(strstr(scene.err.text, cases[i].words));
		assert_non_null(strstr(scene.err.text, cases[i].name));
		assert_non_null(strstr(scene.err.text, "/box/in"));
		tear_down(&scene);
	}
}

static void a_directory_is_a_tree_with_a_store_or_without(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene);
	input_from(&scene, "dir");
	assert_int_equal(seal(&scene, NULL), 0);

	struct digest digest = scene.sealed.plan.inputs[0].digest;

	seal_done(&scene.sealed);
	assert_int_equal(seal(&scene, scene.store), 0);
	assert_int_equal(scene.sealed.plan.inputs[0].kind, PLAN_INPUT_TREE);
	assert_true(digest_equal(&digest, &scene.sealed.plan.inputs[0].digest));
	assert_int_equal(store_check_tree(scene.store, &digest, NULL), 0);
	tear_down(&scene);
}

/* By the digest of its listing, which is an object too, it is the directory; and no standard input. */
static void a_directory_has_a_digest_and_is_found_by_it(void **state)
{
	struct scene scene;
	char text[DIGEST_TEXT_SIZE], document[DOCUMENT_SIZE];

	(void)state;
	set_up(&scene);
	input_from(&scene, "dir");
	assert_int_equal(seal(&scene, scene.store), 0);

	struct digest digest = scene.sealed.plan.inputs[0].digest;

	seal_done(&scene.sealed);
	manifest_free(scene.manifest);
	snprintf(document, sizeof(document), "\"inputs\":[{\"digest\":\"%s\",\"target\":\"/box/in\"}]", digest_text(&digest, text));
	read_manifest(&scene, document, NULL, "");
	assert_int_equal(seal(&scene, scene.store), 0);
	assert_int_equal(scene.sealed.plan.inputs[0].kind, PLAN_INPUT_TREE);
	assert_int_equal(scene.sealed.plan.inputs[0].size_bytes, 0);
	assert_true(digest_equal(&digest, &scene.sealed.plan.inputs[0].digest));
	manifest_free(scene.manifest);
	snprintf(document, sizeof(document), "\"stdin\":{\"digest\":\"%s\"}", text);
	read_manifest(&scene, document, NULL, "");
	assert_int_equal(seal(&scene, scene.store), ERR_INVALID);
	assert_non_null(strstr(scene.err.text, "stdin: is a directory"));
	tear_down(&scene);
}

/* /dev/zero has no end: a stdin is bounded whatever it comes from. */
static void stdin_is_bounded(void **state)
{
	struct scene scene;

	(void)state;
	set_up(&scene);
	read_manifest(&scene, "\"stdin\":{\"source\":\"/dev/zero\"}", NULL, "");
	assert_int_equal(seal(&scene, NULL), ERR_LIMIT);
	assert_non_null(strstr(scene.err.text, "stdin: /dev/zero"));
	tear_down(&scene);
}

static void without_a_store_there_are_digests_alone(void **state)
{
	struct scene scene;
	struct digest digest;

	(void)state;
	set_up(&scene);
	input_from(&scene, "file");
	assert_int_equal(seal(&scene, NULL), 0);
	digest_of("bytes", 5, &digest);
	assert_true(digest_equal(&digest, &scene.sealed.plan.inputs[0].digest));
	assert_int_equal(store_check(scene.store, &digest, NULL), ERR_NOT_FOUND);
	tear_down(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_in_the_store_afterwards),
		cmocka_unit_test(text_and_stdin_are_sealed_too),
		cmocka_unit_test(a_digest_must_be_in_the_store),
		cmocka_unit_test(what_is_no_regular_file_is_refused_by_name),
		cmocka_unit_test(a_directory_is_a_tree_with_a_store_or_without),
		cmocka_unit_test(a_directory_has_a_digest_and_is_found_by_it),
		cmocka_unit_test(stdin_is_bounded),
		cmocka_unit_test(without_a_store_there_are_digests_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
