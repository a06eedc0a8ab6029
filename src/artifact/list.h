/* list.h - what was collected from an output place: the artifacts, or else the reasons why there are none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "artifact/name.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"

enum {
	ARTIFACT_FILES_MAX = 1024,             /* whatever the plan allows; its output place has no more inodes either */
	ARTIFACT_NAMES_BYTES_MAX = 256 * 1024, /* all paths of a list together */
	ARTIFACT_REJECTIONS_MAX = 32,          /* that are named; more are counted */
	ARTIFACT_SHOWN_SIZE = 256,             /* of a rejected path; what is longer is cut */
	ARTIFACT_REASON_SIZE = 96,
	ARTIFACT_LIST_TEXT_MAX = 2 * 1024 * 1024, /* of a list's canonical JSON */
};

/* Its bytes are in the store. mode: 0644 or 0755. */
struct artifact {
	char *path;
	int64_t size_bytes;
	struct digest sha256;
	uint32_t mode;
};

/* path: "" when it is about the whole. */
struct artifact_rejection {
	char path[ARTIFACT_SHOWN_SIZE];
	char reason[ARTIFACT_REASON_SIZE];
};

/* Zero-initialised is empty. Either `count` or `rejected` is 0. */
struct artifact_list {
	struct artifact *items; /* sorted by the bytes of their paths */
	size_t count;
	struct artifact_rejection rejections[ARTIFACT_REJECTIONS_MAX]; /* the first of them */
	size_t rejected;
};

/* Frees the items; the list is empty afterwards. */
void artifact_list_done(struct artifact_list *list);
#define ARTIFACT_LIST_AUTO __attribute__((cleanup(artifact_list_done)))

/* Counts a rejection, and keeps it when there is room. */
void artifact_reject(struct artifact_list *list, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* How many rejections are kept. */
size_t artifact_rejections(const struct artifact_list *list);

/* [{"mode": "0644", "path": …, "sha256": "sha256:…", "size_bytes": N}, …]: as receipts have it. NULL when out of memory. */
json_t *artifact_list_items(const struct artifact_list *list);
/* [{"path": …, "reason": …}, …]. NULL when out of memory. */
json_t *artifact_list_rejections(const struct artifact_list *list);

/* The whole list as canonical JSON, appended; and back, checked. ERR_INVALID names the place; *ret is then empty. */
int artifact_list_write(const struct artifact_list *list, struct buf *ret, struct err *err);
int artifact_list_read(const char *text, size_t length, struct artifact_list *ret, struct err *err);
