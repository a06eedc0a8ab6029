/* side.c - makes and ends a keeper's side of a worker. */
#include "side.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/store.h"
#include "capture/capture.h"

enum { LIMIT = 1000 };

int side_setup(void **state)
{
	struct side *side = calloc(1, sizeof(*side));
	struct err err = ERR_INIT;
	side->fake = fake_new();
	side->plan = plan_for("recording", LIMIT, NULL);
	snprintf(side->store_path, sizeof(side->store_path), "/tmp/caisson-worker-XXXXXX");
	if (!mkdtemp(side->store_path))
		return -1;
	side->store_dir = open(side->store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = side;
	return store_open(side->store_dir, &side->store, &err) < 0 ||
	       capture_new(LIMIT, OVERFLOW_KILL, side->store_dir, &side->standard_output, &err) < 0 ||
	       capture_new(LIMIT, OVERFLOW_KILL, side->store_dir, &side->standard_error, &err) < 0;
}

void side_end(struct side *side)
{
	if (side->boundary)
		side->boundary->ops->free(side->boundary);
	worker_free(side->worker);
	side->boundary = NULL;
	side->worker = NULL;
}

int side_teardown(void **state)
{
	struct side *side = *state;
	side_end(side);
	capture_free(side->standard_output);
	capture_free(side->standard_error);
	store_free(side->store);
	unlinkat(side->store_dir, "objects", AT_REMOVEDIR);
	unlinkat(side->store_dir, "tmp", AT_REMOVEDIR);
	close(side->store_dir);
	int left = rmdir(side->store_path);
	plan_free(side->plan);
	fake_free(side->fake);
	free(side);
	return left;
}

void side_spawn(struct side *side)
{
	const struct provider_factory factory = fake_factory(side->fake);
	struct err err = ERR_INIT;
	memset(side->fake->log, 0, sizeof(side->fake->log));
	side->evidence.count = 0;
	assert_int_equal(worker_spawn("recording", &factory, &side->worker, &err), 0);
}

static int prepare(struct side *side, struct err *err)
{
	struct boundary_spec spec = {
		.plan = side->plan,
		.store = side->store,
		.standard_output = side->standard_output,
		.standard_error = side->standard_error,
	};
	id_new("led", spec.identity.ledger_id);
	id_new("bnd", spec.identity.boundary_id);
	return side->boundary->ops->prepare(side->boundary, &spec, &side->evidence, err);
}

int side_step(struct side *side, enum worker_phase phase, struct err *err)
{
	struct boundary *boundary = side->boundary;
	struct boundary_event event;
	struct boundary_usage usage;
	switch (phase) {
	case WORKER_OPENED:
		return worker_boundary(side->worker, &side->boundary, err);
	case WORKER_PREPARED:
		return prepare(side, err);
	case WORKER_SUSPENDED:
		return boundary->ops->create_suspended(boundary, &side->evidence, err);
	case WORKER_ENROLLED:
		return boundary->ops->enroll(boundary, &side->evidence, err);
	case WORKER_LAUNCHED:
		return boundary->ops->launch(boundary, err);
	case WORKER_EXITED:
		return boundary->ops->observe(boundary, INT64_MAX, &event, err);
	case WORKER_CLEANED:
		return boundary->ops->cleanup(boundary, &usage, err);
	case WORKER_IDLE:
	case WORKER_PHASE_COUNT:
		break;
	}
	return 0;
}

void side_come_to(struct side *side, enum worker_phase last)
{
	side_spawn(side);
	for (int phase = WORKER_OPENED; phase <= (int)last; phase++) {
		struct err err = ERR_INIT;
		assert_int_equal(side_step(side, (enum worker_phase)phase, &err), 0);
		assert_int_equal(side->worker->phase, phase);
	}
}
