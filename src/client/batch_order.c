/* batch_order.c - keeps results until their turn. */
#include "client/batch_order.h"

#include <stdlib.h>

int batch_order_init(struct batch_order *order, size_t room, bool unordered, struct err *err)
{
	*order = (struct batch_order){.unordered = unordered, .room = room, .ready = BUF_INIT(BATCH_READY_MAX)};
	order->waiting = calloc(room, sizeof(*order->waiting));
	if (!order->waiting)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < room; i++)
		order->waiting[i] = BUF_INIT(BATCH_READY_MAX);
	return 0;
}

void batch_order_done(struct batch_order *order)
{
	for (size_t i = 0; order->waiting && i < order->room; i++)
		buf_done(&order->waiting[i]);
	free(order->waiting);
	buf_done(&order->ready);
	*order = (struct batch_order){0};
}

bool batch_order_has_room(const struct batch_order *order)
{
	return order->unordered || order->begun - order->told < (int64_t)order->room;
}

int64_t batch_order_begin(struct batch_order *order)
{
	return order->begun++;
}

static int add_line(struct buf *buf, const char *text, struct err *err)
{
	int result = buf_puts(buf, text, err);

	return result ? result : buf_puts(buf, "\n", err);
}

int batch_order_put(struct batch_order *order, int64_t place, const char *text, struct err *err)
{
	if (order->unordered) {
		order->told++;
		return add_line(&order->ready, text, err);
	}

	int result = add_line(&order->waiting[(size_t)place % order->room], text, err);

	for (; result == 0 && order->told < order->begun; order->told++) {
		struct buf *next = &order->waiting[(size_t)order->told % order->room];

		if (!next->len)
			break;
		result = buf_append(&order->ready, next->data, next->len, err);
		buf_done(next);
	}
	return result;
}
