/* test_protocol.c - the phase table as a table, every message there and back, and what is no message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "keeper/protocol.h"

/* Rows: phases idle opened prepared suspended enrolled launched exited cleaned. */
static const struct {
	enum request_kind kind;
	const char *allowed; /* one character a phase: '.' not allowed, else the first letter of the phase after success */
	const char *failed;  /* and after failure */
} table[] = {
	/*                     ioPselxc    */
	{REQUEST_OPEN,      "o.......", "i......."},
	{REQUEST_PREPARE,   ".p......", ".x......"},
	{REQUEST_CREATE,    "..s.....", "..x....."},
	{REQUEST_ENROLL,    "...e....", "...x...."},
	{REQUEST_LAUNCH,    "....l...", "....x..."},
	{REQUEST_OBSERVE,   ".....lx.", ".....lx."},
	{REQUEST_TERMINATE, ".....lx.", ".....lx."},
	{REQUEST_KILL,      ".xxxxxxx", ".xxxxxxx"},
	{REQUEST_DRAIN,     ".....lx.", ".....lx."},
	{REQUEST_CLEANUP,   ".ccccccc", ".xxxxxxx"},
	{REQUEST_VERIFY,    ".......c", ".......c"},
	{REQUEST_COLLECT,   ".......c", ".......c"},
	{REQUEST_INTERRUPT, "iopselxc", "iopselxc"},
	{REQUEST_FREE,      ".iiiiiii", ".iiiiiii"},
};

static const char letters[] = "iopselxc";

static void the_phase_table_is_this_one(void **unused)
{
	(void)unused;
	assert_int_equal(sizeof(table) / sizeof(table[0]), REQUEST_COUNT);
	for (size_t row = 0; row < REQUEST_COUNT; row++)
		for (int phase = 0; phase < WORKER_PHASE_COUNT; phase++) {
			enum request_kind kind = table[row].kind;
			char want = table[row].allowed[phase];
			assert_int_equal(protocol_allows((enum worker_phase)phase, kind), want != '.');
			if (want == '.')
				continue;
			assert_int_equal(letters[protocol_next((enum worker_phase)phase, kind, true, NULL)], want);
			assert_int_equal(letters[protocol_next((enum worker_phase)phase, kind, false, NULL)], table[row].failed[phase]);
		}
}

static void launch_is_reached_from_enrolled_alone(void **unused)
{
	(void)unused;
	for (int phase = 0; phase < WORKER_PHASE_COUNT; phase++) {
		assert_int_equal(protocol_allows((enum worker_phase)phase, REQUEST_LAUNCH), phase == WORKER_ENROLLED);
		for (int kind = 0; kind < REQUEST_COUNT; kind++)
			if (protocol_allows((enum worker_phase)phase, (enum request_kind)kind) && kind != REQUEST_ENROLL &&
			    kind != REQUEST_INTERRUPT) {
				assert_int_not_equal(protocol_next((enum worker_phase)phase, (enum request_kind)kind, true, NULL), WORKER_ENROLLED);
				assert_int_not_equal(protocol_next((enum worker_phase)phase, (enum request_kind)kind, false, NULL), WORKER_ENROLLED);
			}
	}
}

static void mains_end_and_a_lost_init_end_the_launched_phase(void **unused)
{
	(void)unused;
	const enum boundary_event_kind kinds[] = {BOUNDARY_MAIN_EXITED, BOUNDARY_LIMIT, BOUNDARY_INTERRUPTED, BOUNDARY_DEADLINE, BOUNDARY_LOST};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct boundary_event event = {.kind = kinds[i]};
		bool ends = kinds[i] == BOUNDARY_MAIN_EXITED || kinds[i] == BOUNDARY_LOST;
		assert_int_equal(protocol_next(WORKER_LAUNCHED, REQUEST_OBSERVE, true, &event), ends ? WORKER_EXITED : WORKER_LAUNCHED);
	}
}

