/* manifest.h - what the user asks for: caisson.manifest/v1, parsed once into one immutable struct.
 *
 * Pure: no file is opened, no host fact is read. What the host can enforce is the plan compiler's and the boundary's business. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"
#include "manifest/cpu_list.h"

#define MANIFEST_VERSION "caisson.manifest/v1"

enum {
	MANIFEST_MAX_BYTES = 4 * 1024 * 1024, /* of the document, `text` inputs included */
	MANIFEST_MAX_ARGS = 4096,
	MANIFEST_MAX_COMMAND_BYTES = 128 * 1024, /* argv and env together, their NULs included */
	MANIFEST_MAX_ENV = 512,
	MANIFEST_MAX_INPUTS = 1024,
	MANIFEST_MAX_OUTPUTS = 1024, /* names in outputs.required */
	MANIFEST_MAX_LABELS = 32,
	MANIFEST_MAX_REQUIRE = 32,
	MANIFEST_MAX_PATH = 4095, /* bytes of any path in the guest, NUL not counted */
};

enum overflow_mode { OVERFLOW_KILL, OVERFLOW_TRUNCATE };
enum scratch_mode { SCRATCH_MEMORY, SCRATCH_DISK };
enum network_mode { NETWORK_NONE, NETWORK_ALLOWLIST };
enum retained_mode { RETAINED_FAIL, RETAINED_IGNORE };

/* One of source, digest, text: where the bytes come from. */
enum input_kind { INPUT_NONE, INPUT_SOURCE, INPUT_DIGEST, INPUT_TEXT };

struct manifest_input {
	enum input_kind kind;
	char *source;         /* INPUT_SOURCE: a path on the caller's side; never opened by the boundary */
	struct digest digest; /* INPUT_DIGEST */
	char *text;           /* INPUT_TEXT: text_length bytes, no NUL inside */
	size_t text_length;
	char *target;         /* absolute path in the guest, below /box; NULL for stdin */
	uint32_t mode;        /* 0444 or 0555; 0444 when absent */
};

/* -1 means "not given": the plan compiler puts the default in. Units are in the names. */
struct manifest_limits {
	int64_t wall_ms, cpu_ms;
	int64_t cpus_centi; /* hundredths of a CPU: "0.5" is 50; -1 for all */
	struct cpu_list pin; /* the only CPUs to run on; none for all */
	int64_t memory_bytes, pids, open_files, stack_bytes;
	int64_t stdout_bytes, stderr_bytes;
	int64_t work_bytes, work_inodes;
	int64_t on_limit_grace_ms;
	enum overflow_mode on_overflow;
	enum scratch_mode scratch;
};

struct manifest_outputs {
	bool given;
	char **required; /* NULL-terminated; names relative to /out */
	size_t required_count;
	int64_t max_files, max_file_bytes, max_bytes; /* -1: default */
};

struct manifest_pair {
	char *key, *value;
};

struct manifest {
	char *profile; /* "linux" when absent */
	char **argv;   /* NULL-terminated, at least one element, argv[0] not empty */
	size_t argc;
	char *cwd;     /* absolute; "/box" when absent */
	struct manifest_pair *env; /* sorted by key, unique keys matching [A-Za-z_][A-Za-z0-9_]* */
	size_t env_count;
	char *rootfs;  /* "host", or an absolute path of a directory on the caller's side */
	char *image;   /* NULL, or for profile docker */
	struct manifest_input *inputs;
	size_t input_count;
	struct manifest_input standard_input; /* kind INPUT_NONE: closed */
	struct manifest_outputs outputs;
	struct manifest_limits limits;
	enum retained_mode retained_output;
	enum network_mode network;
	char **require; /* NULL-terminated; "name" or "name>=N" */
	size_t require_count;
	int64_t cancel_grace_ms; /* -1: default */
	struct manifest_pair *labels; /* sorted by key */
	size_t label_count;

	char *canonical; /* canonical JSON text of the document as it was given (no defaults put in), NUL-terminated */
	size_t canonical_length;
	struct digest digest; /* of canonical */
};

/* Parses and validates. Syntax errors name line and column, validation errors the JSON path. On success *ret is the caller's
 * (manifest_free); on failure it is untouched. ERR_INVALID, ERR_NO_MEMORY. */
int manifest_parse(const char *text, size_t length, struct manifest **ret, struct err *err);

void manifest_free(struct manifest *manifest);
static inline void manifest_free_p(struct manifest **manifest) { manifest_free(*manifest); }
#define MANIFEST_AUTO __attribute__((cleanup(manifest_free_p)))

/* Its labels as a canonical JSON object, appended. */
int manifest_labels(const struct manifest *manifest, struct buf *ret, struct err *err);

/* A valid manifest with every field and its default, pretty-printed, for `caisson manifest template`. Static text. */
const char *manifest_template(void);
