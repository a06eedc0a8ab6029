/* head.c - is this a request that two parsers could not read in two ways, and that is meant for this socket?
 *
 * MHD has parsed it. What it lets pass and others might read otherwise is refused here: repeated or contradicting lengths, names
 * with blanks, controls in values. Nobody's web page has business on this socket either: a browser says where a request comes from,
 * and names the host it was sent to. */
#include <string.h>
#include <strings.h>

#include "http/front.h"

/* Headers that mean something here: each may come once. */
enum {
	HEADER_HOST,
	HEADER_LENGTH,
	HEADER_ENCODING,
	HEADER_TYPE,
	HEADER_RANGE,
	HEADER_IF_RANGE,
	HEADER_KEY,
	HEADER_LAST_EVENT,
	HEADER_ORIGIN,
	HEADER_SITE,
	HEADER_COUNT
};

static const char *const single[HEADER_COUNT] = {
	[HEADER_HOST] = "Host",
	[HEADER_LENGTH] = "Content-Length",
	[HEADER_ENCODING] = "Transfer-Encoding",
	[HEADER_TYPE] = "Content-Type",
	[HEADER_RANGE] = "Range",
	[HEADER_IF_RANGE] = "If-Range",
	[HEADER_KEY] = "Idempotency-Key",
	[HEADER_LAST_EVENT] = "Last-Event-ID",
	[HEADER_ORIGIN] = "Origin",
	[HEADER_SITE] = "Sec-Fetch-Site",
};

struct head {
	unsigned count;
	bool seen[HEADER_COUNT];
	const char *complaint; /* NULL: none */
};

static bool is_token(const char *text, size_t length)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";
	for (size_t i = 0; i < length; i++) {
		char c = text[i];
		bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!alphanumeric && (c == '\0' || !strchr(marks, c)))
			return false;
	}
	return length > 0;
}

static bool is_field_text(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 127)
			return false;
	return true;
}

/* A folded line would have to be refused, or taken for a blank. MHD 0.9.75 glues it to the header's *name*, in a copy: so the value
 * does not stand behind the name any more, as it does in the request. Both lie in the connection's one pool, and end with a NUL
 * there. */
static bool is_in_place(const char *name, size_t name_length, const char *value)
{
	const char *behind = name + name_length + 1;
	return value == behind + strspn(behind, " \t");
}

static enum MHD_Result see(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length, const char *value,
                           size_t value_length)
{
	struct head *head = context;
	(void)kind;
	head->count++;
	if (!is_token(name, name_length))
		head->complaint = "the name of a header is no token";
	else if (!value || !is_in_place(name, name_length, value))
		head->complaint = "a header is folded";
	else if (!is_field_text(value, value_length))
		head->complaint = "a header has control characters";
	for (size_t i = 0; i < HEADER_COUNT; i++)
		if (strcasecmp(name, single[i]) == 0) {
			if (head->seen[i])
				head->complaint = "a header that may come once came again";
			head->seen[i] = true;
		}
	return head->complaint ? MHD_NO : MHD_YES;
}

const char *head_value(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->client->connection, MHD_HEADER_KIND, name);
}

static bool is_digits(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static const char *complain_length(const struct request *request, const struct head *head, bool old)
{
	const char *length = head_value(request, "Content-Length"), *encoding = head_value(request, "Transfer-Encoding");
	if (head->complaint)
		return head->complaint;
	if (head->seen[HEADER_LENGTH] && head->seen[HEADER_ENCODING])
		return "Content-Length and Transfer-Encoding contradict each other";
	if (head->seen[HEADER_LENGTH] && (!length || !is_digits(length)))
		return "Content-Length must be a number";
	if (head->seen[HEADER_ENCODING] && (old || !encoding || strcasecmp(encoding, "chunked") != 0))
		return "Transfer-Encoding can only be chunked, in HTTP/1.1";
	return NULL;
}

/* "localhost" or "caisson", with or without a port. */
static bool is_our_host(const char *host)
{
	static const char *const names[] = {"localhost", "caisson"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]);
		if (strncasecmp(host, names[i], length) == 0 &&
		    (host[length] == '\0' || (host[length] == ':' && is_digits(host + length + 1))))
			return true;
	}
	return false;
}

static const char *complain_source(const struct request *request)
{
	const char *host = head_value(request, "Host"), *site = head_value(request, "Sec-Fetch-Site");
	if (!host || !is_our_host(host))
		return "Host must be localhost";
	if (head_value(request, "Origin"))
		return "requests of web pages are not served here";
	if (site && strcmp(site, "none") != 0)
		return "requests of web pages are not served here";
	return NULL;
}

int head_check(struct request *request, const char *url, const char *version)
{
	struct head head = {0};
	bool old = strcmp(version, MHD_HTTP_VERSION_1_1) != 0;
	MHD_get_connection_values_n(request->client->connection, MHD_HEADER_KIND, see, &head);
	const char *complaint = complain_length(request, &head, old);
	if (head.count > FRONT_HEADERS_MAX) {
		respond_error(request, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "limit", "too many headers", NULL);
		return ERR_LIMIT;
	}
	if (!complaint && *url != '/')
		complaint = "the target must be a path";
	if (complaint) {
		respond_error(request, MHD_HTTP_BAD_REQUEST, "invalid", complaint, NULL);
		return ERR_INVALID;
	}
	complaint = complain_source(request);
	if (complaint) {
		respond_error(request, MHD_HTTP_FORBIDDEN, "permission", complaint, NULL);
		return ERR_PERMISSION;
	}
	return 0;
}
