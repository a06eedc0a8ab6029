/* enroll.c - verifies, from outside, that main at the gate and init have every property that the plan and the contract ask for.
 *
 * Each property is one evidence line; the first that does not hold fails the step with its name. What only the processes themselves can
 * know (Landlock, securebits, …) is attested by their own return values. Nothing here repairs anything.
 * Sources: proc_pid_status(5), proc_pid_limits(5), namespaces(7). */
#include "boundary/linux/linux_boundary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "guest_filter.h"

enum { STATUS_MAX = 8192, PROC_PATH_MAX = 64, NET_MAX = 16384, IDS_TEXT_MAX = 48, CAP_KILL_BIT = 5, CORE_PATTERN_MAX = 256 };

/* The two processes under inspection: /proc/PID opened once, so that a pid given to somebody else could not be looked at instead. */
struct subject {
	pid_t pid;
	int dir;
	char status[STATUS_MAX];
};

struct inspection {
	struct linux_boundary *boundary;
	struct evidence_list *evidence;
	struct subject main, init;
};

static int fails(struct err *err, const char *line, const char *expected, const char *found)
{
	return err_set(err, ERR_UNVERIFIED, "%s: expected %s, found %s", line, expected, found);
}

static int open_subject(pid_t pid, struct subject *ret, struct err *err)
{
	char path[PROC_PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d", pid);
	ret->pid = pid;
	ret->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dir < 0)
		return err_sys(err, errno, "%s", path);
	ssize_t length = fd_read_text(ret->dir, "status", ret->status, sizeof(ret->status));
	return length < 0 ? err_sys(err, (int)-length, "%s/status", path) : 0;
}

