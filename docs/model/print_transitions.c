/* print_transitions.c - prints the transition table of src/lifecycle/transitions.c as Promela, for the model beside it.
 *
 * The table comes from the library itself, so that the model checks the very rows that the program runs by. What the guards and notes
 * mean is said in life.pml. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "lifecycle/transitions.h"

#define GUARD(name) [WHEN_##name] = #name
#define NOTE(name) [NOTE_##name] = #name

static const char *const guard_names[LIFE_GUARD_COUNT] = {
	GUARD(ALWAYS), GUARD(NO_INTENT), GUARD(INTENT), GUARD(COMMIT_MAY_COME), GUARD(CANCEL), GUARD(STOP_KILLS),
	GUARD(STOP_TERMINATES), GUARD(STOP_CHANGES_NOTHING), GUARD(TERMINATING), GUARD(KILLING), GUARD(NOT_CLEANED), GUARD(CLEANED),
	GUARD(REQUEUE), GUARD(SEAL),
};

static const char *const note_names[LIFE_EFFECT_COUNT] = {
	NOTE(NOTHING), NOTE(REFUSAL), NOTE(CANCEL_OF_NOTHING), NOTE(STOP), NOTE(STOP_TERMINATE), NOTE(STOP_KILL), NOTE(KILL),
	NOTE(STEP_FAILED), NOTE(INTENT), NOTE(LAUNCH), NOTE(EXIT), NOTE(DRAIN), NOTE(LOST_BEFORE_LAUNCH), NOTE(LOST), NOTE(LOST_KILL),
	NOTE(CLEANED), NOTE(EMPTY), NOTE(QUARANTINE), NOTE(RECOVERY),
};

static void print_upper(const char *name)
{
	for (; *name; name++)
		putchar(toupper((unsigned char)*name));
}

/* A row of C that this program has no word for must not vanish from the model. */
static const char *known(const char *name, const char *what, int number)
{
	if (!name) {
		fprintf(stderr, "print_transitions: %s %d has no name here\n", what, number);
		exit(EXIT_FAILURE);
	}
	return name;
}

static void print_constants(void)
{
	for (enum life_state state = 0; state < LIFE_STATE_COUNT; state++) {
		printf("#define ");
		print_upper(life_state_name(state));
		printf(" %d\n", (int)state);
	}
	for (enum life_event_kind event = 0; event < LIFE_EVENT_COUNT; event++) {
		printf("#define EV_");
		print_upper(life_event_name(event));
		printf(" %d\n", (int)event);
	}
	printf("#define DO_NOTHING 0\n");
	for (enum life_action action = 0; action < LIFE_ACTION_COUNT; action++) {
		printf("#define DO_");
		print_upper(life_action_name(action));
		printf(" %d\n", (int)action + 1);
	}
}

static void print_states(unsigned from)
{
	const char *or = "";
	for (enum life_state state = 0; state < LIFE_STATE_COUNT; state++) {
		if (!(from & (1u << state)))
			continue;
		printf("%sAT(", or);
		print_upper(life_state_name(state));
		putchar(')');
		or = " || ";
	}
}

static void print_action(const struct life_transition *row, size_t index)
{
	printf("DO_");
	print_upper(index < row->actions.count ? life_action_name(row->actions.list[index]) : "nothing");
}

static void print_row(const struct life_transition *row)
{
	enum { ACTIONS = 2 };
	if (row->actions.count > ACTIONS) {
		fprintf(stderr, "print_transitions: a row with %zu actions\n", row->actions.count);
		exit(EXIT_FAILURE);
	}
	printf("\t:: (event == EV_");
	print_upper(life_event_name(row->event));
	printf(") && (");
	print_states(row->from);
	printf(") && WHEN_%s -> NOTE_%s", known(guard_names[row->when], "guard", (int)row->when),
	       known(note_names[row->note], "note", (int)row->note));
	if (row->to != LIFE_SAME_STATE) {
		printf("; BECOME(");
		print_upper(life_state_name(row->to));
		printf(")");
	}
	if (row->actions.count > 0) {
		printf("; DO(");
		print_action(row, 0);
		printf(", ");
		print_action(row, 1);
		printf(")");
	}
	putchar('\n');
}

int main(void)
{
	printf("/* Made by print_transitions from src/lifecycle/transitions.c. */\n");
	print_constants();
	printf("\ninline life_step(event)\n{\n\tif\n");
	for (size_t i = 0; i < life_transition_count; i++)
		print_row(&life_transitions[i]);
	printf("\t:: else -> NO_SUCH_MOVE\n\tfi\n}\n");
	return ferror(stdout) || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
