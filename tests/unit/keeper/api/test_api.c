/* test_api.c - the API as clients see it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "artifact/tree.h"
#include "base/clock.h"
#include "base/fd.h"
#include "stage.h"

static const char *target_of(const char *run_id, const char *rest)
{
	static char target[256];
	snprintf(target, sizeof(target), "/v1/runs/%s%s", run_id, rest);
	return target;
}

struct waiter {
	struct stage *stage;
	char target[256];
	char *answer;
};

static void *wait_in_thread(void *context)
{
	struct waiter *waiter = context;
	waiter->answer = ask(waiter->stage, "GET", waiter->target, "", NULL);
	return NULL;
}

static void a_sealed_run_is_shown_with_its_receipt(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	fixture_run(&stage->fixture, &attempt);
	assert_answer(stage, "GET", target_of(attempt.run_id, ""), "", NULL, "HTTP/1.1 200 ", "\"state\":\"sealed\"",
	              "\"verdict\":\"succeeded\"", "\"receipt\":{", "\"owner\":\"uid:0\"", "\"attempts\":1");
	assert_answer(stage, "GET", target_of("run-aaaaaaaaaaaaaaaa", ""), "", NULL, "HTTP/1.1 404 ", "there is no such run");
	assert_answer(stage, "GET", target_of("latest", ""), "", NULL, "HTTP/1.1 404 ");
}

static void artifacts_are_there_after_the_seal(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct err err = ERR_INIT;
	fixture_accept(&stage->fixture, &attempt);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/artifacts"), "", NULL, "HTTP/1.1 409 ");
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "hello", &err), 0);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/artifacts"), "", NULL, "HTTP/1.1 200 ", "\"size_bytes\":");
	assert_answer(stage, "GET", target_of(attempt.run_id, "/artifact?path=no/such"), "", NULL, "HTTP/1.1 404 ");
}

static void a_queued_run_is_told_with_the_reason_of_its_pause(void **state)
{
	struct stage *stage = *state;
	char run_id[ID_SIZE];
	fixture_submit(&stage->fixture, NULL, run_id);
	assert_answer(stage, "GET", target_of(run_id, ""), "", NULL, "\"state\":\"paused\"", "\"reason\":\"no_safe_worker\"",
	              "\"receipt\":null", "\"verdict\":null");
}

static void the_list_goes_on_where_its_cursor_says(void **state)
{
	struct stage *stage = *state;
	char run_ids[5][ID_SIZE], target[64] = "/v1/runs?limit=2";
	for (size_t i = 0; i < 5; i++)
		fixture_submit(&stage->fixture, NULL, run_ids[i]);
	for (int page = 0; page < 3; page++) {
		char *answer = ask(stage, "GET", target, "", NULL);
		assert_has(answer, run_ids[4 - 2 * page]);
		if (page < 2)
			assert_has(answer, run_ids[3 - 2 * page]);
		char *next = strstr(answer, "\"next\":");
		assert_non_null(next);
		if (page == 2) {
			assert_has(next, "null");
		} else {
			long long cursor = 0;
			assert_int_equal(sscanf(next, "\"next\":\"%lld\"", &cursor), 1);
			snprintf(target, sizeof(target), "/v1/runs?limit=2&cursor=%lld", cursor);
		}
		free(answer);
	}
	assert_answer(stage, "GET", "/v1/runs?cursor=abc", "", NULL, "HTTP/1.1 400 ", "cursor");
	assert_answer(stage, "GET", "/v1/runs?limit=0", "", NULL, "HTTP/1.1 400 ", "limit");
	assert_answer(stage, "GET", "/v1/runs?owner=uid:7", "", NULL, "HTTP/1.1 200 ", "\"runs\":[]");
}

static void the_list_is_cut_down_to_ids_that_begin_so(void **state)
{
	struct stage *stage = *state;
	char first[ID_SIZE], second[ID_SIZE], target[64];
	fixture_submit(&stage->fixture, NULL, first);
	fixture_submit(&stage->fixture, NULL, second);
	snprintf(target, sizeof(target), "/v1/runs?run=%.11s", first);
	char *answer = ask(stage, "GET", target, "", NULL);
	assert_has(answer, first);
	assert_null(strstr(answer, second));
	free(answer);
	assert_answer(stage, "GET", "/v1/runs?run=run-a", "", NULL, "HTTP/1.1 400 ", "run must be an id");
	assert_answer(stage, "GET", "/v1/runs?run=run-%25%25%25", "", NULL, "HTTP/1.1 400 ", "run must be an id");
	snprintf(target, sizeof(target), "/v1/runs?run=%s&owner=uid:7", first);
	assert_answer(stage, "GET", target, "", NULL, "HTTP/1.1 200 ", "\"runs\":[]");
}

static void who_waits_hears_of_the_seal(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct waiter waiter = {.stage = stage};
	struct err err = ERR_INIT;
	pthread_t thread;
	fixture_accept(&stage->fixture, &attempt);
	snprintf(waiter.target, sizeof(waiter.target), "%s", target_of(attempt.run_id, "?wait_ms=60000"));
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
	await_waiting(stage, 1);
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "prepared", "preparing", &err), 0);
	await_waiting(stage, 1);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "hello", &err), 0);
	pthread_join(thread, NULL);
	assert_has(waiter.answer, "\"state\":\"sealed\"");
	free(waiter.answer);
	await_waiting(stage, 0);
}

static void who_waits_in_vain_is_answered_when_the_time_is_over(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	fixture_accept(&stage->fixture, &attempt);
	int64_t from_ns = clock_mono_ns();
	assert_answer(stage, "GET", target_of(attempt.run_id, "?wait_ms=300"), "", NULL, "HTTP/1.1 200 ", "\"receipt\":null");
	assert_true(clock_mono_ns() - from_ns >= 300 * NS_PER_MS);
}

static void events_come_in_order_end_with_the_seal_and_say_nothing_private(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct waiter waiter = {.stage = stage};
	struct err err = ERR_INIT;
	pthread_t thread;
	fixture_accept(&stage->fixture, &attempt);
	snprintf(waiter.target, sizeof(waiter.target), "%s", target_of(attempt.run_id, "/events"));
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
	await_waiting(stage, 1);
	assert_int_equal(fixture_append(&stage->fixture, &attempt, "prepared", "preparing", &err), 0);
	await_waiting(stage, 1);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "hello", &err), 0);
	pthread_join(thread, NULL);

	static const char *const order[] = {"text/event-stream", "id: 1-1\nevent: accepted\n", "id: 1-2\nevent: prepared\n",
		"id: 1-3\nevent: launch_intent\n", "event: rows\n", "event: sealed\ndata: {\"at\":\"20", "\r\n0\r\n"};
	const char *at = waiter.answer;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const char *found = strstr(at, order[i]);
		if (!found)
			fail_msg("no '%s' in its place in:\n%s", order[i], waiter.answer);
		at = found;
	}
	assert_lacks(waiter.answer, attempt.boundary_id);
	assert_lacks(waiter.answer, attempt.owner_id);
	assert_lacks(waiter.answer, "record of the test");
	free(waiter.answer);

	char *rest = ask(stage, "GET", target_of(attempt.run_id, "/events"), "Last-Event-ID: 1-2\r\n", NULL);
	assert_lacks(rest, "id: 1-2\n");
	assert_has(rest, "id: 1-3\n");
	free(rest);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/events"), "Last-Event-ID: 3-1\r\n", NULL, "HTTP/1.1 200 ",
	              "\r\n0\r\n");
	assert_answer(stage, "GET", target_of("run-aaaaaaaaaaaaaaaa", "/events"), "", NULL, "HTTP/1.1 404 ");
}

static void events_that_are_not_followed_end_with_what_is_there(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	fixture_accept(&stage->fixture, &attempt);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/events?follow=false"), "", NULL, "event: accepted\n", "\r\n0\r\n");
	assert_answer(stage, "GET", target_of(attempt.run_id, "/events?follow=no"), "", NULL, "HTTP/1.1 400 ");
}

static void output_is_read_along_and_then_from_the_ledger(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	struct waiter waiter = {.stage = stage};
	struct err err = ERR_INIT;
	pthread_t thread;
	fixture_accept(&stage->fixture, &attempt);
	assert_int_equal(capture_new(1 << 20, OVERFLOW_KILL, -1, &stage->capture, &err), 0);
	assert_int_equal(capture_write(stage->capture, "hel", 3, &err), 0);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/logs?stream=stdout"), "", NULL, "Caisson-Offset: 3\r\n",
	              "Caisson-End: false\r\n", "\r\n\r\nhel");
	snprintf(waiter.target, sizeof(waiter.target), "%s",
	         target_of(attempt.run_id, "/logs?stream=stdout&offset=3&wait_ms=60000"));
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
	await_waiting(stage, 1);
	assert_int_equal(capture_write(stage->capture, "lo", 2, &err), 0);
	pthread_join(thread, NULL);
	assert_has(waiter.answer, "\r\n\r\nlo");
	assert_has(waiter.answer, "Caisson-Offset: 5\r\n");
	free(waiter.answer);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/logs?stream=stderr&wait_ms=50"), "", NULL,
	              "Caisson-End: false\r\n");

	snprintf(waiter.target, sizeof(waiter.target), "%s",
	         target_of(attempt.run_id, "/logs?stream=stdout&offset=5&wait_ms=60000"));
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
	await_waiting(stage, 1);
	assert_int_equal(fixture_intent(&stage->fixture, &attempt, &err), 0);
	assert_int_equal(fixture_seal(&stage->fixture, &attempt, "hello", &err), 0);
	pthread_join(thread, NULL);
	assert_has(waiter.answer, "Caisson-End: true\r\n");
	free(waiter.answer);
	assert_answer(stage, "GET", target_of(attempt.run_id, "/logs?stream=stdout&offset=1"), "", NULL, "Caisson-Offset: 5\r\n",
	              "Caisson-End: true\r\n", "\r\n\r\nello");
	assert_answer(stage, "GET", target_of(attempt.run_id, "/logs?stream=stdout&offset=99"), "", NULL, "Caisson-Offset: 5\r\n",
	              "Content-Length: 0\r\n");
}

static void an_object_is_stored_under_its_digest(void **state)
{
	struct stage *stage = *state;
	struct digest digest;
	FD_AUTO int fd = -1;
	int64_t size = 0;
	assert_answer(stage, "PUT", "/v1/objects", "", "some bytes", "HTTP/1.1 201 ",
	              "sha256:0d22cdcc10e6d049dbe1af5123d50873fdfc1a4f58306e58cb6241be9472014d");
	digest_of("some bytes", 10, &digest);
	assert_int_equal(store_get_checked(stage->store, &digest, &fd, &size, NULL), 0);
	assert_int_equal(size, 10);
}

static void a_directory_is_made_of_its_listing_and_what_was_sent_before(void **state)
{
	static const char listing[] =
		"[{\"kind\":\"dir\",\"path\":\"d\"},{\"kind\":\"file\",\"mode\":\"0444\",\"path\":\"d/a\",\"sha256\":\"sha256:"
		"0d22cdcc10e6d049dbe1af5123d50873fdfc1a4f58306e58cb6241be9472014d\",\"size_bytes\":10}]";
	struct stage *stage = *state;
	struct digest digest;
	digest_of(listing, strlen(listing), &digest);
	assert_answer(stage, "PUT", "/v1/trees", "", listing, "HTTP/1.1 200 ",
	              "{\"missing\":[\"sha256:0d22cdcc10e6d049dbe1af5123d50873fdfc1a4f58306e58cb6241be9472014d\"]}");
	assert_int_equal(store_check_tree(stage->store, &digest, NULL), ERR_NOT_FOUND);
	assert_answer(stage, "PUT", "/v1/objects", "", "some bytes", "HTTP/1.1 201 ");
	assert_answer(stage, "PUT", "/v1/trees", "", listing, "HTTP/1.1 201 ", "\"size_bytes\":10");
	assert_int_equal(store_check_tree(stage->store, &digest, NULL), 0);
	assert_answer(stage, "PUT", "/v1/trees", "", "[{\"kind\":\"link\",\"path\":\"x\",\"target\":\"/etc/passwd\"}]",
	              "HTTP/1.1 400 ", "x: is an absolute link");
	assert_answer(stage, "PUT", "/v1/trees", "", "[{\"kind\":\"dir\",\"path\":\"../x\"}]", "HTTP/1.1 400 ", "entry 1: ");
	assert_answer(stage, "PUT", "/v1/trees", "", "no JSON", "HTTP/1.1 400 ", "entry 1: ");
	assert_answer(stage, "GET", "/v1/trees", "", NULL, "HTTP/1.1 405 ", "Allow: PUT\r\n");
}

static const char manifest[] = "{\"command\":{\"argv\":[\"/bin/true\"]},\"version\":\"caisson.manifest/v1\"}";

static void a_submission_is_bound_to_who_sent_it(void **state)
{
	struct stage *stage = *state;
	char expected[API_PRINCIPAL_MAX];
	assert_answer(stage, "POST", "/v1/runs", "Idempotency-Key: k1\r\n", manifest, "HTTP/1.1 201 ", "\"existing\":false");
	snprintf(expected, sizeof(expected), "uid:%u", (unsigned)geteuid());
	assert_string_equal(stage->submitted_by, expected);
	assert_string_equal(stage->submitted_key, "k1");
	assert_answer(stage, "POST", "/v1/runs", "Idempotency-Key: k1\r\n", manifest, "HTTP/1.1 200 ", "\"existing\":true");
}

static void a_manifest_that_is_wrong_is_refused_by_its_path(void **state)
{
	struct stage *stage = *state;
	assert_answer(stage, "POST", "/v1/runs", "",
	              "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"a\"]},\"limits\":{\"wal_ms\":1}}",
	              "HTTP/1.1 400 ", "\"path\":\"$.limits.wal_ms\"");
	assert_answer(stage, "POST", "/v1/runs", "",
	              "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"a\"]},\"inputs\":[{\"source\":\"/etc/"
	              "shadow\",\"target\":\"/box/s\"}]}",
	              "HTTP/1.1 400 ", "\"path\":\"$.inputs[0].source\"");
	assert_answer(stage, "POST", "/v1/runs", "",
	              "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"a\"]},\"stdin\":{\"source\":\"-\"}}",
	              "HTTP/1.1 400 ", "\"path\":\"$.stdin.source\"");
	assert_answer(stage, "POST", "/v1/runs", "", "{\"a\":1,\"a\":2}", "HTTP/1.1 400 ", "line 1");
	assert_string_equal(stage->submitted_by, "");
}

static void what_the_keeper_refuses_has_its_status(void **state)
{
	struct stage *stage = *state;
	stage->refuse = ERR_LIMIT;
	stage->refusal = "queue_full: 3 runs wait already";
	assert_answer(stage, "POST", "/v1/runs", "", manifest, "HTTP/1.1 429 ", "Retry-After: 1\r\n", "\"code\":\"queue_full\"");
	stage->refuse = ERR_CONFLICT;
	stage->refusal = "the key was used for another manifest";
	assert_answer(stage, "POST", "/v1/runs", "", manifest, "HTTP/1.1 409 ", "\"code\":\"conflict\"");
	stage->refuse = ERR_NO_SPACE;
	stage->refusal = "write /var/lib/caisson/ledger.db-wal: No space left on device";
	char *answer = ask(stage, "POST", "/v1/runs", "", manifest);
	assert_has(answer, "HTTP/1.1 507 ");
	assert_lacks(answer, "/var/lib");
	assert_has(stage->log, "submit for uid:");
	assert_has(stage->log, "/var/lib/caisson/ledger.db-wal");
	free(answer);
}

static void a_cancellation_is_taken_until_the_seal(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	char run_id[ID_SIZE];
	fixture_submit(&stage->fixture, NULL, run_id);
	assert_answer(stage, "POST", target_of(run_id, "/cancel"), "", "{}", "HTTP/1.1 202 ", "\"sealed\":false");
	assert_answer(stage, "POST", target_of(run_id, "/cancel"), "", "", "HTTP/1.1 202 ");
	assert_answer(stage, "GET", target_of(run_id, ""), "", NULL, "\"cancelled\":true");
	fixture_run(&stage->fixture, &attempt);
	assert_answer(stage, "POST", target_of(attempt.run_id, "/cancel"), "", "{}", "HTTP/1.1 409 ", "changes nothing any more");
}

static void workers_are_listed_and_recovered(void **state)
{
	struct stage *stage = *state;
	assert_answer(stage, "GET", "/v1/workers", "", NULL, "\"slot\":1", "\"state\":\"quarantined\"",
	              "\"reason\":\"not_verified_empty\"", "\"run\":\"run-a\"");
	assert_answer(stage, "POST", "/v1/workers/1/recover", "", "{}", "HTTP/1.1 200 ", "\"recovered\":true");
	assert_answer(stage, "POST", "/v1/workers/0/recover", "", "{}", "HTTP/1.1 409 ");
	assert_int_equal(stage->recovered, 1);
}

static void readiness_and_metrics_are_the_keepers_word(void **state)
{
	struct stage *stage = *state;
	assert_answer(stage, "GET", "/v1/readiness", "", NULL, "HTTP/1.1 503 ", "\"reason\":\"no_safe_worker\"");
	stage->ready = true;
	assert_answer(stage, "GET", "/v1/readiness", "", NULL, "HTTP/1.1 200 ", "\"ready\":true");
	assert_answer(stage, "GET", "/v1/health", "", NULL, "HTTP/1.1 200 ");
	assert_answer(stage, "GET", "/metrics", "", NULL, "text/plain; version=0.0.4", "caisson_runs_submitted_total 77\n",
	              "caisson_api_connections ");
}

/* This thread alone: the keeper's others stay who they are. */
static long become(uid_t uid)
{
	return syscall(SYS_setresuid, -1, uid, -1);
}