static void only_interrupt_and_free_have_no_answer(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < REQUEST_COUNT; kind++)
		assert_int_equal(protocol_replies((enum request_kind)kind), kind != REQUEST_INTERRUPT && kind != REQUEST_FREE);
}

static struct request travel_request(const struct request *request)
{
	struct request got;
	struct err err = ERR_INIT;
	BUF_AUTO struct buf text = BUF_INIT(4096);
	assert_int_equal(request_encode(request, &text, &err), 0);
	assert_int_equal(request_decode(text.data, text.len, &got, &err), 0);
	assert_int_equal(got.kind, request->kind);
	return got;
}

static void every_request_comes_back_as_it_was(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < REQUEST_COUNT; kind++) {
		bool may_go_on = kind == REQUEST_PREPARE || kind == REQUEST_OBSERVE;
		struct request request = {.kind = (enum request_kind)kind, .deadline_ns = INT64_MAX, .lease_ends_at_ns = 12, .go_on = may_go_on};
		id_new("led", request.identity.ledger_id);
		id_new("bnd", request.identity.boundary_id);
		struct request got = travel_request(&request);
		assert_int_equal(got.go_on, may_go_on);
		request.go_on = false;
		assert_false(travel_request(&request).go_on);
		if (kind == REQUEST_PREPARE) {
			assert_string_equal(got.identity.ledger_id, request.identity.ledger_id);
			assert_string_equal(got.identity.boundary_id, request.identity.boundary_id);
		}
		if (kind == REQUEST_OBSERVE)
			assert_int_equal(got.deadline_ns, INT64_MAX);
		assert_int_equal(got.lease_ends_at_ns, protocol_begins(request.kind) ? 12 : 0);
	}
}

static struct reply full_reply(enum request_kind kind)
{
	struct reply reply = {
		.kind = kind,
		.at_ns = 9,
		.event = {.kind = BOUNDARY_LOST, .at_ns = 11, .limit = BOUNDARY_LIMIT_MEMORY, .how = BOUNDARY_NOT_EXECUTED, .status = 260,
	                  .launched_at_ns = 12, .killed_by_us = true, .descendants_alive = -1, .detail = "a \"detail\""},
		.drain = {.stdout_retained = true, .stderr_retained = false},
		.usage = {.cpu_user_ns = 1, .cpu_system_ns = 2, .cpu_total_ns = 3, .memory_peak_bytes = 4, .memory_peak_anon_sampled_bytes = 5,
	                  .pids_peak = 6, .oom_kills = -1, .survivors_killed = 8, .space_full = true},
		.standard_output = {.total_bytes = 10, .kept_bytes = 8, .dropped_bytes = 2, .overflow = true, .drained = true},
		.standard_error = {.total_bytes = 1, .kept_bytes = 1},
	};
	struct err err = ERR_INIT;
	evidence_add(&reply.evidence, "ns.pid", EVIDENCE_OBSERVED, &err, "pid:[1]");
	evidence_add(&reply.evidence, "seccomp", EVIDENCE_ATTESTED, &err, "mode 2");
	return reply;
}

static void travel_reply(const struct reply *reply, struct reply *ret)
{
	struct err err = ERR_INIT;
	BUF_AUTO struct buf text = BUF_INIT(64 * 1024);
	assert_int_equal(reply_encode(reply, &text, &err), 0);
	assert_int_equal(reply_decode(text.data, text.len, ret, &err), 0);
	assert_int_equal(ret->kind, reply->kind);
}

/* Members one by one: padding says nothing. */
static void event_is(const struct boundary_event *a, const struct boundary_event *b)
{
	assert_true(a->kind == b->kind && a->at_ns == b->at_ns && a->limit == b->limit && a->how == b->how && a->status == b->status);
	assert_true(a->launched_at_ns == b->launched_at_ns && a->killed_by_us == b->killed_by_us);
	assert_int_equal(a->descendants_alive, b->descendants_alive);
	assert_string_equal(a->detail, b->detail);
}

