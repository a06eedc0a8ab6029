/* front.h - inside the front: clients, their requests, and what a resource has to do.
 *
 * One thread, one epoll. A request goes: head checked (head.c), route found (route.c), body taken in (request.c), question put
 * together by its resource and sent to the keeper, MHD's connection suspended; the answer arrives, the resource makes a response of
 * it, the connection is resumed. The front decides nothing about runs, and knows nobody's name. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "keeper/api/wire.h"
#include "keeper/channel.h"

enum {
	FRONT_INTAKE_FD = 3,
	FRONT_POOL_BYTES = 24 * 1024,            /* MHD's memory of a connection: what does not fit is 414 or 431 */
	FRONT_URL_MAX = 8 * 1024,
	FRONT_HEADERS_MAX = 64,
	FRONT_PARAMETERS_MAX = 8,
	FRONT_HEAD_MS = 10 * 1000,               /* from the connection to the end of its first request's head */
	FRONT_IDLE_MS = 60 * 1000,               /* from an answer to the end of the next request's head */
	FRONT_BODY_MS = 10 * 1000,               /* of a body, and the time of its bytes at the least rate */
	FRONT_WRITE_MS = 30 * 1000,              /* of an answer, likewise */
	FRONT_RATE_MIN = 64 * 1024,              /* bytes per second */
	FRONT_STALL_S = 60,                      /* without any byte, while there is something to read or write */
	FRONT_DISCARD_MAX = WIRE_MANIFEST_MAX,   /* of a body that is refused: read, so that the client comes to read the answer */
	FRONT_BODIES_MAX = 64 * 1024 * 1024,     /* of all bodies in memory */
	FRONT_KEEP_ALIVE_MS = 15 * 1000,         /* a comment in an event stream that has nothing to say */
};

struct client;
struct front;
struct request;
struct route;

/* What wakes the loop. */
enum watch_kind { WATCH_INTAKE, WATCH_HTTP, WATCH_CHANNEL, WATCH_SOCKET };
struct watch {
	enum watch_kind kind;
	struct client *client;
};

struct front {
	int epoll;
	struct MHD_Daemon *daemon;
	struct channel intake;
	char *incoming;            /* one buffer for the messages of all channels */
	struct client *clients;    /* doubly linked */
	struct client *closed;     /* to be freed when no event can name them any more */
	struct client *arriving;   /* while MHD_add_connection runs */
	size_t body_bytes;         /* of all requests */
};

/* A connection. MHD owns the socket. */
struct client {
	struct front *front;
	struct client *next, *previous;
	struct MHD_Connection *connection;
	int socket, channel;       /* channel -1: lost, and the connection has to end */
	struct watch channel_watch, socket_watch;
	struct request *request;   /* whose answer is awaited; NULL: none */
	bool gone;                 /* the client hung up, or ran out of time */
	int64_t deadline_ns;       /* 0: none */
};

/* What a resource asks the keeper. text is owned; the rest borrowed. */
struct question {
	json_t *text;
	const void *document;
	size_t document_length;
	int fd; /* -1: none */
};

/* What it answered. Borrowed, but for fd, which may be taken. */
struct answer {
	const json_t *ok;
	const char *body;
	size_t body_length;
	int fd;                    /* -1: none */
};

enum route_body { BODY_NONE, BODY_JSON, BODY_SPOOL };

/* One method of one resource. A '*' in the pattern is a component of a path: the subject. */
struct route {
	const char *method, *pattern;
	const char *const *parameters; /* of the query: NULL-terminated, NULL for none */
	enum route_body body;
	uint64_t body_max;             /* 0: as its kind has it */
	bool streams;                  /* no HEAD */
	/* ERR_INVALID is the client's mistake, named. */
	int (*ask)(struct request *request, struct question *ret, struct err *err);
	/* Calls one of the respond_… */
	void (*answer)(struct request *request, struct answer *answer);
};

struct parameter {
	const char *name;
	char *value;               /* owned, decoded; no NUL inside */
};

enum request_step {
	REQUEST_SPOOL,             /* asked for a file to write the body to */
	REQUEST_BODY,              /* takes the body in */
	REQUEST_ASKED,             /* the keeper's turn */
	REQUEST_ANSWERED,          /* a response is queued, or streams */
};