/* The value of "Key:\t…" in a status text, blanks folded into single spaces. false when there is no such key. */
static bool status_value(const struct subject *subject, const char *key, char *value, size_t size)
{
	size_t length = strlen(key), used = 0;
	const char *at = subject->status;
	while (at && !(strncmp(at, key, length) == 0 && at[length] == ':')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return false;
	for (at += length + 1; *at && *at != '\n' && used + 1 < size; at++) {
		bool blank = *at == ' ' || *at == '\t';
		if (!blank)
			value[used++] = *at;
		else if (used > 0 && value[used - 1] != ' ')
			value[used++] = ' ';
	}
	while (used > 0 && value[used - 1] == ' ')
		used--;
	value[used] = '\0';
	return true;
}

/* One expectation about a status file. */
struct expectation {
	const char *line, *key, *value;
};

static int expect_status(const struct subject *subject, const struct expectation *want, struct err *err)
{
	char found[128] = "nothing";
	if (!status_value(subject, want->key, found, sizeof(found)) || strcmp(found, want->value) != 0)
		return fails(err, want->line, want->value, found);
	return 0;
}

/* ---- the checks, one a group of lines ---- */

int linux_check_namespaces(struct linux_boundary *boundary, pid_t pid, int count, struct evidence_list *evidence, struct err *err)
{
	for (int i = 0; i < count; i++) {
		char path[PROC_PATH_MAX], line[EVIDENCE_NAME_MAX];
		struct stat status;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, namespace_name(i));
		snprintf(line, sizeof(line), "ns.%s", namespace_name(i));
		if (stat(path, &status) != 0)
			return err_set(err, ERR_UNVERIFIED, "%s: cannot be read: %s", line, strerror(errno));
		if (status.st_ino == boundary->provider->host.namespaces[i] || status.st_ino == boundary->provider->apart[i])
			return fails(err, line, "a namespace of its own", "the host's");
		int rc = !evidence ? 0 : evidence_add(evidence, line, EVIDENCE_OBSERVED, err, "%s:[%ju]", namespace_name(i),
		                                      (uintmax_t)status.st_ino);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_namespaces(struct inspection *inspection, struct err *err)
{
	return linux_check_namespaces(inspection->boundary, inspection->main.pid, NS_COUNT, inspection->evidence, err);
}

static int check_view(struct inspection *inspection, struct err *err)
{
	return linux_enroll_mounts(inspection->boundary, inspection->main.dir, inspection->evidence, err);
}

/* One id four times, as status shows real, effective, saved and file system id. */
static void four_times(uint32_t id, char ret[static IDS_TEXT_MAX])
{
	snprintf(ret, IDS_TEXT_MAX, "%" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32, id, id, id, id);
}

/* Who the user is to whom an ordinary user's guests belong. */
static int tell_owner(struct inspection *inspection, struct err *err)
{
	const struct ids_source *source = &inspection->boundary->provider->ids;
	if (source->kind == IDS_RANGES_OF_ROOT)
		return 0;
	int rc = evidence_add(inspection->evidence, "rootless", EVIDENCE_OBSERVED, err, "all of it within what uid %" PRIu32 " may do",
	                      source->uid);
	if (rc == 0 && source->kind == IDS_CALLERS_OWN)
		rc = evidence_add(inspection->evidence, "ids.shared", EVIDENCE_OBSERVED, err,
		                  "guest, init and caller are one user of the kernel, uid %" PRIu32, source->uid);
	return rc;
}

/* The caller's own group may stay as a supplementary one, where he is the guest: it is the guest's group already. */
static int check_groups(struct inspection *inspection, const struct ids *ids, struct err *err)
{
	const struct expectation none = {"ids.groups", "Groups", ""};
	char own[IDS_TEXT_MAX], found[128];
	snprintf(own, sizeof(own), "%" PRIu32, ids->guest_gid);
	if (ids_shared(ids) && status_value(&inspection->main, "Groups", found, sizeof(found)) && strcmp(found, own) == 0)
		return evidence_add(inspection->evidence, "ids.groups", EVIDENCE_OBSERVED, err, "the caller's own alone, %s", own);
	int rc = expect_status(&inspection->main, &none, err);
	return rc < 0 ? rc : evidence_add(inspection->evidence, "ids.groups", EVIDENCE_OBSERVED, err, "no supplementary group");
}

static int check_ids(struct inspection *inspection, struct err *err)
{
	char texts[4][IDS_TEXT_MAX];
	const struct ids *ids = &inspection->boundary->ids;
	const uint32_t numbers[] = {ids->guest_uid, ids->guest_gid, ids->init_uid, ids->init_gid};
	const struct {
		const struct subject *subject;
		struct expectation want;
	} wants[] = {
		{&inspection->main, {"ids.guest", "Uid", texts[0]}}, {&inspection->main, {"ids.guest", "Gid", texts[1]}},
		{&inspection->init, {"ids.init", "Uid", texts[2]}}, {&inspection->init, {"ids.init", "Gid", texts[3]}},
	};
	int rc = 0;
	for (size_t i = 0; i < 4; i++)
		four_times(numbers[i], texts[i]);
	for (size_t i = 0; i < 4 && rc == 0; i++)
		rc = expect_status(wants[i].subject, &wants[i].want, err);
	if (rc == 0)
		rc = evidence_add(inspection->evidence, "ids.guest", EVIDENCE_OBSERVED, err,
		                  "uid %" PRIu32 " and gid %" PRIu32 " of the host", ids->guest_uid, ids->guest_gid);
	if (rc == 0)
		rc = check_groups(inspection, ids, err);
	if (rc == 0)
		rc = evidence_add(inspection->evidence, "ids.init", EVIDENCE_OBSERVED, err, "uid %" PRIu32 " and gid %" PRIu32, ids->init_uid,
		                  ids->init_gid);
	return rc < 0 ? rc : tell_owner(inspection, err);
}

static int check_capabilities(struct inspection *inspection, struct err *err)
{
	static const char none[] = "0000000000000000", kill_only[] = "0000000000000020";
	static const struct expectation main_wants[] = {
		{"caps.guest", "CapEff", none}, {"caps.guest", "CapPrm", none}, {"caps.guest", "CapInh", none},
		{"caps.guest", "CapAmb", none}, {"caps.bounding", "CapBnd", none},
	};
	static const struct expectation init_wants[] = {
		{"caps.init", "CapEff", kill_only}, {"caps.init", "CapPrm", kill_only}, {"caps.init", "CapInh", none},
	};
	int rc = 0;
	for (size_t i = 0; i < sizeof(main_wants) / sizeof(main_wants[0]) && rc == 0; i++)
		rc = expect_status(&inspection->main, &main_wants[i], err);
	for (size_t i = 0; i < sizeof(init_wants) / sizeof(init_wants[0]) && rc == 0; i++)
		rc = expect_status(&inspection->init, &init_wants[i], err);
	if (rc == 0)
		rc = evidence_add(inspection->evidence, "caps.guest", EVIDENCE_OBSERVED, err, "none");
	if (rc == 0)
		rc = evidence_add(inspection->evidence, "caps.bounding", EVIDENCE_OBSERVED, err, "empty");
	return rc < 0 ? rc : evidence_add(inspection->evidence, "caps.init", EVIDENCE_OBSERVED, err, "CAP_KILL alone");
}

static int filters_of_ours(void)
{
	struct subject self;
	char count[16] = "0";
	if (open_subject(getpid(), &self, NULL) < 0)
		return -1;
	status_value(&self, "Seccomp_filters", count, sizeof(count));
	close(self.dir);
	return (int)strtol(count, NULL, 10);
}

static int check_seccomp(struct inspection *inspection, struct err *err)
{
	char filters[16], digest_hex_text[DIGEST_HEX_SIZE];
	struct digest digest;
	int ours = filters_of_ours();
	if (ours < 0)
		return err_set(err, ERR_UNVERIFIED, "seccomp: our own filters cannot be counted");
	snprintf(filters, sizeof(filters), "%d", ours + 1);
	const struct expectation wants[] = {
		{"no_new_privs", "NoNewPrivs", "1"}, {"seccomp", "Seccomp", "2"}, {"seccomp", "Seccomp_filters", filters},
	};
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		int rc = expect_status(&inspection->main, &wants[i], err);
		if (rc < 0)
			return rc;
	}
	int rc = evidence_add(inspection->evidence, "no_new_privs", EVIDENCE_OBSERVED, err, "1");
	digest_of(guest_filter, sizeof(guest_filter), &digest);
	return rc < 0 ? rc : evidence_add(inspection->evidence, "seccomp", EVIDENCE_OBSERVED, err, "filter of %d instructions, sha256:%s",
	                                  GUEST_FILTER_COUNT, digest_hex(&digest, digest_hex_text));
}

static int check_signals(struct inspection *inspection, struct err *err)
{
	static const char none[] = "0000000000000000";
	static const struct expectation wants[] = {
		{"signals", "SigBlk", none}, {"signals", "SigIgn", none}, {"signals", "SigCgt", none}, {"umask", "Umask", "0022"},
	};
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		int rc = expect_status(&inspection->main, &wants[i], err);
		if (rc < 0)
			return rc;
	}
	int rc = evidence_add(inspection->evidence, "signals", EVIDENCE_OBSERVED, err, "none blocked, ignored or caught");
	return rc < 0 ? rc : evidence_add(inspection->evidence, "umask", EVIDENCE_OBSERVED, err, "0022");
}

