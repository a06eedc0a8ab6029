/* key.c - the keeper's Ed25519 key: its file, signing, verifying (libsodium).
 *
 * The file holds seed and public key (64 bytes), which is libsodium's own form of a secret key. libcrypto could sign too, but its first
 * use costs a process 0.9 ms, a fifth of a whole run (docs/adr/0008). */
#include "evidence/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

enum {
	SEED_BYTES = crypto_sign_ed25519_SEEDBYTES,
	PUBLIC_BYTES = crypto_sign_ed25519_PUBLICKEYBYTES,
	SECRET_BYTES = crypto_sign_ed25519_SECRETKEYBYTES,
	PROC_PATH_SIZE = 40, /* "/proc/self/fd/" and a number */
};

static const char file_name[] = "key";

struct key {
	uint8_t secret[SECRET_BYTES]; /* seed, then public key */
	char fingerprint[DIGEST_HEX_SIZE];
};

static int generate(struct key *key, struct err *err)
{
	uint8_t seed[SEED_BYTES], public_key[PUBLIC_BYTES];

	id_random(seed, sizeof seed);
	int r = crypto_sign_ed25519_seed_keypair(public_key, key->secret, seed);
	sodium_memzero(seed, sizeof seed);
	return r == 0 ? 0 : err_set(err, ERR_INTERNAL, "libsodium makes no Ed25519 key");
}

/* Writes the whole file before it gets its name. When somebody else was faster, theirs is the key and ours is forgotten. */
static int write_file(int dir, const struct key *key, struct err *err)
{
	FD_AUTO int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[PROC_PATH_SIZE];
	int r;

	if (fd < 0)
		return err_sys(err, errno, "cannot make a key file");
	r = fd_write_all(fd, key->secret, sizeof key->secret);
	if (r < 0)
		return err_sys(err, -r, "cannot write the key file");
	if (fchmod(fd, 0600) < 0 || fsync(fd) < 0)
		return err_sys(err, errno, "cannot write the key file");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir, file_name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_sys(err, errno, "cannot name the key file");
	if (fsync(dir) < 0)
		return err_sys(err, errno, "cannot sync the key's directory");
	return 0;
}

static int check_file(int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot look at the key file");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_PERMISSION, "the key is no regular file");
	if (st.st_uid != geteuid())
		return err_set(err, ERR_PERMISSION, "the key file belongs to uid %u", st.st_uid);
	if ((st.st_mode & 077) != 0)
		return err_set(err, ERR_PERMISSION, "the key file's mode is %04o: others could read it", st.st_mode & 07777);
	if (st.st_size != SECRET_BYTES)
		return err_set(err, ERR_DAMAGED, "the key file has %lld bytes, not %d", (long long)st.st_size, SECRET_BYTES);
	return 0;
}

/* ERR_NOT_FOUND when there is none. */
static int read_file(int dir, struct key *key, struct err *err)
{
	FD_AUTO int fd = openat(dir, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "no key") : err_sys(err, errno, "cannot open the key file");
	r = check_file(fd, err);
	if (r < 0)
		return r;
	return fd_read_full(fd, key->secret, SECRET_BYTES) == SECRET_BYTES ? 0 : err_set(err, ERR_IO, "cannot read the key file");
}

static int load_or_make(int dir, struct key *key, struct err *err)
{
	struct err absent = ERR_INIT;
	int r = read_file(dir, key, &absent);

	if (r != ERR_NOT_FOUND)
		return r < 0 ? err_set(err, r, "%s", absent.text) : 0;
	r = generate(key, err);
	if (r == 0)
		r = write_file(dir, key, err);
	return r < 0 ? r : read_file(dir, key, err);
}

int key_open(int dir, struct key **ret, struct err *err)
{
	struct key *key = calloc(1, sizeof *key);
	int r;

	if (!key)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	r = load_or_make(dir, key, err);
	if (r < 0) {
		key_free(key);
		return r;
	}
	key_fingerprint_of(key_public(key), key->fingerprint);
	*ret = key;
	return 0;
}

void key_free(struct key *key)
{
	if (!key)
		return;
	sodium_memzero(key->secret, sizeof key->secret);
	free(key);
}

const uint8_t *key_public(const struct key *key)
{
	return key->secret + SEED_BYTES;
}

const char *key_fingerprint(const struct key *key)
{
	return key->fingerprint;
}

void key_fingerprint_of(const uint8_t public_key[static 32], char ret[static DIGEST_HEX_SIZE])
{
	struct digest digest;

	digest_of(public_key, PUBLIC_BYTES, &digest);
	digest_hex(&digest, ret);
}

int key_sign(const struct key *key, const void *bytes, size_t count, uint8_t ret[static 64], struct err *err)
{
	return crypto_sign_ed25519_detached(ret, NULL, bytes, count, key->secret) == 0
	       ? 0 : err_set(err, ERR_INTERNAL, "libsodium does not sign");
}

int key_verify(const uint8_t public_key[static 32], const void *bytes, size_t count, const uint8_t signature[static 64],
               struct err *err)
{
	return crypto_sign_ed25519_verify_detached(signature, bytes, count, public_key) == 0
	       ? 0 : err_set(err, ERR_DAMAGED, "the signature does not hold");
}
