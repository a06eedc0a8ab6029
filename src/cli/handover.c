/* handover.c - starts caisson-client in the place of this program. */
#include "cli/handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/places.h"
#include "manifest/manifest.h"

enum { REQUEST_MAX_BYTES = 5 * 1024 * 1024, FD_TEXT_SIZE = 16 };

static int fill_request(const struct options *options, json_t *request, struct err *err)
{
	BUF_AUTO struct buf socket = BUF_INIT(MANIFEST_MAX_PATH);
	int result = places_socket(options->socket, options->ledger, &socket, err);

	if (result)
		return result;

	json_t *common = json_pack("{s:s,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:I}", "socket", socket.data, "json", options->json, "quiet",
	                           options->quiet, "summary", options->summary, "follow", options->follow, "wait", options->wait,
	                           "only_stdout", options->only_stdout, "only_stderr", options->only_stderr, "patience_ms",
	                           (json_int_t)options->patience_ms);

	if (!common)
		return err_set(err, ERR_INVALID, "the path of the keeper's socket is not valid UTF-8");
	return json_object_update_new(request, common) == 0 ? 0 : err_set(err, ERR_NO_MEMORY, "out of memory");
}

/* On a descriptor that the client inherits, at its beginning. */
static int write_request(const json_t *request, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(REQUEST_MAX_BYTES);
	int result = json_canonical(request, &text, err);

	if (result)
		return result;

	FD_AUTO int fd = memfd_create("caisson-request", 0);

	if (fd < 0)
		return err_sys(err, errno, "make the request");
	result = fd_write_all(fd, text.data, text.len);
	if (result || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, result ? -result : errno, "write the request");
	return fd_take(&fd);
}

int handover(const char *subcommand, const struct options *options, json_t *what, struct err *err)
{
	BUF_AUTO struct buf program = BUF_INIT(MANIFEST_MAX_PATH);
	JSON_AUTO json_t *request = json_object();
	char fd_text[FD_TEXT_SIZE];
	int result = fill_request(options, request, err);

	if (result == 0 && what && json_object_update(request, what) < 0)
		result = err_set(err, ERR_NO_MEMORY, "out of memory");
	if (result == 0)
		result = places_client(&program, err);
	if (result)
		return result;

	FD_AUTO int fd = write_request(request, err);

	if (fd < 0)
		return fd;
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	execv(program.data, (char *const[]){(char *)"caisson-client", (char *)subcommand, fd_text, NULL});
	return err_sys(err, errno, "start %s", program.data);
}

int handover_run(const char *subcommand, const struct options *options, struct err *err)
{
	int result = require_operands(options, 1, "one run", err);

	if (result)
		return result;

	JSON_AUTO json_t *what = json_pack("{s:s}", "run", options->operands[0]);

	return what ? handover(subcommand, options, what, err) : err_set(err, ERR_INVALID, "the run is not valid UTF-8");
}
