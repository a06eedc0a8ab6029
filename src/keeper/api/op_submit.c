/* op_submit.c - a manifest becomes a queued run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/api/api_internal.h"

static int read_descriptor(int fd, struct buf *ret, struct err *err)
{
	struct stat status;
	if (fstat(fd, &status) < 0)
		return err_sys(err, errno, "look at a manifest");
	if (!S_ISREG(status.st_mode) || status.st_size > WIRE_MANIFEST_MAX)
		return err_set(err, ERR_LIMIT, "the manifest is larger than %d bytes", WIRE_MANIFEST_MAX);
	char *text = malloc((size_t)status.st_size + 1);
	if (!text)
		return err_set(err, ERR_NO_MEMORY, "out of memory for a manifest");
	ssize_t got = fd_pread_full(fd, text, (size_t)status.st_size, 0);
	int result = got < 0 ? err_sys(err, (int)-got, "read a manifest") : buf_append(ret, text, (size_t)got, err);
	free(text);
	return result;
}

/* A path means something on the caller's side, and the keeper has no business opening it with its own rights. */
static int check_sources(struct call *call, const struct manifest *manifest, struct err *err)
{
	static const char why[] = "a path cannot be named over HTTP: send its bytes with PUT /v1/objects, and name the digest";
	if (manifest->standard_input.kind == INPUT_SOURCE)
		return err_set(err, ERR_INVALID, "$.stdin.source: %s", why);
	for (size_t i = 0; i < manifest->input_count; i++)
		if (manifest->inputs[i].kind == INPUT_SOURCE)
			return err_set(err, ERR_INVALID, "$.inputs[%zu].source: %s", i, why);
	if (strcmp(manifest->rootfs, "host") != 0 && !call->peer->admin)
		return access_denied(call, "$.rootfs: only the keeper's own user may name a directory of its host", err);
	return 0;
}

static int parse(const struct call *call, struct manifest **ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(WIRE_MANIFEST_MAX);
	int result = 0;
	if (call->fd < 0)
		return manifest_parse(call->document, call->document_length, ret, err);
	result = read_descriptor(call->fd, &text, err);
	return result ? result : manifest_parse(text.data ? text.data : "", text.len, ret, err);
}

static int handle_submit(struct call *call, struct err *err)
{
	MANIFEST_AUTO struct manifest *manifest = NULL;
	const struct api_core *core = call->api->options.core;
	struct api_submission submission = {.principal = call->peer->principal};
	struct api_submitted submitted = {.existing = false};
	int result = argument_text(call, "idempotency_key", WIRE_KEY_MAX, &submission.idempotency_key, err);
	if (result == 0)
		result = parse(call, &manifest, err);
	if (result == 0)
		result = check_sources(call, manifest, err);
	if (result)
		return result;
	submission.manifest = manifest;
	result = core->submit(core->context, &submission, &submitted, err);
	if (result)
		return result;
	call->reply.ok = json_pack("{s:b}", "existing", (int)submitted.existing);
	return reply_json(call, json_pack("{s:s, s:b}", "run", submitted.run_id, "existing", (int)submitted.existing), err);
}

static const char *const submit_keys[] = {"idempotency_key", NULL};

const struct operation operation_submit = {.name = "submit", .keys = submit_keys, .handle = handle_submit};
