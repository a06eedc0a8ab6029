/* upload_cache.c - remembers what was sent. */
#include "client/upload_cache.h"

#include <string.h>

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}

const char *upload_cache_find(const struct upload_cache *cache, const struct stat *file)
{
	for (size_t i = 0; i < UPLOAD_CACHE_MAX; i++)
		if (*cache->known[i].digest && same_file(&cache->known[i].file, file))
			return cache->known[i].digest;
	return NULL;
}

void upload_cache_add(struct upload_cache *cache, const struct stat *file, const char *digest, int64_t now_ms)
{
	struct upload_known *known = &cache->known[cache->next];
	int64_t changed_ms = (int64_t)file->st_ctim.tv_sec * 1000 + file->st_ctim.tv_nsec / 1000000;

	if (now_ms - changed_ms < UPLOAD_SETTLED_MS || strlen(digest) >= sizeof(known->digest) || upload_cache_find(cache, file))
		return;
	known->file = *file;
	memcpy(known->digest, digest, strlen(digest) + 1);
	cache->next = (cache->next + 1) % UPLOAD_CACHE_MAX;
}
