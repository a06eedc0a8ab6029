/* walk.h - what every walk through the lifecycle must keep, and the events that walks are made of; shared by explorer and
 * random orders.
 *
 * The properties are stated over single moves (before, event, after), and know nothing of the transition table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lifecycle/lifecycle.h"

struct move {
	const struct life *before;
	const struct life_event *event;
	const struct life *after;
	const struct life_actions *actions;
};

/* NULL when the move keeps every property, else the one that it breaks. */
const char *walk_broken_by(const struct move *move);

/* The same for a move that was refused with this code: before and after must be equal. */
const char *walk_broken_by_refusal(const struct move *move, int code);

/* NULL, or what is wrong with a state on its own: its invariants, its verdict, whether a cancellation is heard as
 * life_stoppable says. */
const char *walk_broken_in(const struct life *life);

/* Every event with each of its small choices of parameters. */
size_t walk_event_count(void);
const struct life_event *walk_event(size_t index);

/* May this event answer this action? A caller that performs the action waits for one of these. */
bool walk_answers(enum life_action action, const struct life_event *event);