static void usage_is(const struct boundary_usage *a, const struct boundary_usage *b)
{
	assert_true(a->cpu_user_ns == b->cpu_user_ns && a->cpu_system_ns == b->cpu_system_ns && a->cpu_total_ns == b->cpu_total_ns);
	assert_true(a->memory_peak_bytes == b->memory_peak_bytes && a->pids_peak == b->pids_peak && a->oom_kills == b->oom_kills);
	assert_true(a->memory_peak_anon_sampled_bytes == b->memory_peak_anon_sampled_bytes && a->space_full == b->space_full);
	assert_int_equal(a->survivors_killed, b->survivors_killed);
}

static void state_is(const struct capture_state *a, const struct capture_state *b)
{
	assert_true(a->total_bytes == b->total_bytes && a->kept_bytes == b->kept_bytes && a->dropped_bytes == b->dropped_bytes);
	assert_true(a->overflow == b->overflow && a->drained == b->drained);
}

static void every_reply_comes_back_as_it_was(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < REQUEST_COUNT; kind++) {
		static struct reply sent, got;
		sent = full_reply((enum request_kind)kind);
		travel_reply(&sent, &got);
		assert_int_equal(got.error.code, 0);
		assert_int_equal(got.at_ns, 9);
		if (kind == REQUEST_OBSERVE)
			event_is(&got.event, &sent.event);
		if (kind == REQUEST_CLEANUP)
			usage_is(&got.usage, &sent.usage);
		if (kind == REQUEST_DRAIN) {
			assert_true(got.drain.stdout_retained && !got.drain.stderr_retained);
			state_is(&got.standard_output, &sent.standard_output);
			state_is(&got.standard_error, &sent.standard_error);
		}
		bool steps = kind == REQUEST_PREPARE || kind == REQUEST_CREATE || kind == REQUEST_ENROLL;
		assert_int_equal(got.evidence.count, steps ? 2 : 0);
		if (steps) {
			assert_string_equal(got.evidence.lines[1].name, "seccomp");
			assert_string_equal(got.evidence.lines[1].detail, "mode 2");
			assert_int_equal(got.evidence.lines[1].grade, EVIDENCE_ATTESTED);
		}
	}
}

static void a_failure_travels_with_its_text_evidence_and_counters(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < REQUEST_COUNT; kind++) {
		static struct reply sent, got;
		sent = full_reply((enum request_kind)kind);
		err_set(&sent.error, ERR_UNENFORCEABLE, "limits.pids: \"no\" controller");
		travel_reply(&sent, &got);
		assert_int_equal(got.error.code, ERR_UNENFORCEABLE);
		assert_string_equal(got.error.text, "limits.pids: \"no\" controller");
		if (kind == REQUEST_ENROLL)
			assert_int_equal(got.evidence.count, 2);
		if (kind == REQUEST_DRAIN)
			state_is(&got.standard_output, &sent.standard_output);
	}
}

static void bytes_that_are_no_text_are_escaped_and_cut(void **unused)
{
	(void)unused;
	static struct reply sent, got;
	sent = (struct reply){.kind = REQUEST_ENROLL};
	memset(sent.evidence.lines[0].detail, 0xff, EVIDENCE_DETAIL_MAX - 1);
	sent.evidence.count = 1;
	travel_reply(&sent, &got);
	assert_int_equal(strlen(got.evidence.lines[0].detail), EVIDENCE_DETAIL_MAX - 1);
	assert_memory_equal(got.evidence.lines[0].detail, "\\xff\\xff", 8);
}

