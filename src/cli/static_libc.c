/* static_libc.c - what a static program must not have: loading of code, and look-ups of names through plug-ins (NSS).
 *
 * SQLite and libcrypto refer to these functions, for extensions and network streams that Caisson does not use. The linker gives
 * them these instead (--wrap, meson.build), and they fail: no code enters the program after it was linked. */
#include <netdb.h>
#include <stddef.h>

void *__wrap_dlopen(const char *file, int mode);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret);
struct hostent *__wrap_gethostbyname(const char *name);

void *__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)ret;
	return EAI_FAIL;
}

struct hostent *__wrap_gethostbyname(const char *name)
{
	(void)name;
	return NULL;
}
