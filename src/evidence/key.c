/* key.c - the keeper's Ed25519 key: its file, signing, verifying.
 *
 * The file holds seed and public key (64 bytes), so that opening it computes nothing. libcrypto pays 0.5 ms for its first use of
 * a key in a process; key_warm() moves that to where nobody waits. */
#include "evidence/key.h"

#define ERR_STATE OPENSSL_ERR_STATE /* a type of OpenSSL's has the name of a code of ours */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#undef ERR_STATE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

enum {
	SEED_BYTES = 32,
	PUBLIC_BYTES = 32,
	SIGNATURE_BYTES = 64,
	FILE_BYTES = SEED_BYTES + PUBLIC_BYTES,
	PROC_PATH_SIZE = 40, /* "/proc/self/fd/" and a number */
};

static const char file_name[] = "key";

struct key {
	uint8_t seed[SEED_BYTES], public_key[PUBLIC_BYTES];
	char fingerprint[DIGEST_HEX_SIZE];
	EVP_PKEY *pkey; /* NULL before key_warm */
};

/* Nothing that Caisson signs may depend on a configuration file of the host's. A second call does nothing. */
static int crypto_start(struct err *err)
{
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1)
		return 0;
	return err_set(err, ERR_INTERNAL, "libcrypto does not start");
}

static void pkey_free_p(EVP_PKEY **pkey)
{
	EVP_PKEY_free(*pkey);
}

static void md_free_p(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
}

/* Both halves are given, so that libcrypto need not compute the public one again. */
static int private_pkey(const struct key *key, EVP_PKEY **ret, struct err *err)
{
	EVP_PKEY *pkey = NULL;
	EVP_PKEY_CTX *context;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, (void *)key->seed, SEED_BYTES),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)key->public_key, PUBLIC_BYTES),
		OSSL_PARAM_construct_end(),
	};
	int r = crypto_start(err);

	if (r < 0)
		return r;
	context = EVP_PKEY_CTX_new_from_name(NULL, "ED25519", NULL);
	if (context && EVP_PKEY_fromdata_init(context) == 1 && EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_KEYPAIR, params) == 1)
		*ret = pkey;
	else
		r = err_set(err, ERR_INTERNAL, "libcrypto does not take the key");
	EVP_PKEY_CTX_free(context);
	return r;
}

static int generate(struct key *key, struct err *err)
{
	__attribute__((cleanup(pkey_free_p))) EVP_PKEY *pkey = NULL;
	size_t size = PUBLIC_BYTES;
	int r = crypto_start(err);

	if (r < 0)
		return r;
	id_random(key->seed, SEED_BYTES);
	pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->seed, SEED_BYTES);
	if (!pkey || EVP_PKEY_get_raw_public_key(pkey, key->public_key, &size) != 1)
		return err_set(err, ERR_INTERNAL, "libcrypto makes no Ed25519 key");
	return 0;
}

/* Writes the whole file before it gets its name. When somebody else was faster, theirs is the key and ours is forgotten. */
static int write_file(int dir, const struct key *key, struct err *err)
{
	FD_AUTO int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	uint8_t bytes[FILE_BYTES];
	char path[PROC_PATH_SIZE];
	int r;

	if (fd < 0)
		return err_sys(err, errno, "cannot make a key file");
	memcpy(bytes, key->seed, SEED_BYTES);
	memcpy(bytes + SEED_BYTES, key->public_key, PUBLIC_BYTES);
	r = fd_write_all(fd, bytes, sizeof bytes);
	OPENSSL_cleanse(bytes, sizeof bytes);
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
	if (st.st_size != FILE_BYTES)
		return err_set(err, ERR_DAMAGED, "the key file has %lld bytes, not %d", (long long)st.st_size, FILE_BYTES);
	return 0;
}

/* ERR_NOT_FOUND when there is none. */
static int read_file(int dir, struct key *key, struct err *err)
{
	FD_AUTO int fd = openat(dir, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t bytes[FILE_BYTES];
	ssize_t got;
	int r;

	if (fd < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "no key") : err_sys(err, errno, "cannot open the key file");
	r = check_file(fd, err);
	if (r < 0)
		return r;
	got = fd_read_full(fd, bytes, sizeof bytes);
	if (got != FILE_BYTES)
		return err_set(err, ERR_IO, "cannot read the key file");
	memcpy(key->seed, bytes, SEED_BYTES);
	memcpy(key->public_key, bytes + SEED_BYTES, PUBLIC_BYTES);
	OPENSSL_cleanse(bytes, sizeof bytes);
	return 0;
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
	key_fingerprint_of(key->public_key, key->fingerprint);
	*ret = key;
	return 0;
}

void key_free(struct key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->pkey);
	OPENSSL_cleanse(key->seed, SEED_BYTES);
	free(key);
}

int key_warm(struct key *key, struct err *err)
{
	return key->pkey ? 0 : private_pkey(key, &key->pkey, err);
}

const uint8_t *key_public(const struct key *key)
{
	return key->public_key;
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

static int sign_with(EVP_PKEY *pkey, const void *bytes, size_t count, uint8_t ret[static 64], struct err *err)
{
	__attribute__((cleanup(md_free_p))) EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = SIGNATURE_BYTES;

	if (!context || EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) != 1 ||
	    EVP_DigestSign(context, ret, &size, bytes, count) != 1)
		return err_set(err, ERR_INTERNAL, "libcrypto does not sign");
	return 0;
}

int key_sign(const struct key *key, const void *bytes, size_t count, uint8_t ret[static 64], struct err *err)
{
	__attribute__((cleanup(pkey_free_p))) EVP_PKEY *own = NULL;

	if (!key->pkey) {
		int r = private_pkey(key, &own, err);
		if (r < 0)
			return r;
	}
	return sign_with(key->pkey ? key->pkey : own, bytes, count, ret, err);
}

int key_verify(const uint8_t public_key[static 32], const void *bytes, size_t count, const uint8_t signature[static 64],
               struct err *err)
{
	__attribute__((cleanup(pkey_free_p))) EVP_PKEY *pkey = NULL;
	__attribute__((cleanup(md_free_p))) EVP_MD_CTX *context = NULL;
	int r = crypto_start(err);

	if (r < 0)
		return r;
	pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, PUBLIC_BYTES);
	context = EVP_MD_CTX_new();
	if (!pkey || !context || EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) != 1)
		return err_set(err, ERR_INTERNAL, "libcrypto does not verify");
	if (EVP_DigestVerify(context, signature, SIGNATURE_BYTES, bytes, count) != 1)
		return err_set(err, ERR_DAMAGED, "the signature does not hold");
	return 0;
}
