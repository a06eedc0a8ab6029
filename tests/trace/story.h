/* story.h - a life told as text: one event a line, and what the real life_step() answers to it.
 *
 *     grace cancel 2000 limit 0       sets the graces (before the first event)
 *     totals cpu_ms 1500              sets what the runner found after exit: cpu_ms, oom_kills, output_over, retained_ignored
 *     wait 1000                       lets time pass, in milliseconds
 *     restore running intent          a new keeper finds the attempt in this state; also: restore quarantined intent quarantined
 *     stop wall -> running [kill, observe]
 *     launched -> no: event launched is not allowed in state admitted
 *     verdict -> timed_out wall_limit, exit 124: ran 1000 ms of 1000 ms
 *
 * Everything from " -> " on is what the story teller puts in; comments (#) and blank lines stay as they are. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "lifecycle/verdict.h"

enum {
	STORY_MAX_BYTES = 64 * 1024,
	STORY_LINE_MAX = 256,
};

/* Reads "stop wall", "main_exited signal 9 ours", … into *ret. ERR_INVALID names the word. */
int story_event(const char *line, int64_t at_ns, struct life_event *ret, struct err *err);

/* Tells the story again: every line's left side as it is, every right side as the lifecycle answers now. ERR_INVALID names the
 * line. */
int story_tell(const char *text, struct buf *ret, struct err *err);
