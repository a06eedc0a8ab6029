/* main.c - caisson-client: speaks to a keeper for `caisson submit`, wait, cancel, logs -f, events, workers, ps and batch.
 *
 * It is a program of its own because libcurl and what it brings would double the start-up of everything else. `caisson` reads the
 * command line and starts it as `caisson-client SUBCOMMAND FD`, with the request (request.h) on that descriptor. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/client.h"
#include "print/output.h"

static const struct subcommand {
	const char *name;
	int (*run)(struct client *client, struct err *err);
	bool of_run; /* its exit status is a run's, over which no reader decides */
} subcommands[] = {
	{"submit", client_submit, true}, {"wait", client_wait, true}, {"cancel", client_cancel}, {"logs", client_logs},   {"events", client_events},
	{"workers", client_workers},     {"recover", client_recover}, {"ps", client_ps},         {"batch", client_batch},
};

static const struct subcommand *find(const char *name)
{
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (strcmp(subcommands[i].name, name) == 0)
			return &subcommands[i];
	return NULL;
}

static int run(const struct subcommand *subcommand, int fd, struct err *err)
{
	REQUEST_AUTO struct request request = {0};
	HTTP_AUTO struct http *http = NULL;
	int result = request_read(fd, &request, err);

	if (result)
		return err_context(err, result, "the request");
	result = http_new(request.socket, &http, err);
	if (result)
		return result;

	struct client client = {.request = &request, .http = http};

	return subcommand->run(&client, err);
}

int main(int argc, char **argv)
{
	const struct subcommand *subcommand = argc == 3 ? find(argv[1]) : NULL;
	char *end = NULL;
	long fd = argc == 3 ? strtol(argv[2], &end, 10) : -1;
	struct err err = ERR_INIT;

	if (!subcommand || !end || *end || fd <= STDERR_FILENO || fd > INT16_MAX) {
		complain("caisson-client is started by caisson (see caisson help)");
		return CLIENT_CAISSON;
	}
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is no reason to end in the middle of something */

	FD_AUTO int request_fd = (int)fd;
	int status = run(subcommand, request_fd, &err);

	if (status >= 0 && !subcommand->of_run && output_lost())
		status = err_sys(&err, output_lost(), "standard output");
	if (status >= 0)
		return status;
	complain("%s: %s", subcommand->name, err.text);
	return CLIENT_CAISSON;
}
