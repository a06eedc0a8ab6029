/* test_nursery.c - workers from a nursery: born on request, ended by their keeper's end, and nobody's zombies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/nursery.h"
#include "support.h"

struct scene {
	struct fake *fake;
	struct provider_factory factory;
	struct nursery *nursery;
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct err err = ERR_INIT;
	scene->fake = fake_new();
	scene->factory = fake_factory(scene->fake);
	*state = scene;
	return nursery_start(&scene->factory, &scene->nursery, &err);
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	nursery_free(scene->nursery);
	fake_free(scene->fake);
	free(scene);
	return 0;
}

static struct worker *spawn(struct scene *scene)
{
	struct worker *worker = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(nursery_spawn(scene->nursery, "recording", &worker, &err), 0);
	return worker;
}

static struct boundary *open_in(struct worker *worker)
{
	struct boundary *boundary = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(worker_boundary(worker, &boundary, &err), 0);
	return boundary;
}

static bool ends(int pidfd)
{
	struct pollfd death = {.fd = pidfd, .events = POLLIN};
	return poll(&death, 1, 10 * 1000) == 1;
}

static void a_worker_of_it_opens_boundaries_and_has_nothing_else_open(void **state)
{
	struct scene *scene = *state;
	struct worker *worker = spawn(scene);
	struct boundary *boundary = open_in(worker);
	assert_int_equal(scene->fake->null_fd_count, 3);
	assert_int_equal(scene->fake->highest_fd, 3);
	struct worker *other = spawn(scene);
	struct boundary *second = open_in(other);
	assert_int_equal(scene->fake->highest_fd, 3);
	boundary->ops->free(boundary);
	second->ops->free(second);
	worker_free(worker);
	worker_free(other);
}

static void its_workers_are_nobodys_zombies(void **state)
{
	struct scene *scene = *state;
	struct worker *worker = spawn(scene);
	pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0);
	assert_true(ends(worker->pidfd));
	worker_free(worker);
	siginfo_t info = {0};
	/* of this process there is one child, the nursery, and it lives */
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
	worker_free(spawn(scene)); /* and it goes on */
}

static void without_the_nursery_there_is_no_further_worker_and_those_there_are_go_on(void **state)
{
	struct scene *scene = *state;
	struct worker *worker = spawn(scene), *none = NULL;
	struct err err = ERR_INIT;
	pidfd_send_signal(nursery_pidfd(scene->nursery), SIGKILL, NULL, 0);
	assert_true(ends(nursery_pidfd(scene->nursery)));
	assert_int_equal(nursery_spawn(scene->nursery, "recording", &none, &err), ERR_LOST);
	struct boundary *boundary = open_in(worker);
	boundary->ops->free(boundary);
	worker_free(worker);
}

static void when_the_keeper_dies_both_end(void **state)
{
	struct scene *scene = *state;
	int pids[2];
	assert_int_equal(pipe(pids), 0);
	pid_t keeper = fork();
	if (keeper == 0) {
		struct nursery *nursery = NULL;
		struct worker *worker = NULL;
		if (nursery_start(&scene->factory, &nursery, NULL) < 0 || nursery_spawn(nursery, "recording", &worker, NULL) < 0)
			_exit(1);
		struct boundary *boundary = NULL;
		if (worker_boundary(worker, &boundary, NULL) < 0)
			_exit(1);
		pid_t session = scene->fake->session; /* the worker's pid */
		(void)!write(pids[1], &session, sizeof(session));
		pause();
		_exit(0);
	}
	pid_t worker = 0;
	assert_int_equal(read(pids[0], &worker, sizeof(worker)), sizeof(worker));
	int pidfd = pidfd_open(worker, 0);
	assert_true(pidfd >= 0);
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	assert_true(ends(pidfd));
	close(pidfd);
	close(pids[0]);
	close(pids[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_worker_of_it_opens_boundaries_and_has_nothing_else_open, setup, teardown),
		cmocka_unit_test_setup_teardown(its_workers_are_nobodys_zombies, setup, teardown),
		cmocka_unit_test_setup_teardown(without_the_nursery_there_is_no_further_worker_and_those_there_are_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(when_the_keeper_dies_both_end, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