static void all_evidence_there_can_be_fits(void **unused)
{
	(void)unused;
	static struct reply sent, got;
	sent = (struct reply){.kind = REQUEST_ENROLL};
	for (size_t i = 0; i < EVIDENCE_MAX; i++) {
		memset(sent.evidence.lines[i].name, 'n', EVIDENCE_NAME_MAX - 1);
		memset(sent.evidence.lines[i].detail, '\x01', EVIDENCE_DETAIL_MAX - 1);
	}
	sent.evidence.count = EVIDENCE_MAX;
	struct err err = ERR_INIT;
	BUF_AUTO struct buf text = BUF_INIT(256 * 1024);
	assert_int_equal(reply_encode(&sent, &text, &err), 0);
	assert_int_equal(reply_decode(text.data, text.len, &got, &err), 0);
	assert_int_equal(got.evidence.count, EVIDENCE_MAX);
}

static void a_worker_goes_on_to_enroll_or_from_mains_end_to_verify(void **unused)
{
	static const enum request_kind then[REQUEST_COUNT + 1] = {
		[REQUEST_PREPARE] = REQUEST_CREATE, [REQUEST_CREATE] = REQUEST_ENROLL,   [REQUEST_OBSERVE] = REQUEST_DRAIN,
		[REQUEST_DRAIN] = REQUEST_CLEANUP,  [REQUEST_CLEANUP] = REQUEST_VERIFY,
	};
	(void)unused;
	for (int kind = 0; kind < REQUEST_COUNT; kind++) {
		static struct reply reply;
		reply = (struct reply){.kind = (enum request_kind)kind, .event.kind = BOUNDARY_MAIN_EXITED};
		assert_int_equal(protocol_then(&reply), then[kind] ? then[kind] : REQUEST_COUNT);
		reply.error.code = ERR_UNVERIFIED;
		assert_int_equal(protocol_then(&reply), REQUEST_COUNT);
	}
	for (int event = BOUNDARY_LIMIT; event <= BOUNDARY_LOST; event++)
		assert_int_equal(protocol_then(&(struct reply){.kind = REQUEST_OBSERVE, .event.kind = (enum boundary_event_kind)event}),
		                 REQUEST_COUNT);
}

static void what_is_no_request_is_a_breach(void **unused)
{
	(void)unused;
	const char *wrong[] = {
		"", "x", "[]", "{}", "null", "{\"op\":7}", "{\"op\":\"dance\"}", "{\"op\":\"kill\"}x",
		"{\"op\":\"kill\",\"op\":\"kill\"}",
		"{\"op\":\"kill\",\"also\":1}",
		"{\"op\":\"kill\",\"until\":{\"deadline_ns\":1}}",
		"{\"op\":\"observe\"}",
		"{\"op\":\"observe\",\"until\":{}}",
		"{\"op\":\"observe\",\"until\":{\"deadline_ns\":\"1\"}}",
		"{\"op\":\"observe\",\"until\":{\"deadline_ns\":1.5}}",
		"{\"op\":\"observe\",\"until\":{\"deadline_ns\":1,\"x\":1}}",
		"{\"op\":\"observe\",\"until\":{\"deadline_ns\":1},\"go_on\":false}",
		"{\"op\":\"observe\",\"until\":{\"deadline_ns\":1},\"go_on\":1}",
		"{\"op\":\"enroll\",\"go_on\":true}",
		"{\"op\":\"prepare\"}",
		"{\"op\":\"prepare\",\"identity\":{\"boundary_id\":\"bnd-aaaaaaaaaaaaaaaa\"}}",
		"{\"op\":\"prepare\",\"identity\":{\"boundary_id\":\"../../../etc\",\"ledger_id\":\"led-aaaaaaaaaaaaaaaa\"}}",
		"{\"op\":\"prepare\",\"identity\":{\"boundary_id\":\"bnd-aaaaaaaaaaaaaaaa\",\"ledger_id\":\"bnd-aaaaaaaaaaaaaaaa\"}}",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct request request;
		struct err err = ERR_INIT;
		int result = request_decode(wrong[i], strlen(wrong[i]), &request, &err);
		if (result != ERR_PROTOCOL)
			print_message("taken for a request: %s\n", wrong[i]);
		assert_int_equal(result, ERR_PROTOCOL);
		assert_int_equal(err.code, ERR_PROTOCOL);
	}
}

