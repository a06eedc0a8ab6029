/* transactions.c - what SQLite alone needs for the transactions of a run.
 *
 * Usage: transactions DATABASE
 * Standard input holds parts of SQL, each closed by a line of "--". It opens the database, performs them one after another, and prints how
 * many nanoseconds each took, the opening within the first. No value is made, judged, hashed or signed here: the rows are in the text. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 };

static const char END[] = "\n--\n";

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	static char text[TEXT_MAX];
	sqlite3 *db;

	if (argc != 2 || fread(text, 1, sizeof(text) - 1, stdin) == 0) {
		fprintf(stderr, "usage: transactions DATABASE < SQL\n");
		return EXIT_FAILURE;
	}
	int64_t since_ns = now_ns();
	if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		fprintf(stderr, "transactions: %s: %s\n", argv[1], sqlite3_errmsg(db));
		return EXIT_FAILURE;
	}
	for (char *part = text, *end; (end = strstr(part, END)); part = end + strlen(END)) {
		*end = '\0';
		if (sqlite3_exec(db, part, NULL, NULL, NULL) != SQLITE_OK) {
			fprintf(stderr, "transactions: %s in: %.120s\n", sqlite3_errmsg(db), part);
			return EXIT_FAILURE;
		}
		int64_t ns = now_ns();
		printf("%lld ", (long long)(ns - since_ns));
		since_ns = ns;
	}
	printf("\n");
	fflush(stdout);
	_exit(EXIT_SUCCESS); /* as the keeper does it: what a killed process loses, nobody needs */
}
