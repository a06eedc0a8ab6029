/* memory.c - H36, H37, H39, H41, H45, H48, H49: asks for memory, `memory HOW MIB`.
 *
 * touch: touches it. reserve: reserves 8 GiB, touches 1 MiB. child: a child touches it, main exits 0. memfd: writes it into a
 * memfd. adjust: first tries to be spared by the OOM killer, then touches it. pinned: mlock, huge pages, userfaultfd.
 * pageout: asks for each MiB that it has touched to be swapped out. */
#include <fcntl.h>
#include <sys/mman.h>

#include "probe.h"

enum { MIB = 1 << 20 };

static char *map(size_t bytes, int flags)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void touch(size_t bytes)
{
	char *memory = map(bytes, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < bytes; i += 4096)
		memory[i] = 1;
}

static void reserve(void)
{
	char *memory = map((size_t)8 << 30, MAP_NORESERVE);

	if (memory == MAP_FAILED)
		die("mmap");
	memset(memory, 1, MIB);
	printf("reserved\n");
}

static void in_child(size_t bytes)
{
	pid_t child = fork();

	if (child == 0) {
		touch(bytes);
		_exit(0);
	}
	report_child("child", child);
}

static void fill_memfd(size_t bytes)
{
	static char block[MIB];
	int fd = memfd_create("hoard", MFD_CLOEXEC);

	PROBE("memfd", fd);
	memset(block, 1, sizeof(block));
	for (size_t done = 0; fd >= 0 && done < bytes; done += sizeof(block))
		if (write(fd, block, sizeof(block)) < 0)
			die("write");
}

static void adjust(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	PROBE("adjust.open", fd);
	PROBE("adjust.-1000", fd < 0 ? -1 : write(fd, "-1000", 5));
	PROBE("adjust.-1", fd < 0 ? -1 : write(fd, "-1", 2));
}

static void page_out(size_t bytes)
{
	char line[128];
	FILE *status;

	for (size_t done = 0; done < bytes; done += MIB) {
		char *memory = map(MIB, 0);

		if (memory == MAP_FAILED)
			die("mmap");
		memset(memory, 1, MIB);
		madvise(memory, MIB, MADV_PAGEOUT);
	}
	status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "VmSwap:", 7) == 0)
			report_number("swapped_kib", strtol(line + 7, NULL, 10));
}

static void pinned(size_t bytes)
{
	char *memory = map(bytes, 0), *huge = map((size_t)64 * MIB, MAP_HUGETLB);

	PROBE("userfaultfd", syscall(SYS_userfaultfd, 0));
	PROBE("hugetlb", huge == MAP_FAILED ? -1 : 0);
	PROBE("shm.huge", syscall(SYS_memfd_create, "huge", MFD_HUGETLB));
	if (huge != MAP_FAILED)
		memset(huge, 1, (size_t)64 * MIB);
	PROBE("mlock", mlock(memory, bytes));
	PROBE("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "touch";
	size_t bytes = (size_t)(argc > 2 ? strtol(argv[2], NULL, 10) : 200) * MIB;

	if (strcmp(how, "reserve") == 0)
		reserve();
	else if (strcmp(how, "child") == 0)
		in_child(bytes);
	else if (strcmp(how, "memfd") == 0)
		fill_memfd(bytes);
	else if (strcmp(how, "pageout") == 0)
		page_out(bytes);
	else if (strcmp(how, "pinned") == 0)
		pinned(bytes);
	else {
		if (strcmp(how, "adjust") == 0)
			adjust();
		touch(bytes);
	}
	return 0;
}
