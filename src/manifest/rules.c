/* rules.c - what the texts of a manifest and a plan must look like: paths, names, a number of CPUs. */
#include <stdio.h>
#include <string.h>

#include "manifest/internal.h"

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum { REQUIRE_LEVEL_DIGITS_MAX = 6, CPUS_WHOLE_DIGITS_MAX = 4, CPUS_FRACTION_DIGITS_MAX = 2 };

const char *const manifest_profile_names[] = {"linux", "docker", "recording", "jobobject", NULL};
const char *const manifest_overflow_names[] = {[OVERFLOW_KILL] = "kill", [OVERFLOW_TRUNCATE] = "truncate", NULL};
const char *const manifest_scratch_names[] = {[SCRATCH_MEMORY] = "memory", [SCRATCH_DISK] = "disk", NULL};
const char *const manifest_network_names[] = {[NETWORK_NONE] = "none", [NETWORK_ALLOWLIST] = "allowlist", NULL};
const char *const manifest_retained_names[] = {[RETAINED_FAIL] = "fail", [RETAINED_IGNORE] = "ignore", NULL};
const char *const manifest_mode_names[] = {"0444", "0555", NULL};
const uint32_t manifest_modes[] = {0444, 0555};

static bool is_dots(const char *name, size_t length)
{
	return (length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.');
}

/* Of a relative path. A trailing slash is an empty last component. */
static const char *complain_components(const char *path)
{
	for (;;) {
		size_t length = strcspn(path, "/");
		if (length == 0)
			return "must not have an empty component or a trailing slash";
		if (is_dots(path, length))
			return "must not have a component \".\" or \"..\"";
		if (length > MANIFEST_MAX_NAME)
			return "must not have a component of more than 255 bytes";
		if (path[length] == '\0')
			return NULL;
		path += length + 1;
	}
}

static bool is_below(const char *path, const char *parent)
{
	size_t length = strlen(parent);

	return strncmp(path, parent, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

const char *manifest_complain_empty(const char *text)
{
	return *text == '\0' ? "must not be empty" : NULL;
}

const char *manifest_complain_absolute(const char *text)
{
	if (*text != '/')
		return "must be an absolute path";
	return text[1] == '\0' ? NULL : complain_components(text + 1);
}

const char *manifest_complain_cwd(const char *text)
{
	const char *complaint = manifest_complain_absolute(text);

	if (complaint)
		return complaint;
	/* /proc/self/fd/N was a way out of a container before (CVE-2024-21626). */
	return is_below(text, "/proc") ? "must not be in /proc" : NULL;
}

const char *manifest_complain_target(const char *text)
{
	const char *complaint = manifest_complain_absolute(text);

	if (complaint)
		return complaint;
	return is_below(text, "/box") && strcmp(text, "/box") != 0 ? NULL : "must be a path below /box";
}

const char *manifest_complain_output(const char *text)
{
	return *text == '/' ? "must be relative to /out" : complain_components(text);
}

const char *manifest_complain_rootfs(const char *text)
{
	return *text == '/' || strcmp(text, "host") == 0 ? NULL : "must be \"host\" or an absolute path";
}

/* The length of the name that the text begins with; 0 when it begins with none. */
static size_t env_name_length(const char *text)
{
	return strspn(text, LOWER UPPER "_") > 0 ? strspn(text, LOWER UPPER DIGITS "_") : 0;
}

const char *manifest_complain_env_key(const char *text)
{
	size_t length = env_name_length(text);

	return length > 0 && text[length] == '\0' ? NULL : "must have a name of letters, digits and _ that begins with no digit";
}

const char *manifest_complain_env_entry(const char *text)
{
	size_t length = env_name_length(text);

	return length > 0 && text[length] == '=' ? NULL : "must be NAME=VALUE";
}

const char *manifest_complain_require(const char *text)
{
	static const char complaint[] = "must be NAME or NAME>=N, with NAME of a-z, 0-9, dot and _";
	size_t name = strspn(text, LOWER DIGITS "._");

	if (name == 0)
		return complaint;
	text += name;
	if (*text == '\0')
		return NULL;
	if (strncmp(text, ">=", 2) != 0)
		return complaint;
	text += 2;
	size_t digits = strspn(text, DIGITS);
	bool number = digits >= 1 && digits <= REQUIRE_LEVEL_DIGITS_MAX && text[digits] == '\0' && *text != '0';
	return number ? NULL : complaint;
}

bool manifest_cpus_parse(const char *text, int64_t *ret_centi)
{
	size_t whole = strspn(text, DIGITS), fraction = 0;
	int64_t centi = 0;

	if (whole < 1 || whole > CPUS_WHOLE_DIGITS_MAX || (whole > 1 && *text == '0'))
		return false;
	for (size_t i = 0; i < whole; i++)
		centi = centi * 10 + (text[i] - '0');
	text += whole;
	if (*text == '.') {
		fraction = strspn(++text, DIGITS);
		if (fraction < 1 || fraction > CPUS_FRACTION_DIGITS_MAX)
			return false;
	}
	for (size_t i = 0; i < CPUS_FRACTION_DIGITS_MAX; i++)
		centi = centi * 10 + (i < fraction ? text[i] - '0' : 0);
	if (text[fraction] != '\0' || centi == 0)
		return false;
	*ret_centi = centi;
	return true;
}

const char *manifest_cpus_format(int64_t centi, char text[static MANIFEST_CPUS_SIZE])
{
	unsigned whole = (unsigned)(centi / 100), fraction = (unsigned)(centi % 100);

	if (fraction == 0)
		snprintf(text, MANIFEST_CPUS_SIZE, "%u", whole);
	else if (fraction % 10 == 0)
		snprintf(text, MANIFEST_CPUS_SIZE, "%u.%u", whole, fraction / 10);
	else
		snprintf(text, MANIFEST_CPUS_SIZE, "%u.%02u", whole, fraction);
	return text;
}
