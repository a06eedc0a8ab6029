/* fixture_recording.c - the recording boundary for the contract suite: stories as scripts, the world as the host. */
#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "boundary/recording/recording.h"

static struct recording_world *world;
static struct boundary_provider provider;

#define EVENTS(...) {.events = (const struct recording_event[]){__VA_ARGS__}, \
	             .event_count = sizeof((const struct recording_event[]){__VA_ARGS__}) / sizeof(struct recording_event)}

static const struct recording_event ready[] = {{.happening = RECORDING_OUTPUT, .stream = 1, .text = "ready\n", .bytes = 6}};
#define READY(...) {.events = ready, .event_count = 1, __VA_ARGS__}

static const struct recording_event exits[] = {{.happening = RECORDING_EXIT}};
static const struct recording_output output = {.path = "a.txt", .text = "hi\n"};

static const struct recording_script scripts[STORY_COUNT] = {
	[STORY_EXIT_0] = EVENTS({.happening = RECORDING_EXIT}),
	[STORY_EXIT_3] = EVENTS({.happening = RECORDING_EXIT, .status = 3}),
	[STORY_SIGNAL] = EVENTS({.happening = RECORDING_SIGNAL, .status = SIGKILL}),
	[STORY_NOT_FOUND] = EVENTS({.happening = RECORDING_NOT_EXECUTED, .status = ENOENT}),
	[STORY_GREET] = EVENTS({.happening = RECORDING_OUTPUT, .stream = 1, .text = "hello\n", .bytes = 6},
	                       {.happening = RECORDING_OUTPUT, .stream = 2, .text = "oops\n", .bytes = 5},
	                       {.happening = RECORDING_EXIT}),
	[STORY_LOAD] = EVENTS({.happening = RECORDING_OUTPUT, .stream = 1, .text = "xxxxxxxxxx", .bytes = 100000},
	                      {.happening = RECORDING_EXIT}),
	[STORY_SLEEP] = READY(.ignores_term = false),
	[STORY_DEAF] = READY(.ignores_term = true),
	[STORY_DAEMON_CLOSED] = EVENTS({.happening = RECORDING_FORK}, {.happening = RECORDING_EXIT}),
	[STORY_DAEMON_HOLDS] = EVENTS({.happening = RECORDING_FORK, .holds_stdout = true}, {.happening = RECORDING_EXIT}),
	[STORY_OUTPUT] = {.events = exits, .event_count = 1, .outputs = &output, .output_count = 1},
};

static int set_up(void)
{
	if (recording_world_new(&world, NULL) < 0)
		return 1;
	provider = recording_provider(world);
	return 0;
}

static void tear_down(void)
{
	recording_world_free(world);
}

static const struct boundary_provider *get_provider(void)
{
	return &provider;
}

static const char *const *tell(enum story story)
{
	static const char *const argv[] = {"/story", NULL};
	recording_world_script(world, &scripts[story]);
	return argv;
}

static bool has_disk(void)
{
	return true;
}

static int members(const struct boundary_identity *identity)
{
	struct recording_unit_view view;
	recording_world_view(world, identity, &view);
	return view.main_alive + view.descendants_alive;
}

static bool exists(const struct boundary_identity *identity)
{
	struct recording_unit_view view;
	recording_world_view(world, identity, &view);
	return view.exists;
}

static const char *violation(void)
{
	return recording_world_violation(world);
}

const struct fixture fixture = {
	.profile = "recording",
	.set_up = set_up,
	.tear_down = tear_down,
	.provider = get_provider,
	.tell = tell,
	.has_disk = has_disk,
	.members = members,
	.exists = exists,
	.violation = violation,
};
