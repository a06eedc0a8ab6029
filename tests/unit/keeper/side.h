/* side.h - a keeper's side of a worker whose boundary can be watched, for the tests of what passes between the two. */
#pragma once

#include "support.h"

/* A keeper's side: a worker, its boundary, and what it borrows. */
struct side {
	struct fake *fake;
	struct worker *worker;
	struct boundary *boundary;
	struct plan *plan;
	struct store *store;
	struct capture *standard_output, *standard_error;
	struct evidence_list evidence;
	int store_dir;
	char store_path[64];
};

/* For cmocka: *state is the side. */
int side_setup(void **state);
int side_teardown(void **state);

void side_spawn(struct side *side);

/* The call that leads into this phase. */
int side_step(struct side *side, enum worker_phase phase, struct err *err);

/* A worker in this phase, as far as its keeper knows: it goes on by itself. One that is told to block, does so in the observe that leads
 * to `exited`. */
void side_come_to(struct side *side, enum worker_phase last);

/* The boundary is freed, and the worker ended. */
void side_end(struct side *side);
