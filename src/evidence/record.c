/* record.c - the hash chain of an attempt's records. Pure. */
#include "evidence/record.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Kind and attempt go into the text unquoted, so they may hold nothing that JSON would escape. */
static bool plain_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

	return *word != '\0' && word[strspn(word, plain)] == '\0';
}

static void add(struct hasher *hasher, const char *text)
{
	hasher_add(hasher, text, strlen(text));
}

/* The body goes in as it is stored, not parsed and written anew: a byte of white space more is another record. */
int record_digest(const char *attempt_id, int64_t seq, int64_t at_ms, const char *kind, const char *body,
                  const struct digest *previous, struct digest *ret, struct err *err)
{
	char number[32], text[DIGEST_TEXT_SIZE];
	struct hasher *hasher;

	if (!plain_word(attempt_id) || !plain_word(kind))
		return err_set(err, ERR_INVALID, "a record's attempt and kind are words of a-z, 0-9, '_' and '-'");
	if (body[0] != '{')
		return err_set(err, ERR_INVALID, "a record's body is a JSON object");
	hasher = hasher_new();
	if (!hasher)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	snprintf(number, sizeof number, "%" PRId64, at_ms);
	add(hasher, "{\"at\":");
	add(hasher, number);
	add(hasher, ",\"attempt\":\"");
	add(hasher, attempt_id);
	add(hasher, "\",\"body\":");
	add(hasher, body);
	add(hasher, ",\"kind\":\"");
	add(hasher, kind);
	add(hasher, "\",\"prev_digest\":\"");
	add(hasher, digest_text(previous, text));
	snprintf(number, sizeof number, "%" PRId64, seq);
	add(hasher, "\",\"seq\":");
	add(hasher, number);
	add(hasher, "}");
	hasher_finish(hasher, ret);
	hasher_free(hasher);
	return 0;
}
