/* key.c - checks idempotency keys. */
#include "client/key.h"

#include <string.h>

int key_check(const char *key, struct err *err)
{
	size_t length = strlen(key);

	for (size_t i = 0; i < length; i++)
		if (key[i] <= ' ' || key[i] > '~')
			return err_set(err, ERR_INVALID, "must be printable ASCII, without a space");
	if (length == 0 || length > KEY_MAX)
		return err_set(err, ERR_INVALID, "must have 1 to %d bytes", KEY_MAX);
	return 0;
}
