/* random_orders.c - throws events at the real life_step() in random order and checks every move; the seed is printed and may be
 * given.
 *
 * A walk begins somewhere on the straight way to `running`, for chance alone would hardly ever get there. From then on half of the
 * events are an answer to the pending action; the others are anything at any time, and some are nonsense. At the end a recovery
 * must be able to seal whatever is left. Usage: random_orders [seed [walks]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "walk.h"

enum { WALKS_DEFAULT = 20000, WALK_EVENTS = 60, PATH_MAX_EVENTS = WALK_EVENTS + 16 };

struct walker {
	uint64_t random;
	struct life life;
	struct life_actions pending;
	struct life_event path[PATH_MAX_EVENTS];
	size_t path_count;
	long accepted, refused;
};

/* SplitMix64: small, and the same everywhere. */
static uint64_t next_random(struct walker *walker)
{
	uint64_t z = walker->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t below(struct walker *walker, size_t count)
{
	return (size_t)(next_random(walker) % count);
}

__attribute__((noreturn)) static void broken(const struct walker *walker, const char *what)
{
	printf("broken: %s\n  now %s, after:\n", what, life_state_name(walker->life.state));
	for (size_t i = 0; i < walker->path_count; i++)
		printf("    %s (cause %s, step %s, reason \"%.20s\")\n", life_event_name(walker->path[i].kind),
		       stop_cause_name(walker->path[i].cause), life_step_name(walker->path[i].step), walker->path[i].reason);
	exit(1);
}

static int feed(struct walker *walker, const struct life_event *event)
{
	struct life before;
	struct life_actions actions = {.count = 0};
	const struct move move = {&before, event, &walker->life, &actions};

	memcpy(&before, &walker->life, sizeof(before));
	walker->path[walker->path_count++] = *event;
	int result = life_step(&walker->life, event, &actions, NULL);
	const char *wrong = result < 0 ? walk_broken_by_refusal(&move, result) : walk_broken_by(&move);
	if (!wrong)
		wrong = walk_broken_in(&walker->life);
	if (wrong)
		broken(walker, wrong);
	walker->refused += result < 0;
	walker->accepted += result == 0;
	if (actions.count > 0)
		walker->pending = actions;
	return result;
}

/* Out of range in every way that a damaged message could bring about. */
static void make_nonsense(struct walker *walker, struct life_event *event)
{
	event->cause = (enum stop_cause)below(walker, STOP_CAUSE_COUNT + 2);
	event->step = (enum life_step)below(walker, STEP_COUNT + 2);
	event->exit = (struct main_exit){
		.how = (enum main_end)below(walker, 5),
		.code = (int)below(walker, 600) - 200,
		.signal = (int)below(walker, 100) - 20,
		.killed_by_us = below(walker, 2) == 0,
	};
	if (below(walker, 4) == 0)
		event->kind = (enum life_event_kind)below(walker, LIFE_EVENT_COUNT + 3);
	if (below(walker, 8) == 0)
		memset(event->detail, 'x', sizeof(event->detail));
}

static void choose_event(struct walker *walker, struct life_event *ret)
{
	bool fitting = walker->pending.count > 0 && below(walker, 2) == 0;

	do
		*ret = *walk_event(below(walker, walk_event_count()));
	while (fitting && !walk_answers(walker->pending.list[walker->pending.count - 1], ret));
	ret->at_ns = (int64_t)walker->path_count + 1;
	/* A recovery at every second step would let nothing else happen. */
	if (ret->kind == LIFE_EV_RECOVERY_STARTED && below(walker, 8) != 0)
		*ret = *walk_event(0);
	if (below(walker, 10) == 0)
		make_nonsense(walker, ret);
}

static const enum life_event_kind straight_way[] = {LIFE_EV_ADMIT, LIFE_EV_PREPARED, LIFE_EV_SUSPENDED, LIFE_EV_ENROLLED,
                                                    LIFE_EV_INTENT_DURABLE, LIFE_EV_LAUNCHED};
enum { STRAIGHT_STEPS = sizeof(straight_way) / sizeof(straight_way[0]) };

static void begin(struct walker *walker)
{
	memset(&walker->life, 0, sizeof(walker->life));
	walker->pending.count = 0;
	walker->path_count = 0;
	life_init(&walker->life, below(walker, 2) == 0 ? 0 : 2000, below(walker, 2) == 0 ? 0 : 500);
	walker->life.retriable = below(walker, 2) == 0;
	for (size_t i = 0, steps = below(walker, STRAIGHT_STEPS + 1); i < steps; i++)
		feed(walker, &(struct life_event){.kind = straight_way[i], .at_ns = (int64_t)i + 1});
}

static void end_by_recovery(struct walker *walker)
{
	static const enum life_event_kind way[] = {LIFE_EV_RECOVERY_STARTED, LIFE_EV_CLEANED, LIFE_EV_VERIFIED_EMPTY,
	                                           LIFE_EV_SEALED};

	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]) && walker->life.state < LIFE_SEALED; i++) {
		struct life_event event = {.kind = way[i], .at_ns = (int64_t)walker->path_count + 1};
		if (event.kind == LIFE_EV_SEALED && walker->life.requeue)
			event.kind = LIFE_EV_ABANDONED;
		if (feed(walker, &event) < 0)
			broken(walker, "R11: a recovery can end whatever is left");
	}
}

int main(int argc, char **argv)
{
	static struct walker walker;
	long entered[LIFE_STATE_COUNT] = {0};
	uint64_t seed = 0;
	long walks = argc > 2 ? strtol(argv[2], NULL, 10) : WALKS_DEFAULT;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return 1;
	printf("seed %" PRIu64 ", %ld walks of %d events\n", seed, walks, WALK_EVENTS);
	fflush(stdout);
	walker.random = seed;
	for (long i = 0; i < walks; i++) {
		begin(&walker);
		for (int j = 0; j < WALK_EVENTS; j++) {
			struct life_event event;
			choose_event(&walker, &event);
			enum life_state before = walker.life.state;
			feed(&walker, &event);
			entered[walker.life.state] += walker.life.state != before;
		}
		end_by_recovery(&walker);
	}
	printf("%ld moves, %ld refusals; states entered:", walker.accepted, walker.refused);
	for (int i = 0; i < LIFE_STATE_COUNT; i++)
		printf(" %s %ld", life_state_name((enum life_state)i), entered[i]);
	printf("\n");
	return 0;
}
