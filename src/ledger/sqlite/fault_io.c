/* fault_io.c - fault point ledger.write: each single write of SQLite to the ledger's files. Does nothing unless built with -Dfault_points=true.
 *
 * The N-th passage is a place inside of a transaction's commit or of a checkpoint, which no statement of ours could name. */
#include <errno.h>
#include <unistd.h>

#include "base/fault.h"
#include "ledger/sqlite/db.h"

#ifdef CAISSON_FAULT_POINTS

/* 0, or -1 with errno. */
static int write_fault(void)
{
	int fault = FAULT("ledger.write");

	if (fault < 0)
		errno = fault == ERR_NO_SPACE ? ENOSPC : EIO;
	return fault < 0 ? -1 : 0;
}

static ssize_t faulty_pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	return write_fault() < 0 ? -1 : pwrite(fd, bytes, count, offset);
}

static int faulty_truncate(int fd, off_t size)
{
	return write_fault() < 0 ? -1 : ftruncate(fd, size);
}

#endif

void db_fault_writes(void)
{
#ifdef CAISSON_FAULT_POINTS
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)(void (*)(void))faulty_pwrite);
	vfs->xSetSystemCall(vfs, "ftruncate", (sqlite3_syscall_ptr)(void (*)(void))faulty_truncate);
#endif
}
