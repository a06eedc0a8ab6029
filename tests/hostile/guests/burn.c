/* burn.c - H22, H23, H24, H26: burns CPU time: in a child, in four threads, or in the kernel. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>

#include "probe.h"

static __attribute__((noreturn)) void *spin(void *unused)
{
	volatile unsigned long turns = 0;

	(void)unused;
	for (;;)
		turns++;
}

static void burn_system_time(void)
{
	static char buffer[65536];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (;;) {
		if (getrandom(buffer, sizeof(buffer), 0) < 0)
			die("getrandom");
		for (int i = 0; i < 100; i++)
			if (write(null, buffer, 1) != 1)
				die("write");
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "child";
	pthread_t thread;

	if (strcmp(how, "system") == 0)
		burn_system_time();
	if (strcmp(how, "threads") == 0) {
		for (int i = 0; i < 3; i++)
			if (pthread_create(&thread, NULL, spin, NULL) != 0)
				die("pthread_create");
		spin(NULL);
	}
	if (fork() == 0)
		spin(NULL);
	wait(NULL);
	return 0;
}
