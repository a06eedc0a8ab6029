/* test_config.c - a configuration is read exactly, or refused with the place of what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "keeper/config.h"

#define V "\"version\":\"caisson.config/v1\""

static void what_is_there_is_read_and_the_rest_is_not_given(void **state)
{
	struct config config;
	static const char text[] = "{" V ",\"workers\":3,\"queue_max\":100,\"per_owner\":2,\"lease_ttl_ms\":1000,\"drain_ms\":0,"
				   "\"socket\":\"/run/s\",\"profile\":\"linux\",\"cgroup_parent\":\"/x\"}";
	(void)state;
	assert_int_equal(config_parse("{" V "}", strlen("{" V "}"), &config, NULL), 0);
	assert_string_equal(config.socket, "");
	assert_true(config.workers == -1 && config.queue_max == -1 && config.per_owner == -1 && config.lease_ttl_ms == -1 && config.drain_ms == -1);
	assert_int_equal(config_parse(text, strlen(text), &config, NULL), 0);
	assert_true(config.workers == 3 && config.queue_max == 100 && config.per_owner == 2 && config.lease_ttl_ms == 1000 && config.drain_ms == 0);
	assert_string_equal(config.socket, "/run/s");
	assert_string_equal(config.profile, "linux");
	assert_string_equal(config.cgroup_parent, "/x");
}

static void what_is_wrong_is_named_and_changes_nothing(void **state)
{
	static const char *const wrong[][2] = {
		{"{}", "$.version"},
		{"[]", "$"},
		{"{\"version\":\"caisson.config/v2\"}", "$.version"},
		{"{" V ",\"worker\":3}", "$.worker"},
		{"{" V ",\"workers\":0}", "$.workers"},
		{"{" V ",\"workers\":65}", "$.workers"},
		{"{" V ",\"workers\":\"3\"}", "$.workers"},
		{"{" V ",\"workers\":1.5}", "$.workers"},
		{"{" V ",\"queue_max\":100001}", "$.queue_max"},
		{"{" V ",\"per_owner\":-1}", "$.per_owner"},
		{"{" V ",\"lease_ttl_ms\":999}", "$.lease_ttl_ms"},
		{"{" V ",\"lease_ttl_ms\":600001}", "$.lease_ttl_ms"},
		{"{" V ",\"drain_ms\":-1}", "$.drain_ms"},
		{"{" V ",\"socket\":\"\"}", "$.socket"},
		{"{" V ",\"profile\":\"a-profile-with-a-long-name\"}", "$.profile"},
		{"{" V ",\"workers\":2,\"workers\":3}", "line 1"},
		{"{" V "} x", "line 1"},
		{"", "line 1"},
	};
	struct config config;
	(void)state;
	config_init(&config);
	config.workers = 7;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = ERR_INIT;
		assert_int_equal(config_parse(wrong[i][0], strlen(wrong[i][0]), &config, &err), ERR_INVALID);
		if (!strstr(err.text, wrong[i][1]))
			fail_msg("%s: \"%s\" does not name %s", wrong[i][0], err.text, wrong[i][1]);
		assert_int_equal(config.workers, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_read_and_the_rest_is_not_given),
		cmocka_unit_test(what_is_wrong_is_named_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
