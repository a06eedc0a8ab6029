/* plan.h - the plan: manifest + profile + policy compiled to the exact enforceable configuration.
 *
 * Values are rounded here (memory down to a page) so that what a boundary writes can be read back equal. Approvals, admissions and
 * receipts bind to the plan's digest. The struct and its JSON say the same; plan_parse(plan->canonical) gives an equal plan, which is
 * how a plan travels from keeper to worker and how an old receipt is checked. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "manifest/manifest.h"

#define PLAN_VERSION "caisson.plan/v1"

enum {
	PLAN_MAX_BYTES = 192 * 1024, /* canonical text; larger is ERR_LIMIT. Fits into one message of the worker channel */
	PLAN_GUEST_ID = 1000,        /* uid and gid of the guest as it sees itself */
	PLAN_OUT_BYTES = 64 * 1024 * 1024,
	PLAN_OUT_INODES = 1024,
	PLAN_DISK_MIN_BYTES = 1024 * 1024, /* a scratch space on disk is so much, or whole multiples of it */
};

/* Facts of the host that rounding and range checks need; read by the program, handed in. */
struct plan_host {
	int64_t page_bytes;
	int64_t cpus;              /* usable by us (affinity) */
	struct cpu_list cpu_list;  /* which they are */
	int64_t memory_bytes;      /* of the machine */
	/* Our own hard limits: more cannot be given to a guest (limit_unenforceable). INT64_MAX: there is none. */
	int64_t open_files_hard, stack_hard, processes_hard;
	int64_t cpu_hard_ms;  /* of one process */
	int64_t memory_hard;  /* of one address space */
	int64_t file_hard;    /* of one file */
};

/* As manifest_limits with every value set. cpu_ms is wall × usable CPUs when not given; cpus_centi 0 means no bandwidth limit, and a
 * pin without a CPU that there is none. */
struct plan_limits {
	int64_t wall_ms, cpu_ms, cpus_centi;
	struct cpu_list pin;
	int64_t memory_bytes, pids, open_files, stack_bytes;
	int64_t stdout_bytes, stderr_bytes;
	enum overflow_mode on_overflow;
	int64_t work_bytes, work_inodes, out_bytes, out_inodes;
	enum scratch_mode scratch;
	int64_t on_limit_grace_ms, cancel_grace_ms, drain_ms, cleanup_ms;
	int64_t artifact_files, artifact_file_bytes, artifact_bytes;
};

enum plan_input_kind { PLAN_INPUT_FILE, PLAN_INPUT_TREE };

/* A sealed input: by now it is in the store, and only its digest counts. Of a tree, a directory, it is that of its listing. */
struct plan_input {
	enum plan_input_kind kind;
	struct digest digest;
	int64_t size_bytes;
	char *target;
	uint32_t mode;
};

enum plan_endpoint { ENDPOINT_CLOSED, ENDPOINT_INPUT, ENDPOINT_CAPTURE, ENDPOINT_PIPE };

/* The one unit of v1. */
struct plan_unit {
	char **argv; /* NULL-terminated */
	size_t argc;
	char **env;  /* NULL-terminated "K=V", sorted: PATH, HOME, LANG and the manifest's own, which win */
	size_t env_count;
	char *cwd;
	enum plan_endpoint standard_input, standard_output, standard_error;
	struct plan_input stdin_input; /* when ENDPOINT_INPUT; target NULL */
	struct plan_input *inputs;
	size_t input_count;
};

struct plan {
	char *profile;
	char *rootfs; /* "host" or an absolute path */
	/* NULL-terminated: what of the host's root the base view shows besides /usr and its links (profile's list). Absolute paths; one that
	 * is absent on the host is skipped. A '*' in the last component makes it a pattern, which may match any number of names, or none. */
	char **base;
	size_t base_count;
	struct plan_unit unit;
	struct plan_limits limits;
	enum retained_mode retained_output;
	enum network_mode network;
	char **require;
	size_t require_count;
	char **required_outputs;
	size_t required_output_count;
	struct digest manifest; /* digest of the manifest it was made from */
	struct digest policy;

	char *canonical; /* canonical JSON, `units` an array of one */
	size_t canonical_length;
	struct digest digest;
};

/* What sealing the inputs gave: same order and count as manifest->inputs, target and mode are taken from the manifest.
 * stdin_input is used when the manifest has a stdin. */
struct plan_sealed {
	const struct plan_input *inputs;
	size_t input_count;
	struct plan_input stdin_input;
};

/* ERR_INVALID for a value out of the contract's range (names the JSON path), ERR_UNENFORCEABLE for one that this host cannot give
 * (names it: "limits.open_files: …"), ERR_LIMIT, ERR_NO_MEMORY. On success *ret is the caller's (plan_free). */
int plan_compile(const struct manifest *manifest, const struct plan_host *host, const struct plan_sealed *sealed,
                 const struct digest *policy, struct plan **ret, struct err *err);

/* The `base` that a plan for profile linux and rootfs "host" gets in this version; NULL-terminated. */
const char *const *plan_host_base(void);

/* Reads a plan back. ERR_INVALID, ERR_DAMAGED when the text is not canonical. */
int plan_parse(const char *text, size_t length, struct plan **ret, struct err *err);

void plan_free(struct plan *plan);
static inline void plan_free_p(struct plan **plan) { plan_free(*plan); }
#define PLAN_AUTO __attribute__((cleanup(plan_free_p)))