/* What another user may see, who gets the socket opened for them. */
static void others_see_their_own_runs_alone(void **state)
{
	struct stage *stage = *state;
	struct ledger_attempt attempt;
	char theirs[ID_SIZE];
	bool existing;
	if (geteuid() != 0) {
		print_message("only root can be somebody else\n");
		skip();
	}
	fixture_run(&stage->fixture, &attempt);
	assert_int_equal(fixture_try_submit(&stage->fixture, "uid:65534", NULL, theirs, &existing, NULL), 0);
	assert_int_equal(chmod(stage->socket_path, 0666), 0);
	assert_int_equal(chmod(stage->fixture.path, 0711), 0);
	assert_int_equal(become(NOBODY), 0);
	char *own = ask(stage, "GET", target_of(theirs, ""), "", NULL), *list = ask(stage, "GET", "/v1/runs", "", NULL);
	char *foreign[] = {
		ask(stage, "GET", target_of(attempt.run_id, ""), "", NULL),
		ask(stage, "GET", target_of(attempt.run_id, "/events"), "", NULL),
		ask(stage, "GET", target_of(attempt.run_id, "/logs?stream=stdout"), "", NULL),
		ask(stage, "GET", target_of(attempt.run_id, "/artifacts"), "", NULL),
		ask(stage, "GET", target_of(attempt.run_id, "/artifact?path=a"), "", NULL),
		ask(stage, "POST", target_of(attempt.run_id, "/cancel"), "", "{}"),
	};
	char *asked = ask(stage, "GET", "/v1/runs?owner=uid:0", "", NULL), *workers = ask(stage, "GET", "/v1/workers", "", NULL);
	char *recover = ask(stage, "POST", "/v1/workers/1/recover", "", "{}");
	char *rootfs = ask(stage, "POST", "/v1/runs", "",
	                   "{\"version\":\"caisson.manifest/v1\",\"command\":{\"argv\":[\"a\"]},\"rootfs\":\"/root\"}");
	assert_int_equal(become(0), 0);
	assert_has(own, "HTTP/1.1 200 ");
	assert_has(list, theirs);
	assert_lacks(list, attempt.run_id);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		assert_has(foreign[i], "HTTP/1.1 404 ");
		assert_has(foreign[i], "there is no such run");
		free(foreign[i]);
	}
	assert_has(asked, "\"runs\":[]");
	assert_lacks(workers, "run-a");
	assert_has(recover, "HTTP/1.1 403 ");
	assert_has(rootfs, "\"path\":\"$.rootfs\"");
	assert_int_equal(stage->recovered, 0);
	free(own);
	free(list);
	free(asked);
	free(workers);
	free(recover);
	free(rootfs);
}

