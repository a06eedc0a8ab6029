/* ipc.c - H42: leaves shared memory, a semaphore set, a message queue of each kind, and a POSIX shared memory object behind. */
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "probe.h"

int main(void)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};

	PROBE("shm", shmget(0x4341, 4096, IPC_CREAT | 0600));
	PROBE("sem", semget(0x4341, 1, IPC_CREAT | 0600));
	PROBE("msg", msgget(0x4341, IPC_CREAT | 0600));
	PROBE("mqueue", mq_open("/caisson-left", O_CREAT | O_RDWR, 0600, &attributes));
	PROBE("posix", shm_open("/caisson-left", O_CREAT | O_RDWR, 0600));
	return 0;
}
