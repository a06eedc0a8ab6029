/* route.c - the table of resources, and the parameters of a query. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/front.h"

static const struct route *const routes[] = {
	&route_runs_submit,   &route_runs_list,   &route_run_get,    &route_run_cancel,     &route_logs_get,
	&route_artifacts_list, &route_artifact_get, &route_events_get, &route_object_put,     &route_tree_put,
	&route_workers_list,   &route_worker_recover, &route_health_get, &route_readiness_get, &route_metrics_get,
};

enum { ROUTE_COUNT = sizeof(routes) / sizeof(routes[0]), ALLOW_SIZE = 64 };

/* What a '*' stands for is an id or a number. An escaped character is none of theirs, so that a path needs no decoding. */
static size_t subject_length(const char *at)
{
	return strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

static bool matches(const char *pattern, const char *url, char subject[static WIRE_SUBJECT_MAX])
{
	const char *star = strchr(pattern, '*');
	if (!star)
		return strcmp(pattern, url) == 0;

	size_t before = (size_t)(star - pattern), length;
	if (strncmp(pattern, url, before) != 0)
		return false;
	length = subject_length(url + before);
	if (length == 0 || length >= WIRE_SUBJECT_MAX || strcmp(star + 1, url + before + length) != 0)
		return false;
	memcpy(subject, url + before, length);
	subject[length] = '\0';
	return true;
}

static bool serves(const struct route *route, const char *method, bool *ret_head)
{
	*ret_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 && strcmp(route->method, MHD_HTTP_METHOD_GET) == 0 && !route->streams;
	return *ret_head || strcmp(route->method, method) == 0;
}

static void add_method(char allow[static ALLOW_SIZE], const char *method)
{
	size_t length = strlen(allow);
	const char *parts[] = {length ? ", " : "", method};
	for (size_t i = 0; i < 2; i++)
		for (const char *at = parts[i]; *at && length + 1 < ALLOW_SIZE; at++)
			allow[length++] = *at;
	allow[length] = '\0';
}

static int find(struct request *request, const char *method, const char *url)
{
	char allow[ALLOW_SIZE] = "";
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		if (!matches(routes[i]->pattern, url, request->subject))
			continue;
		if (serves(routes[i], method, &request->is_head)) {
			request->route = routes[i];
			return 0;
		}
		add_method(allow, routes[i]->method);
		if (strcmp(routes[i]->method, MHD_HTTP_METHOD_GET) == 0 && !routes[i]->streams)
			add_method(allow, MHD_HTTP_METHOD_HEAD);
	}
	if (!*allow) {
		respond_error(request, MHD_HTTP_NOT_FOUND, "not_found", "there is no such resource", NULL);
		return ERR_NOT_FOUND;
	}
	respond_error(request, MHD_HTTP_METHOD_NOT_ALLOWED, "unsupported", "the resource does not have this method", NULL);
	respond_header(request, MHD_HTTP_HEADER_ALLOW, allow);
	return ERR_UNSUPPORTED;
}

struct query {
	struct request *request;
	struct err *err;
	int result;
};

static const char *known_parameter(const struct route *route, const char *name)
{
	for (const char *const *known = route->parameters; known && *known; known++)
		if (strcmp(*known, name) == 0)
			return *known;
	return NULL;
}

/* Decoded once, by MHD's own decoder; an escaped NUL would end the text early. */
static int decode(const char *value, size_t length, char **ret, struct err *err)
{
	char *text = strndup(value ? value : "", length);
	if (!text)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	if (strlen(text) != length || MHD_http_unescape(text) != strlen(text)) {
		free(text);
		return err_set(err, ERR_INVALID, "a parameter of the query has a NUL");
	}
	*ret = text;
	return 0;
}

static enum MHD_Result take_parameter(void *context, enum MHD_ValueKind kind, const char *key, size_t key_length, const char *value,
                                      size_t value_length)
{
	struct query *query = context;
	struct request *request = query->request;
	const char *name = strlen(key) == key_length ? known_parameter(request->route, key) : NULL;
	(void)kind;
	if (!name)
		query->result = err_set(query->err, ERR_INVALID, "the query has a parameter that this resource does not know");
	else if (parameter_text(request, name))
		query->result = err_set(query->err, ERR_INVALID, "%s came twice", name);
	else if (request->parameter_count == FRONT_PARAMETERS_MAX)
		query->result = err_set(query->err, ERR_INVALID, "too many parameters");
	else
		query->result = decode(value, value_length, &request->parameters[request->parameter_count].value, query->err);
	if (query->result)
		return MHD_NO;
	request->parameters[request->parameter_count++].name = name;
	return MHD_YES;
}

int route_find(struct request *request, const char *method, const char *url)
{
	struct err err = ERR_INIT;
	struct query query = {.request = request, .err = &err};
	int result = find(request, method, url);
	if (result)
		return result;
	MHD_get_connection_values_n(request->client->connection, MHD_GET_ARGUMENT_KIND, take_parameter, &query);
	if (query.result)
		respond_err(request, &err);
	return query.result;
}

const char *parameter_text(const struct request *request, const char *name)
{
	for (size_t i = 0; i < request->parameter_count; i++)
		if (strcmp(request->parameters[i].name, name) == 0)
			return request->parameters[i].value;
	return NULL;
}

int parameter_number(const struct request *request, const char *name, int64_t max, int64_t *ret, struct err *err)
{
	const char *text = parameter_text(request, name);
	if (!text)
		return 0;
	errno = 0;
	long long number = strtoll(text, NULL, 10);
	if (!*text || strspn(text, "0123456789") != strlen(text) || errno || number > max)
		return err_set(err, ERR_INVALID, "%s must be a number from 0 to %lld", name, (long long)max);
	*ret = number;
	return 0;
}