static void what_is_no_reply_is_a_breach(void **unused)
{
	(void)unused;
	const char *wrong[] = {
		"{\"op\":\"launch\"}",
		"{\"at_ns\":-1,\"op\":\"launch\"}",
		"{\"at_ns\":1,\"op\":\"observe\"}",
		"{\"at_ns\":1,\"op\":\"launch\",\"event\":{}}",
		"{\"at_ns\":1,\"op\":\"launch\",\"error\":{\"code\":0,\"text\":\"\"}}",
		"{\"at_ns\":1,\"op\":\"launch\",\"error\":{\"code\":-99,\"text\":\"\"}}",
		"{\"at_ns\":1,\"op\":\"launch\",\"error\":{\"code\":-3}}",
		"{\"at_ns\":1,\"op\":\"enroll\"}",
		"{\"at_ns\":1,\"op\":\"enroll\",\"evidence\":{}}",
		"{\"at_ns\":1,\"op\":\"enroll\",\"evidence\":[1]}",
		"{\"at_ns\":1,\"op\":\"enroll\",\"evidence\":[{\"name\":\"a\",\"detail\":\"b\",\"grade\":9}]}",
		"{\"at_ns\":1,\"op\":\"enroll\",\"evidence\":[{\"name\":\"a\\u0000\",\"detail\":\"b\",\"grade\":0}]}",
		"{\"at_ns\":1,\"op\":\"drain\",\"drain\":{\"stdout_retained\":false,\"stderr_retained\":false}}",
		"{\"at_ns\":1,\"op\":\"drain\",\"drain\":{\"stdout_retained\":0,\"stderr_retained\":0}}",
		"{\"at_ns\":1,\"op\":\"cleanup\",\"usage\":{\"cpu_user_ns\":-2}}",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		static struct reply reply;
		struct err err = ERR_INIT;
		if (reply_decode(wrong[i], strlen(wrong[i]), &reply, &err) != ERR_PROTOCOL) {
			print_message("taken for a reply: %s\n", wrong[i]);
			fail();
		}
	}
}

static void more_evidence_than_there_can_be_is_a_breach(void **unused)
{
	(void)unused;
	static struct reply reply;
	struct err err = ERR_INIT;
	BUF_AUTO struct buf text = BUF_INIT(64 * 1024);
	buf_puts(&text, "{\"at_ns\":1,\"op\":\"enroll\",\"evidence\":[", &err);
	for (int i = 0; i <= EVIDENCE_MAX; i++)
		buf_printf(&text, &err, "%s{\"name\":\"n\",\"detail\":\"d\",\"grade\":0}", i ? "," : "");
	buf_puts(&text, "]}", &err);
	assert_int_equal(reply_decode(text.data, text.len, &reply, &err), ERR_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_phase_table_is_this_one),
		cmocka_unit_test(launch_is_reached_from_enrolled_alone),
		cmocka_unit_test(mains_end_and_a_lost_init_end_the_launched_phase),
		cmocka_unit_test(only_interrupt_and_free_have_no_answer),
		cmocka_unit_test(every_request_comes_back_as_it_was),
		cmocka_unit_test(every_reply_comes_back_as_it_was),
		cmocka_unit_test(a_failure_travels_with_its_text_evidence_and_counters),
		cmocka_unit_test(bytes_that_are_no_text_are_escaped_and_cut),
		cmocka_unit_test(all_evidence_there_can_be_fits),
		cmocka_unit_test(a_worker_goes_on_to_enroll_or_from_mains_end_to_verify),
		cmocka_unit_test(what_is_no_request_is_a_breach),
		cmocka_unit_test(what_is_no_reply_is_a_breach),
		cmocka_unit_test(more_evidence_than_there_can_be_is_a_breach),
	};
	return cmocka_run_group_tests_name("protocol", tests, NULL, NULL);
}
