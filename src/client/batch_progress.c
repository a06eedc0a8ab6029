/* batch_progress.c - the line that tells someone at a terminal how far it is. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "client/batch.h"

#define CLEAR_LINE "\r\033[K"

enum { SHOW_EVERY_MS = 200, LINE_MAX_BYTES = 160 };

void batch_progress_begin(struct batch_progress *progress)
{
	*progress = (struct batch_progress){.wanted = isatty(STDERR_FILENO), .begun_ns = clock_mono_ns()};
}

void batch_progress_show(struct batch *batch, int64_t now_ns)
{
	struct batch_progress *progress = &batch->progress;
	char line[LINE_MAX_BYTES];

	if (!progress->wanted || now_ns < progress->next_ns)
		return;
	progress->next_ns = now_ns + SHOW_EVERY_MS * NS_PER_MS;
	progress->shown = true;

	int64_t elapsed_ms = (now_ns - progress->begun_ns) / NS_PER_MS + 1;
	int length = snprintf(
		line, sizeof(line), CLEAR_LINE "caisson: batch: %lld done, %lld without a receipt, %zu in flight, %lld/s%s",
		(long long)batch->over, (long long)(batch->over - batch->sealed), batch->busy,
		(long long)(batch->over * (NS_PER_S / NS_PER_MS) / elapsed_ms), batch->first_signal ? ", cancelling" : "");

	/* Numbers and words of our own: nothing that would have to be escaped. */
	(void)fd_write_all(STDERR_FILENO, line, (size_t)length);
}

void batch_progress_clear(struct batch_progress *progress)
{
	if (progress->shown)
		(void)fd_write_all(STDERR_FILENO, CLEAR_LINE, strlen(CLEAR_LINE));
	progress->shown = false;
}
