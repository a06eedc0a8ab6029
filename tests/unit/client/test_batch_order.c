/* test_batch_order.c - results in the order of their lines, each once, whatever order they come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/batch_order.h"

enum { ROOM = 4, LINES = 200 };

static void put(struct batch_order *order, int64_t place)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)place);
	assert_int_equal(batch_order_put(order, place, text, NULL), 0);
}

static void expect_ready(const struct batch_order *order, const char *expected)
{
	assert_string_equal(order->ready.len ? order->ready.data : "", expected);
}

static void results_wait_for_those_before_them(void **state)
{
	(void)state;
	struct batch_order order;

	assert_int_equal(batch_order_init(&order, ROOM, false, NULL), 0);
	for (int64_t place = 0; place < 3; place++)
		assert_int_equal(batch_order_begin(&order), place);
	put(&order, 2);
	put(&order, 1);
	expect_ready(&order, "");
	put(&order, 0);
	expect_ready(&order, "0\n1\n2\n");
	batch_order_done(&order);
}

static void a_slow_first_line_stops_the_beginning_when_there_is_no_room(void **state)
{
	(void)state;
	struct batch_order order;

	assert_int_equal(batch_order_init(&order, ROOM, false, NULL), 0);
	for (int64_t place = 0; place < ROOM; place++) {
		assert_true(batch_order_has_room(&order));
		batch_order_begin(&order);
	}
	for (int64_t place = 1; place < ROOM; place++)
		put(&order, place);
	assert_false(batch_order_has_room(&order));
	put(&order, 0);
	assert_true(batch_order_has_room(&order));
	batch_order_done(&order);
}

static void without_an_order_each_is_ready_at_once(void **state)
{
	(void)state;
	struct batch_order order;

	assert_int_equal(batch_order_init(&order, ROOM, true, NULL), 0);
	for (int64_t place = 0; place < 3 * ROOM; place++) {
		assert_true(batch_order_has_room(&order));
		batch_order_begin(&order);
	}
	put(&order, 9);
	put(&order, 0);
	expect_ready(&order, "9\n0\n");
	batch_order_done(&order);
}

/* Any order within the room: each line's result once, and in its place. */
static void any_order_becomes_that_of_the_lines(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 50; seed++) {
		struct batch_order order;
		int64_t open[ROOM], count = 0;
		BUF_AUTO struct buf expected = BUF_INIT(LINES * 8);

		srand(seed);
		assert_int_equal(batch_order_init(&order, ROOM, false, NULL), 0);
		for (int64_t begun = 0; begun < LINES || count;) {
			if (begun < LINES && count < ROOM && batch_order_has_room(&order)) {
				assert_int_equal(buf_printf(&expected, NULL, "%lld\n", (long long)begun), 0);
				open[count++] = batch_order_begin(&order);
				begun++;
				continue;
			}

			int64_t chosen = rand() % count;

			put(&order, open[chosen]);
			open[chosen] = open[--count];
		}
		expect_ready(&order, expected.data);
		batch_order_done(&order);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_wait_for_those_before_them),
		cmocka_unit_test(a_slow_first_line_stops_the_beginning_when_there_is_no_room),
		cmocka_unit_test(without_an_order_each_is_ready_at_once),
		cmocka_unit_test(any_order_becomes_that_of_the_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