/* Field NUMBER of proc_pid_stat(5), of those behind the name. */
static bool stat_number(const char *text, int number, int64_t *ret)
{
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %" SCNd64, ret) == 1;
}

/* Neither real time nor an advantage over others: not on processors, and not on disks. */
static int check_priority(struct inspection *inspection, int64_t nice, int64_t policy, struct err *err)
{
	if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
		return fails(err, "scheduling", "an ordinary policy", "another");
	if (nice < 0)
		return fails(err, "scheduling", "no advantage", "a negative nice value");
	long io = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, inspection->boundary->main_pid);
	if (io < 0 || IOPRIO_PRIO_CLASS(io) == IOPRIO_CLASS_RT)
		return fails(err, "scheduling", "ordinary I/O", "real-time I/O");
	return evidence_add(inspection->evidence, "scheduling", EVIDENCE_OBSERVED, err, "ordinary, nice %" PRId64, nice);
}

static int check_session_and_priority(struct inspection *inspection, struct err *err)
{
	enum { STAT_SESSION = 6, STAT_NICE = 19, STAT_POLICY = 41 };
	char text[1024];
	int64_t session, nice, policy;
	if (fd_read_text(inspection->main.dir, "stat", text, sizeof(text)) < 0 || !stat_number(text, STAT_SESSION, &session) ||
	    !stat_number(text, STAT_NICE, &nice) || !stat_number(text, STAT_POLICY, &policy))
		return err_set(err, ERR_UNVERIFIED, "session: cannot be read");
	if (session != inspection->main.pid)
		return fails(err, "session", "a session of its own", "another's");
	int rc = evidence_add(inspection->evidence, "session", EVIDENCE_OBSERVED, err, "its own");
	return rc < 0 ? rc : check_priority(inspection, nice, policy, err);
}

/* The kernel's word on where main may run. The mask is also what its group's set of CPUs leaves of any it asks for. */
static int check_pin(struct inspection *inspection, struct err *err)
{
	char found[CPU_LIST_TEXT_SIZE] = "nothing", pin[CPU_LIST_TEXT_SIZE];
	const struct cpu_list *list = &inspection->boundary->spec.plan->limits.pin;
	if (cpu_list_count(list) == 0)
		return 0;
	cpu_list_format(list, pin);
	if (!status_value(&inspection->main, "Cpus_allowed_list", found, sizeof(found)) || strcmp(found, pin) != 0)
		return fails(err, "pin", pin, found);
	return evidence_add(inspection->evidence, "pin", EVIDENCE_OBSERVED, err, "Cpus_allowed_list %s", pin);
}