struct request {
	struct client *client;
	const struct route *route;
	enum request_step step;
	bool is_head;
	char subject[WIRE_SUBJECT_MAX];
	struct parameter parameters[FRONT_PARAMETERS_MAX];
	size_t parameter_count;
	struct buf body;
	int spool;                 /* -1: none */
	uint64_t body_bytes;       /* taken in, or thrown away */
	int64_t body_from_ns;
	bool discards;             /* a refusal waits until the body is over */
	uint64_t discarded;
	int sent;                  /* -1: none. A descriptor of the question, to be closed once it is sent */
	unsigned status;
	struct MHD_Response *response; /* made and not queued yet */
	uint64_t answer_bytes;     /* of its body */
	struct stream *stream;     /* of events.c; owned by the response */
};

/* client.c: MHD's callbacks, the channel, deadlines. */
int client_arrive(struct front *front, struct channel_message *message, struct err *err);
void client_notify(void *context, struct MHD_Connection *connection, void **socket_context,
                   enum MHD_ConnectionNotificationCode code);
/* Sends a question and suspends the connection until there is an answer. question->text is freed. */
int client_ask(struct client *client, struct request *request, struct question *question, struct err *err);
/* The channel has a message, or its end. */
void client_hear(struct client *client);
/* The socket has hung up while the keeper's answer was awaited. */
void client_lose(struct client *client);
void client_deadline(struct client *client, int64_t from_ns, int64_t fixed_ms, uint64_t bytes);
void client_check_deadline(struct client *client, int64_t now_ns);
void clients_free_closed(struct front *front);

/* head.c: 0, or a refusal was made with respond_error. */
int head_check(struct request *request, const char *url, const char *version);
/* The one value of a header; NULL when it is absent. */
const char *head_value(const struct request *request, const char *name);

/* route.c: as head_check. */
int route_find(struct request *request, const char *method, const char *url);
const char *parameter_text(const struct request *request, const char *name);
/* *ret is left alone when it is absent. */
int parameter_number(const struct request *request, const char *name, int64_t max, int64_t *ret, struct err *err);

/* request.c */
enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_size, void **request_context);
void request_completed(void *context, struct MHD_Connection *connection, void **request_context,
                       enum MHD_RequestTerminationCode code);
/* The keeper's answer is here, or (message NULL) will never be. */
void request_answer(struct request *request, struct channel_message *message);

/* respond.c: each makes request->response; when memory is short there is none, and the connection ends. */
void respond_error(struct request *request, unsigned status, const char *code, const char *message, const char *path);
/* An error of ours, or the keeper's {"error":…}. */
void respond_err(struct request *request, const struct err *err);
void respond_refusal(struct request *request, const json_t *reply);
/* The answer's body, wherever it is. */
void respond_body(struct request *request, unsigned status, const char *type, struct answer *answer);
void respond_json(struct request *request, unsigned status, struct answer *answer);
/* A part of the answer's descriptor, as bytes of no type. */
void respond_fd(struct request *request, unsigned status, uint64_t offset, uint64_t length, struct answer *answer);
/* From a callback that is asked until it ends. */
void respond_stream(struct request *request, const char *type, MHD_ContentReaderCallback reader, void *context,
                    MHD_ContentReaderFreeCallback release);
void respond_header(struct request *request, const char *name, const char *value);

/* Members of an answer; the default when the keeper did not say. */
int64_t answer_number(const struct answer *answer, const char *name, int64_t otherwise);
bool answer_flag(const struct answer *answer, const char *name);

/* events.c: the further pieces of a stream. */
void stream_hear(struct stream *stream, struct answer *answer);
void stream_fail(struct stream *stream);

/* {"op":OP}, and with the subject, {"op":OP,"run":SUBJECT}. */
int question_plain(const char *op, struct question *ret, struct err *err);
int question_about(struct request *request, const char *op, struct question *ret, struct err *err);
/* Of an action that needs no more than its name: the body is nothing, or {}. */
int request_empty_object(struct request *request, struct err *err);

/* The resources. */
extern const struct route route_runs_submit, route_runs_list, route_run_get, route_run_cancel, route_logs_get, route_artifacts_list,
	route_artifact_get, route_events_get, route_object_put, route_tree_put, route_workers_list, route_worker_recover, route_health_get,
	route_readiness_get, route_metrics_get;
