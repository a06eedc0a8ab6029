/* key.h - the keeper's Ed25519 key (RFC 8032, by libsodium): made at first use, 0600, in the ledger's directory. */
#pragma once

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

struct key;

/* Loads DIR/key, or makes it (written whole and fsynced before it gets its name, so that two processes agree on one). ERR_PERMISSION when
 * somebody else could read or has made it. */
int key_open(int dir, struct key **ret, struct err *err);
void key_free(struct key *key);

const uint8_t *key_public(const struct key *key);  /* 32 bytes */
const char *key_fingerprint(const struct key *key);/* hex SHA-256 of the public key */

int key_sign(const struct key *key, const void *bytes, size_t count, uint8_t ret[static 64], struct err *err);
/* 0 when the signature holds, ERR_DAMAGED when not. */
int key_verify(const uint8_t public_key[static 32], const void *bytes, size_t count, const uint8_t signature[static 64], struct err *err);
void key_fingerprint_of(const uint8_t public_key[static 32], char ret[static DIGEST_HEX_SIZE]);