static int check_oom_score(struct inspection *inspection, struct err *err)
{
	char text[16];
	if (fd_read_text(inspection->main.dir, "oom_score_adj", text, sizeof(text)) < 0 || strcmp(text, "1000") != 0)
		return fails(err, "oom_score", "1000", "another");
	return evidence_add(inspection->evidence, "oom_score", EVIDENCE_OBSERVED, err,
	                    inspection->boundary->oom_score_fixed ? "1000: killed first" : "1000: killed first, unless the guest lowers it");
}

/* "Max open files            256                  256                  files" of proc_pid_limits(5). */
static int check_limit(struct inspection *inspection, const char *limits, const char *line, const char *label, const char *soft,
                       const char *hard, struct err *err)
{
	char found_soft[32] = "nothing", found_hard[32] = "nothing";
	const char *at = strstr(limits, label);
	if (!at || sscanf(at + strlen(label), " %31s %31s", found_soft, found_hard) != 2)
		return fails(err, line, soft, found_soft);
	if (strcmp(found_soft, soft) != 0)
		return fails(err, line, soft, found_soft);
	if (hard && strcmp(found_hard, hard) != 0)
		return fails(err, line, hard, found_hard);
	return evidence_add(inspection->evidence, line, EVIDENCE_OBSERVED, err, "%s", soft);
}

/* A limit that guards the host: an inherited one that is lower guards it as well, and cannot be raised. */
static int check_guard(struct inspection *inspection, const char *limits, const char *line, const char *label, int64_t most, struct err *err)
{
	char expected[24];
	int64_t soft = -1, hard = -1;
	const char *at = strstr(limits, label);
	if (at && sscanf(at + strlen(label), " %" SCNd64 " %" SCNd64, &soft, &hard) == 2 && soft >= 0 && soft <= hard && hard <= most)
		return evidence_add(inspection->evidence, line, EVIDENCE_OBSERVED, err, "%" PRId64, soft);
	snprintf(expected, sizeof(expected), "%" PRId64, most);
	return fails(err, line, expected, "more");
}

/* 1 keeps a core from every program that the kernel could give it to (core(5)). Where it gives it to none, an inherited 0, which cannot be
 * raised, keeps it from files as well. */
static int check_core(struct inspection *inspection, const char *limits, struct err *err)
{
	char pattern[CORE_PATTERN_MAX], soft[32] = "", hard[32] = "";
	const char *at = strstr(limits, "Max core file size");
	bool none = at && sscanf(at + strlen("Max core file size"), " %31s %31s", soft, hard) == 2 && strcmp(soft, "0") == 0 && strcmp(hard, "0") == 0;
	if (none && fd_read_text(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) >= 0 && *pattern != '|' && *pattern != '@')
		return evidence_add(inspection->evidence, "rlimit.core", EVIDENCE_OBSERVED, err, "0, and no program is given a core");
	return check_limit(inspection, limits, "rlimit.core", "Max core file size", "1", "1", err);
}

static int check_rlimits(struct inspection *inspection, struct err *err)
{
	char limits[4096], files[24], stack[24];
	const struct plan_limits *plan = &inspection->boundary->spec.plan->limits;
	if (fd_read_text(inspection->main.dir, "limits", limits, sizeof(limits)) < 0)
		return err_set(err, ERR_UNVERIFIED, "rlimit.open_files: limits cannot be read");
	snprintf(files, sizeof(files), "%" PRId64, plan->open_files);
	snprintf(stack, sizeof(stack), "%" PRId64, plan->stack_bytes);
	int rc = check_limit(inspection, limits, "rlimit.open_files", "Max open files", files, files, err);
	if (rc == 0)
		rc = check_limit(inspection, limits, "rlimit.stack", "Max stack size", stack, NULL, err);
	if (rc == 0)
		rc = check_core(inspection, limits, err);
	if (rc == 0)
		rc = check_guard(inspection, limits, "rlimit.sigpending", "Max pending signals", 64, err);
	if (rc == 0)
		rc = check_guard(inspection, limits, "rlimit.msgqueue", "Max msgqueue size", 0, err);
	if (rc == 0)
		rc = check_guard(inspection, limits, "rlimit.memlock", "Max locked memory", 65536, err);
	if (rc == 0)
		rc = check_guard(inspection, limits, "rlimit.rtprio", "Max realtime priority", 0, err);
	return rc < 0 ? rc : check_guard(inspection, limits, "rlimit.nice", "Max nice priority", 0, err);
}