static void a_front_that_dies_is_started_again(void **state)
{
	struct stage *stage = *state;
	char command[64];
	FD_AUTO int idle = dial(stage->socket_path);
	char byte;
	snprintf(command, sizeof(command), "/proc/self/task/%d/children", (int)getpid());
	assert_answer(stage, "GET", "/v1/health", "", NULL, "HTTP/1.1 200 ");
	FD_AUTO int children = open(command, O_RDONLY | O_CLOEXEC);
	char text[256] = "";
	assert_true(children >= 0 && read(children, text, sizeof(text) - 1) > 0);
	assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
	assert_int_equal(read(idle, &byte, 1), 0);
	/* One that is handed over before the end is seen is lost with it. */
	for (int64_t until = clock_mono_ns() + PATIENCE_S * NS_PER_S;;) {
		char *answer = ask(stage, "GET", "/v1/health", "", NULL);
		bool served = strstr(answer, "HTTP/1.1 200 ") != NULL;
		free(answer);
		if (served)
			break;
		assert_true(clock_mono_ns() < until);
	}
	assert_has(stage->log, "it is started again");
}

static void the_socket_is_the_owners_alone_and_taken_once(void **state)
{
	struct stage *stage = *state;
	struct stage second = {.fixture = stage->fixture, .store = stage->store, .core = stage->core};
	struct stat status;
	struct err err = ERR_INIT;
	assert_int_equal(stat(stage->socket_path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	memcpy(second.socket_path, stage->socket_path, sizeof(second.socket_path));
	assert_int_equal(stage_start(&second, &err), ERR_BUSY);
	assert_answer(stage, "GET", "/v1/health", "", NULL, "HTTP/1.1 200 ");
	snprintf(second.socket_path, sizeof(second.socket_path), "%s/ledger.db", stage->fixture.path);
	assert_int_equal(stage_start(&second, &err), ERR_EXISTS);
}

static void a_socket_that_nobody_listens_on_is_replaced(void **state)
{
	struct stage *stage = *state;
	struct stage second = {.fixture = stage->fixture, .store = stage->store, .core = stage->core};
	struct err err = ERR_INIT;
	snprintf(second.socket_path, sizeof(second.socket_path), "%s/other.sock", stage->fixture.path);
	struct sockaddr_un address = address_of(second.socket_path);
	int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&address, sizeof(address)), 0);
	close(stale);
	second.core.context = stage;
	if (stage_start(&second, &err))
		fail_msg("%s", err.text);
	assert_answer(&second, "GET", "/v1/health", "", NULL, "HTTP/1.1 200 ");
	api_free(second.api);
	assert_int_equal(access(second.socket_path, F_OK), -1);
}

