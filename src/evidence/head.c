/* head.c - the head of a ledger: how far each key's seals went when somebody looked, kept elsewhere. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/verify_internal.h"

#define HEAD_VERSION "caisson.head/v1"

enum { LEDGER_ID_SIZE = 32 };

struct head {
	char ledger[LEDGER_ID_SIZE], key[DIGEST_HEX_SIZE];
	int64_t seq;
	struct digest digest;
};

static const char *ledger_id(const struct image *image)
{
	struct image_range ledgers = image_find(image, "ledger", NULL);
	const char *id = ledgers.count == 1 ? image_text(ledgers.first, "ledger_id") : NULL;

	return id ? id : "";
}

static int parse_line(const char *line, size_t length, struct head *ret, struct err *err)
{
	char text[2 * DIGEST_TEXT_SIZE + LEDGER_ID_SIZE + 64], version[sizeof HEAD_VERSION], seq[21], digest[DIGEST_TEXT_SIZE];
	int end = 0;

	if (length < sizeof text) {
		memcpy(text, line, length);
		text[length] = '\0';
		if (sscanf(text, "%15s %31s %64s %20[0-9] %71s%n", version, ret->ledger, ret->key, seq, digest, &end) == 5 &&
		    text[end] == '\0' && strcmp(version, HEAD_VERSION) == 0 &&
		    digest_parse(digest, &ret->digest, NULL) == 0) {
			errno = 0;
			ret->seq = strtoll(seq, NULL, 10);
			if (errno == 0)
				return 0;
		}
	}
	return err_set(err, ERR_INVALID, "head: not a line of the form \"" HEAD_VERSION " LEDGER KEY SEQ DIGEST\"");
}

static const struct sealed *find_seal(const struct verifier *verifier, const struct head *head)
{
	for (size_t i = 0; i < verifier->seal_count; i++)
		if (verifier->seals[i].seq == head->seq && strcmp(verifier->seals[i].key, head->key) == 0)
			return &verifier->seals[i];
	return NULL;
}

static void check_one(struct verifier *verifier, const struct head *head)
{
	const struct sealed *sealed = find_seal(verifier, head);

	if (strcmp(head->ledger, ledger_id(&verifier->image)) != 0)
		verify_problem(verifier, NULL, "head: is of ledger %s, this one is %s", head->ledger, ledger_id(&verifier->image));
	else if (!sealed)
		verify_problem(verifier, NULL,
		               "head: seal %" PRId64 " of key %.16s... is missing: the ledger was cut back or remade", head->seq,
		               head->key);
	else if (!digest_equal(&sealed->digest, &head->digest))
		verify_problem(verifier, NULL, "head: seal %" PRId64 " of key %.16s... is another one (%s)", head->seq, head->key,
		               sealed->run);
}

int verify_check_head(struct verifier *verifier, struct err *err)
{
	const char *line = verifier->options->head;

	while (line && *line) {
		size_t length = strcspn(line, "\n");
		struct head head = {.seq = 0};
		int r = length > 0 ? parse_line(line, length, &head, err) : 0;

		if (r < 0)
			return r;
		if (length > 0)
			check_one(verifier, &head);
		line += length + (line[length] == '\n');
	}
	return 0;
}

static int write_line(const struct image *image, const struct sealed *last, struct buf *ret, struct err *err)
{
	char digest[DIGEST_TEXT_SIZE];

	return buf_printf(ret, err, HEAD_VERSION " %s %s %" PRId64 " %s\n", ledger_id(image), last->key, last->seq,
	                  digest_text(&last->digest, digest));
}

static int write_all(const struct verifier *verifier, struct buf *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < verifier->seal_count; i++) {
		const struct sealed *sealed = &verifier->seals[i];
		bool is_last = i + 1 == verifier->seal_count || strcmp(sealed[1].key, sealed->key) != 0;

		if (!sealed->holds)
			r = err_set(err, ERR_DAMAGED, "%s: its receipt does not hold", sealed->run);
		else if (is_last)
			r = write_line(&verifier->image, sealed, ret, err);
	}
	return r;
}

int head_write(const struct verify_source *source, struct buf *ret, struct err *err)
{
	struct verifier verifier = {.source = source};
	int r = image_load(source, &verifier.image, err);

	if (r < 0)
		return r;
	r = verify_load_seals(&verifier, err);
	if (r == 0)
		r = write_all(&verifier, ret, err);
	verify_done(&verifier);
	return r;
}
