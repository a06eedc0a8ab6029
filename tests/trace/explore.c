/* explore.c - walks breadth-first through every state that the real life_step() can reach, and checks each state and each move.
 *
 * Times and free text do not decide anything, so two lives that differ in them alone are one state. The walk goes on until
 * nothing new is found or `depth` moves were made; at the end it asks whether every state leads to a terminal one. Usage:
 * explore [depth] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lifecycle/transitions.h"
#include "walk.h"

enum {
	STATES_MAX = 65536,
	EDGES_MAX = 8 * STATES_MAX,
	TABLE_SIZE = 4 * STATES_MAX, /* a power of two */
	ROWS_MAX = 128,
	DEPTH_DEFAULT = 64,
};

struct node {
	struct life life;
	uint64_t key;
	int depth;
};

struct edge {
	int from, to;
	bool recovery; /* made by RECOVERY_STARTED */
};

struct explorer {
	struct node nodes[STATES_MAX];
	struct edge edges[EDGES_MAX];
	int table[TABLE_SIZE]; /* index of a node + 1; 0: free */
	int node_count, edge_count;
	long refusals;
	long row_used[ROWS_MAX];
};

__attribute__((noreturn)) static void broken(const struct life *life, const struct life_event *event, const char *what)
{
	printf("broken: %s\n  in state %s (intent %d, launched %d, stop %s, failed step %s)\n  on event %s\n", what,
	       life_state_name(life->state), life->intent, life->launched, stop_cause_name(life->stop),
	       life_step_name(life->failed_step), event ? life_event_name(event->kind) : "-");
	exit(1);
}

/* --- states --- */

static unsigned reason_class(const char *reason)
{
	static const char *const known[] = {"", LIFE_REASON_WORKER_LOST, LIFE_REASON_INIT_LOST, LIFE_REASON_KEEPER_LOST,
	                                    LIFE_REASON_NOT_VERIFIED_EMPTY};
	unsigned i = 0;

	while (i < sizeof(known) / sizeof(known[0]) && strcmp(reason, known[i]) != 0)
		i++;
	return i;
}

static void add_bits(uint64_t *key, uint64_t value, int bits)
{
	*key = *key << bits | value;
}

/* Everything that a decision may depend on. */
static uint64_t key_of(const struct life *life)
{
	const bool flags[] = {
		life->intent, life->launched, life->interrupted, life->terminating, life->killing, life->exit.killed_by_us,
		life->exit.code != 0, life->drained, life->retained, life->boundary_misbehaved, life->cleaned, life->verified_empty,
		life->was_quarantined, life->grace_ms != 0, life->limit_grace_ms != 0, life->launched_at_ns != 0,
		life->retriable, life->lost, life->requeue,
	};
	uint64_t key = 0;

	for (size_t i = 0; i < sizeof(flags); i++)
		add_bits(&key, flags[i], 1);
	add_bits(&key, life->state, 4);
	add_bits(&key, life->stop, 3);
	add_bits(&key, life->failed_step, 3);
	add_bits(&key, life->exit.how, 2);
	add_bits(&key, reason_class(life->boundary_reason), 3);
	return key;
}

static int find_or_add(struct explorer *explorer, const struct life *life, int depth)
{
	uint64_t key = key_of(life);
	size_t slot = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (TABLE_SIZE - 1);

	while (explorer->table[slot] != 0) {
		int index = explorer->table[slot] - 1;
		if (explorer->nodes[index].key == key)
			return index;
		slot = (slot + 1) & (TABLE_SIZE - 1);
	}
	if (explorer->node_count == STATES_MAX)
		broken(life, NULL, "more states than STATES_MAX");
	const char *wrong = walk_broken_in(life);
	if (wrong)
		broken(life, NULL, wrong);
	int index = explorer->node_count++;
	explorer->nodes[index] = (struct node){.key = key, .depth = depth};
	memcpy(&explorer->nodes[index].life, life, sizeof(*life));
	explorer->table[slot] = index + 1;
	return index;
}

static void add_edge(struct explorer *explorer, int from, int to, bool recovery)
{
	if (explorer->edge_count == EDGES_MAX)
		broken(&explorer->nodes[from].life, NULL, "more moves than EDGES_MAX");
	explorer->edges[explorer->edge_count++] = (struct edge){from, to, recovery};
}

/* --- moves --- */

/* At most one row holds, so the order of the table's rows decides nothing. */
static void count_row(struct explorer *explorer, const struct life *life, const struct life_event *event)
{
	int holding = 0;

	for (size_t i = 0; i < life_transition_count; i++)
		if (life_row_holds(&life_transitions[i], life, event)) {
			explorer->row_used[i]++;
			holding++;
		}
	if (holding > 1)
		broken(life, event, "two rows hold for one event");
}

