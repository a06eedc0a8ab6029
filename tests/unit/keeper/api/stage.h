/* stage.h - an API whole, for its tests: a socket, the real front, a real ledger shared by threads; only the keeper behind it is
 * played. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/un.h>

#include "keeper/api/api_internal.h"
#include "ledger_fixture.h"

enum { PATIENCE_S = 30, NOBODY = 65534 };

struct stage {
	struct ledger_fixture fixture;
	struct store *store;
	struct api *api;
	struct api_core core;
	char socket_path[160];
	char submitted_by[API_PRINCIPAL_MAX], submitted_key[64];
	int refuse;             /* code of an error that submit gives */
	const char *refusal;
	struct capture *capture; /* of stdout, while a run is driven */
	bool ready;
	int recovered;
	pthread_mutex_t lock;
	char log[1024];
};

/* cmocka's set-up and tear-down; the front's path is given first. */
void stage_front(const char *path);
int stage_set_up(void **state);
int stage_tear_down(void **state);
#define api_test(name) cmocka_unit_test_setup_teardown(name, stage_set_up, stage_tear_down)

/* Starts the API of a stage that is filled in: the first one, or one more. */
int stage_start(struct stage *stage, struct err *err);

struct sockaddr_un address_of(const char *path);
int dial(const char *path);
/* One request, and the whole answer as text (free); what there was of it when the connection was reset. body may be NULL. */
char *ask(const struct stage *stage, const char *method, const char *target, const char *more, const char *body);
void assert_has(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);
/* Until so many requests wait: /metrics tells. */
void await_waiting(const struct stage *stage, int count);

/* Asks, and expects each of these in the answer. */
#define assert_answer(stage, method, target, more, body, ...) \
	do { \
		static const char *const expected_parts[] = {__VA_ARGS__}; \
		char *answer_text = ask(stage, method, target, more, body); \
		for (size_t part_ = 0; part_ < sizeof(expected_parts) / sizeof(expected_parts[0]); part_++) \
			assert_has(answer_text, expected_parts[part_]); \
		free(answer_text); \
	} while (0)