/* Only lo, and it is up: the local table of an interface that is up has 127.0.0.1 (facts §2). */
static int check_network(struct inspection *inspection, struct err *err)
{
	char text[NET_MAX];
	int devices = 0;
	if (fd_read_text(inspection->main.dir, "net/dev", text, sizeof(text)) < 0)
		return err_set(err, ERR_UNVERIFIED, "net.lo: cannot be read");
	for (const char *at = strchr(text, ':'); at; at = strchr(at + 1, ':'))
		devices++;
	if (devices != 1 || !strstr(text, "lo:"))
		return fails(err, "net.lo", "lo alone", "other interfaces");
	if (fd_read_text(inspection->main.dir, "net/route", text, sizeof(text)) < 0 || strchr(text, '\n'))
		return fails(err, "net.lo", "no route", "some");
	if (fd_read_text(inspection->main.dir, "net/fib_trie", text, sizeof(text)) < 0 || !strstr(text, "127.0.0.1"))
		return fails(err, "net.lo", "lo up", "it down");
	return evidence_add(inspection->evidence, "net.lo", EVIDENCE_OBSERVED, err, "lo alone, up, no route");
}

/* At the gate main has its three streams, the gate and the control socket; the last two close on exec. */
static int check_descriptors(struct inspection *inspection, struct err *err)
{
	int count = 0, highest = -1;
	int fd = openat(inspection->main.dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return err_set(err, ERR_UNVERIFIED, "fds: cannot be read: %s", strerror(errno));
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		int number = (int)strtol(entry->d_name, NULL, 10);
		highest = number > highest ? number : highest;
		count++;
	}
	closedir(dir);
	if (count != INIT_CONTROL_FD + 1 || highest != INIT_CONTROL_FD)
		return err_set(err, ERR_UNVERIFIED, "fds: expected 0 to %d, found %d up to %d", INIT_CONTROL_FD, count, highest);
	return evidence_add(inspection->evidence, "fds", EVIDENCE_OBSERVED, err, "stdin, stdout, stderr, and two that close on exec");
}

static int check_attested(struct inspection *inspection, struct err *err)
{
	const struct linux_boundary *boundary = inspection->boundary;
	const struct { const char *line; bool by_main; enum init_attest bit; const char *detail; } lines[] = {
		{"ucounts", false, INIT_DID_UCOUNTS, "no nested user namespace, 8 inotify instances"},
		{"hostname", false, INIT_DID_HOSTNAME, "caisson"},
		{"init.dumpable", false, INIT_DID_DUMPABLE, "0"},
		{"init.pdeathsig", false, INIT_DID_PDEATHSIG, "SIGKILL"},
		{"keyring", true, INIT_DID_KEYRING, "a session keyring of its own"},
		{"securebits", true, INIT_DID_SECUREBITS, "locked"},
		{"landlock", true, INIT_DID_LANDLOCK, NULL},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		uint32_t word = lines[i].by_main ? boundary->main_attested : boundary->init_attested;
		if (lines[i].bit == INIT_DID_LANDLOCK && boundary->provider->host.landlock_abi == 0)
			continue; /* a kernel without it: the layer is not claimed, and `require` can ask for it */
		if (!(word & UINT32_C(1) << lines[i].bit))
			return fails(err, lines[i].line, "its own word that it was done", "none");
		int rc = lines[i].detail
			? evidence_add(inspection->evidence, lines[i].line, EVIDENCE_ATTESTED, err, "%s", lines[i].detail)
			: evidence_add(inspection->evidence, lines[i].line, EVIDENCE_ATTESTED, err, "ABI %d",
			               boundary->provider->host.landlock_abi);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int linux_enroll(struct linux_boundary *boundary, struct evidence_list *evidence, struct err *err)
{
	static int (*const checks[])(struct inspection *, struct err *) = {
		check_namespaces, check_view, check_ids, check_capabilities, check_seccomp, check_signals, check_session_and_priority,
		check_pin, check_oom_score, check_rlimits, check_network, check_descriptors, check_attested,
	};
	struct inspection inspection = {.boundary = boundary, .evidence = evidence, .main.dir = -1, .init.dir = -1};
	int rc = cgroups_verify(&boundary->groups, boundary->init_pid, boundary->main_pid, evidence, err);
	if (rc == 0)
		rc = open_subject(boundary->main_pid, &inspection.main, err);
	if (rc == 0)
		rc = open_subject(boundary->init_pid, &inspection.init, err);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && rc == 0; i++)
		rc = checks[i](&inspection, err);
	fd_close(&inspection.main.dir);
	fd_close(&inspection.init.dir);
	return rc;
}