static void short_of_descriptors_it_waits_and_goes_on(void **state)
{
	struct stage *stage = *state;
	struct rlimit before, low;
	enum { CLIENTS = 40 };
	int clients[CLIENTS];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(clients[i] >= 0);
	}
	low = before;
	low.rlim_cur = (rlim_t)clients[CLIENTS - 1] + 12;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < CLIENTS; i++) {
		struct sockaddr_un address = address_of(stage->socket_path);
		assert_int_equal(connect(clients[i], (struct sockaddr *)&address, sizeof(address)), 0);
	}
	for (int64_t until = clock_mono_ns() + PATIENCE_S * NS_PER_S;;) {
		pthread_mutex_lock(&stage->lock);
		bool told = strstr(stage->log, "Too many open files") != NULL;
		pthread_mutex_unlock(&stage->lock);
		if (told)
			break;
		assert_true(clock_mono_ns() < until);
		usleep(1000);
	}
	for (int i = 0; i < CLIENTS; i++)
		close(clients[i]);
	assert_answer(stage, "GET", "/v1/health", "", NULL, "HTTP/1.1 200 ");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		api_test(a_sealed_run_is_shown_with_its_receipt),
		api_test(artifacts_are_there_after_the_seal),
		api_test(a_queued_run_is_told_with_the_reason_of_its_pause),
		api_test(the_list_goes_on_where_its_cursor_says),
		api_test(the_list_is_cut_down_to_ids_that_begin_so),
		api_test(who_waits_hears_of_the_seal),
		api_test(who_waits_in_vain_is_answered_when_the_time_is_over),
		api_test(events_come_in_order_end_with_the_seal_and_say_nothing_private),
		api_test(events_that_are_not_followed_end_with_what_is_there),
		api_test(output_is_read_along_and_then_from_the_ledger),
		api_test(an_object_is_stored_under_its_digest),
		api_test(a_directory_is_made_of_its_listing_and_what_was_sent_before),
		api_test(a_submission_is_bound_to_who_sent_it),
		api_test(a_manifest_that_is_wrong_is_refused_by_its_path),
		api_test(what_the_keeper_refuses_has_its_status),
		api_test(a_cancellation_is_taken_until_the_seal),
		api_test(workers_are_listed_and_recovered),
		api_test(readiness_and_metrics_are_the_keepers_word),
		api_test(others_see_their_own_runs_alone),
		api_test(a_front_that_dies_is_started_again),
		api_test(the_socket_is_the_owners_alone_and_taken_once),
		api_test(a_socket_that_nobody_listens_on_is_replaced),
		api_test(short_of_descriptors_it_waits_and_goes_on),
	};
	if (argc != 2)
		return 2;
	stage_front(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
