/* remove_tree.h - takes away what a test has made below a directory. */
#pragma once

#include <sys/wait.h>
#include <unistd.h>

/* 0, or the wait status of the program that failed. */
static inline int remove_tree(const char *path)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	return status;
}
