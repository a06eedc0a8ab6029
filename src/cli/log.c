/* log.c - lines that a pipe takes whole or not at all. */
#include "cli/log.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

enum { LINE_MAX_BYTES = PIPE_BUF }; /* a pipe that can be written to has room for so many (pipe(7)) */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* between looking for room and using it */
static uint64_t dropped;

static bool put(json_t *line)
{
	BUF_AUTO struct buf text = BUF_INIT(LINE_MAX_BYTES);
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (dropped > 0)
		json_object_set_new(line, "dropped", json_integer((json_int_t)dropped));
	if (json_canonical(line, &text, NULL) < 0 || buf_puts(&text, "\n", NULL) < 0)
		return false;
	return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) && write(STDERR_FILENO, text.data, text.len) == (ssize_t)text.len;
}

void log_event(void *context, const char *event, json_t *details)
{
	JSON_AUTO json_t *line = details ? details : json_object();
	char at[CLOCK_TEXT_SIZE];

	(void)context;
	json_object_set_new(line, "at", json_string(clock_format(clock_wall_ms(), at)));
	json_object_set_new(line, "event", json_string(event));
	pthread_mutex_lock(&lock);
	dropped = put(line) ? 0 : dropped + 1;
	pthread_mutex_unlock(&lock);
}
