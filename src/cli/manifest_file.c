/* manifest_file.c - loads a manifest. */
#include "cli/manifest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

int manifest_file_load(const char *path, struct manifest **ret, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);
	bool standard_input = strcmp(path, "-") == 0;
	FD_AUTO int fd = standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const char *name = standard_input ? "standard input" : path;

	if (fd < 0)
		return err_sys(err, errno, "%s", name);

	int result = fd_read_rest(fd, &text, err);

	if (result == 0)
		result = manifest_parse(text.data ? text.data : "", text.len, ret, err);
	return result ? err_context(err, result, "%s", name) : 0;
}
