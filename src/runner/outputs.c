/* outputs.c - what a run leaves for others, taken over between the verified end of its processes and the seal. */
#include "runner/drive.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fault.h"

enum {
	SAID_NAME_MAX = 100, /* of a path in a detail: its reason has to fit as well. The records have more of it */
	MORE_SIZE = 32,      /* "; and 4000 more" */
};

/* "a.txt: is a FIFO; b: is a symbolic link; and 3 more". */
void drive_say_rejections(const struct artifact_list *list, char text[static LIFE_DETAIL_MAX])
{
	JSON_AUTO json_t *rejections = artifact_list_rejections(list);
	char line[LIFE_DETAIL_MAX];
	size_t length = 0, room = LIFE_DETAIL_MAX - MORE_SIZE, said = 0;
	for (; said < json_array_size(rejections); said++) {
		const json_t *rejection = json_array_get(rejections, said);
		const char *path = json_string_value(json_object_get(rejection, "path"));
		int size = snprintf(line, sizeof(line), "%s%.*s%s%s%s", said ? "; " : "", SAID_NAME_MAX, path,
		                    strlen(path) > SAID_NAME_MAX ? "..." : "", *path ? ": " : "",
		                    json_string_value(json_object_get(rejection, "reason")));
		if ((size_t)size >= room - length)
			break;
		say(text + length, room - length, line);
		length += (size_t)size;
	}
	if (said < list->rejected)
		snprintf(text + length, LIFE_DETAIL_MAX - length, "%s%zu more", said ? "; and " : "", list->rejected - said);
}

/* Would this be a success, if nobody asked for outputs? Only then they are collected: a natural exit with 0, no stop, nothing
 * retained. */
static bool succeeds(const struct drive *drive)
{
	struct verdict verdict;
	drive_decide(drive, &verdict);
	return verdict.kind == VERDICT_SUCCEEDED;
}

static int record(struct drive *drive, struct err *err)
{
	const struct artifact_list *list = &drive->artifacts;
	if (list->rejected > 0)
		return journal_add(&drive->journal, "artifacts_rejected",
		                   json_pack("{s:I, s:o}", "rejected", (json_int_t)list->rejected, "rejections",
		                             artifact_list_rejections(list)), err);
	if (list->count == 0)
		return 0;
	return journal_add(&drive->journal, "collected", json_pack("{s:I}", "artifacts", (json_int_t)list->count), err);
}

static int collect(struct drive *drive, struct err *err)
{
	int rc = drive_hold_store(drive, err);
	if (rc == 0)
		rc = drive->boundary->ops->collect(drive->boundary, &drive->artifacts, err);
	return rc < 0 ? rc : FAULT_ERR("run.collected", err);
}

int drive_collect(struct drive *drive, struct err *err)
{
	struct err failure = ERR_INIT;
	if (!succeeds(drive))
		return 0;
	if (!drive->boundary) { /* a recovery: the output place went with its keeper */
		say(drive->artifact_failure, sizeof(drive->artifact_failure), "the keeper was lost before outputs were collected");
		return 0;
	}
	if (!drive->boundary->ops->collect)
		return 0;
	if (collect(drive, &failure) < 0) {
		artifact_list_done(&drive->artifacts);
		say(drive->artifact_failure, sizeof(drive->artifact_failure), failure.text);
		return 0;
	}
	return record(drive, err);
}
