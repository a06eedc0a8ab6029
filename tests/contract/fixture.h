/* fixture.h - what the contract suite needs of a boundary: a provider, programs that live out a story, and a look from outside. */
#pragma once

#include <stdbool.h>

#include "boundary/boundary.h"

/* What main does. Times in the stories are long where the run is stopped from outside, and nothing where it is not. */
enum story {
	STORY_EXIT_0,
	STORY_EXIT_3,
	STORY_SIGNAL,             /* kills itself with SIGKILL */
	STORY_NOT_FOUND,          /* cannot be executed: ENOENT */
	STORY_GREET,              /* writes "hello\n" to stdout and "oops\n" to stderr, exits 0 */
	STORY_LOAD,               /* writes 100,000 times "x" to stdout, exits 0 */
	STORY_SLEEP,              /* says "ready\n", waits, and dies of SIGTERM */
	STORY_DEAF,               /* says "ready\n" when it ignores SIGTERM, and waits */
	STORY_DAEMON_CLOSED,      /* leaves one descendant that holds no stream, exits 0 */
	STORY_DAEMON_HOLDS,       /* leaves one descendant that holds stdout, exits 0 */
	STORY_OUTPUT,             /* leaves "hi\n" as a.txt in its output place, exits 0 */
	STORY_COUNT
};

struct fixture {
	const char *profile;
	/* 0, or 1 when this host cannot run it: the reason is printed. */
	int (*set_up)(void);
	void (*tear_down)(void);
	/* An independent view of the same host: a provider that knows only identities. */
	const struct boundary_provider *(*provider)(void);
	/* Makes boundaries opened next live out this story; NULL-terminated argv. */
	const char *const *(*tell)(enum story story);
	/* May a unit have its work space on disk? Where not, that is refused by name. */
	bool (*has_disk)(void);
	/* Processes of this boundary that are alive, without guest init. */
	int (*members)(const struct boundary_identity *identity);
	/* Is anything there that carries this identity? */
	bool (*exists)(const struct boundary_identity *identity);
	/* What the boundary itself noticed of a contract that was not kept; "" for nothing. */
	const char *(*violation)(void);
};

extern const struct fixture fixture;