/* Whoever performs the last action waits for its answer: none of the possible ones may be out of place. */
static void check_answers(const struct life *life, const struct life_actions *actions)
{
	if (actions->count == 0)
		return;
	for (size_t i = 0; i < walk_event_count(); i++) {
		struct life copy = *life;
		struct life_actions ignored;
		const struct life_event *event = walk_event(i);
		bool answer = walk_answers(actions->list[actions->count - 1], event) ||
		              (event->kind == LIFE_EV_GRACE_OVER && life->state == LIFE_RUNNING && life->terminating);
		if (answer && life_step(&copy, event, &ignored, NULL) < 0)
			broken(life, event, "an answer to the pending action is refused");
	}
}

static void try_event(struct explorer *explorer, int from, const struct life_event *event)
{
	const struct life *before = &explorer->nodes[from].life;
	struct life after;
	struct life_actions actions;
	const struct move move = {before, event, &after, &actions};

	memcpy(&after, before, sizeof(after));
	count_row(explorer, before, event);
	int result = life_step(&after, event, &actions, NULL);
	const char *wrong = result < 0 ? walk_broken_by_refusal(&move, result) : walk_broken_by(&move);
	if (wrong)
		broken(before, event, wrong);
	if (result < 0) {
		explorer->refusals++;
		return;
	}
	check_answers(&after, &actions);
	int to = find_or_add(explorer, &after, explorer->nodes[from].depth + 1);
	add_edge(explorer, from, to, event->kind == LIFE_EV_RECOVERY_STARTED);
}

static void explore(struct explorer *explorer, int depth)
{
	for (int i = 0; i < explorer->node_count && explorer->nodes[i].depth < depth; i++)
		for (size_t j = 0; j < walk_event_count(); j++)
			try_event(explorer, i, walk_event(j));
}

/* Every new attempt, and everything that a ledger can say of one whose owner is dead. */
static void add_roots(struct explorer *explorer)
{
	struct life life;

	for (int i = 0; i < 8; i++) {
		memset(&life, 0, sizeof(life));
		life_init(&life, i & 1 ? 2000 : 0, i & 2 ? 500 : 0);
		life.retriable = i & 4;
		find_or_add(explorer, &life, 0);
	}
	for (int state = 0; state < LIFE_STATE_COUNT; state++)
		for (int i = 0; i < 8; i++) {
			memset(&life, 0, sizeof(life));
			life_restore(&life, (enum life_state)state, i & 1, i & 2);
			life.retriable = i & 4;
			if (life_check(&life, NULL) == 0)
				find_or_add(explorer, &life, 0);
		}
}

/* --- where it all leads --- */

/* Marks what leads to a goal, going back along the moves until nothing is added. */
static void lead_back(const struct explorer *explorer, bool *leads, bool by_recovery)
{
	bool added = true;

	while (added) {
		added = false;
		for (int i = 0; i < explorer->edge_count; i++) {
			const struct edge *edge = &explorer->edges[i];
			if (!leads[edge->from] && leads[edge->to] && (by_recovery || !edge->recovery))
				added = leads[edge->from] = true;
		}
	}
}

static bool is_over(const struct life *life)
{
	return life->state == LIFE_SEALED || life->state == LIFE_ABANDONED;
}

static void check_every_state_ends(const struct explorer *explorer)
{
	bool *leads = calloc(STATES_MAX, sizeof(*leads));

	if (!leads)
		broken(&explorer->nodes[0].life, NULL, "out of memory");
	for (int i = 0; i < explorer->node_count; i++)
		leads[i] = is_over(&explorer->nodes[i].life) || explorer->nodes[i].life.state == LIFE_QUARANTINED;
	lead_back(explorer, leads, false);
	for (int i = 0; i < explorer->node_count; i++)
		if (!leads[i])
			broken(&explorer->nodes[i].life, NULL, "leads neither to an end nor to quarantined by itself");
	for (int i = 0; i < explorer->node_count; i++)
		leads[i] = is_over(&explorer->nodes[i].life);
	lead_back(explorer, leads, true);
	for (int i = 0; i < explorer->node_count; i++)
		if (!leads[i])
			broken(&explorer->nodes[i].life, NULL, "does not lead to an end, not even by a recovery");
	free(leads);
}

static void check_every_row_was_used(const struct explorer *explorer)
{
	for (size_t i = 0; i < life_transition_count; i++)
		if (explorer->row_used[i] == 0) {
			printf("row %zu of the table (event %s) is never used\n", i, life_event_name(life_transitions[i].event));
			exit(1);
		}
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? (int)strtol(argv[1], NULL, 10) : DEPTH_DEFAULT;
	struct explorer *explorer = calloc(1, sizeof(*explorer));

	if (!explorer || life_transition_count > ROWS_MAX)
		return 1;
	add_roots(explorer);
	int roots = explorer->node_count;
	explore(explorer, depth);
	int deepest = explorer->nodes[explorer->node_count - 1].depth;
	printf("%d states (%d of them starting points), %d moves, %ld refusals, depth %d of %d%s\n", explorer->node_count, roots,
	       explorer->edge_count, explorer->refusals, deepest, depth, deepest < depth ? ": all there are" : "");
	if (deepest < depth) {
		check_every_state_ends(explorer);
		check_every_row_was_used(explorer);
	}
	free(explorer);
	return 0;
}
