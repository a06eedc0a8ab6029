/* threads.c - H10: 10,000 threads, as many as it gets; then it goes on. */
#include <pthread.h>

#include "probe.h"

enum { WANTED = 10000, STACK_BYTES = 65536 };

static __attribute__((noreturn)) void *wait_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long made = 0;
	int error = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (made < WANTED && (error = pthread_create(&thread, &attributes, wait_for_ever, NULL)) == 0)
		made++;
	report_number("threads", made);
	errno = error;
	report("refused", error ? -1 : 0);
	return 0;
}
