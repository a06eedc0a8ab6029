/* support.c - what the keeper's tests share: a plan, and a boundary whose calls can be watched from outside the worker. */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/store.h"
#include "base/clock.h"
#include "capture/capture.h"
#include "evidence/record.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "remove_tree.h"

enum { AWAIT_MS = 20 * 1000 };

struct fake *fake_new(void)
{
	void *shared = mmap(NULL, sizeof(struct fake), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? NULL : shared;
}

void fake_free(struct fake *fake)
{
	munmap(fake, sizeof(*fake));
}

struct fake_boundary {
	struct boundary base;
	struct fake *fake;
	int wake_fd;
	struct capture *standard_output;
};

static int called(struct boundary *b, const char *name, struct err *err)
{
	struct fake *fake = ((struct fake_boundary *)b)->fake;
	size_t used = strlen(fake->log);
	snprintf(fake->log + used, sizeof(fake->log) - used, "%s ", name);
	if (strcmp(fake->die, name) == 0)
		kill(getpid(), SIGKILL);
	return strcmp(fake->fail, name) == 0 ? err_set(err, ERR_UNVERIFIED, "%s: told to fail", name) : 0;
}

static int fake_prepare(struct boundary *b, const struct boundary_spec *spec, struct evidence_list *evidence, struct err *err)
{
	struct fake_boundary *fake = (struct fake_boundary *)b;
	fake->standard_output = spec->standard_output;
	evidence_add(evidence, "limit.memory", EVIDENCE_OBSERVED, err, "%lld", (long long)spec->plan->limits.memory_bytes);
	int64_t left_ns;
	while ((left_ns = ((struct fake_boundary *)b)->fake->prepares_until_ns - clock_boot_ns()) > 0)
		poll(NULL, 0, (int)(left_ns / NS_PER_MS) + 1);
	return called(b, "prepare", err);
}

static int fake_create(struct boundary *b, struct evidence_list *evidence, struct err *err)
{
	evidence_add(evidence, "seccomp", EVIDENCE_ATTESTED, err, "mode 2\n\xff");
	return called(b, "create", err);
}

static int fake_enroll(struct boundary *b, struct evidence_list *evidence, struct err *err)
{
	evidence_add(evidence, "ns.pid", EVIDENCE_PROBED, err, "pid:[4026531836]");
	return called(b, "enroll", err);
}

static int fake_launch(struct boundary *b, struct err *err)
{
	return called(b, "launch", err);
}

static int fake_observe(struct boundary *b, int64_t deadline_ns, struct boundary_event *ret, struct err *err)
{
	struct fake_boundary *fake = (struct fake_boundary *)b;
	struct pollfd wake = {.fd = fake->fake->ignores_wake ? -1 : fake->wake_fd, .events = POLLIN};
	int64_t now_ns = clock_mono_ns();
	int wait_ms = fake->fake->keeps_deadline && deadline_ns > now_ns ? (int)((deadline_ns - now_ns) / NS_PER_MS + 1) : -1;
	*ret = (struct boundary_event){.kind = BOUNDARY_MAIN_EXITED, .at_ns = now_ns, .launched_at_ns = now_ns, .how = BOUNDARY_EXITED,
	                               .status = 7, .descendants_alive = 2};
	int result = called(b, "observe", err);
	if (fake->standard_output)
		capture_write(fake->standard_output, "hello, world\n", 13, NULL); /* the test sees by this that we are here */
	if (!fake->fake->observe_blocks)
		return result;
	if (poll(&wake, 1, wait_ms) == 0)
		ret->kind = BOUNDARY_DEADLINE;
	else if (!fake->fake->exits_late)
		ret->kind = BOUNDARY_INTERRUPTED;
	return result;
}

static int fake_terminate(struct boundary *b, struct err *err)
{
	return called(b, "terminate", err);
}

static int fake_kill(struct boundary *b, struct err *err)
{
	return called(b, "kill", err);
}

static int fake_drain(struct boundary *b, struct boundary_drain *ret, struct err *err)
{
	struct fake_boundary *fake = (struct fake_boundary *)b;
	if (fake->standard_output)
		capture_mark_drained(fake->standard_output);
	ret->stderr_retained = true;
	return called(b, "drain", err);
}

static int fake_cleanup(struct boundary *b, struct boundary_usage *ret, struct err *err)
{
	*ret = (struct boundary_usage){.cpu_user_ns = 1, .cpu_system_ns = -1, .memory_peak_bytes = 4096, .survivors_killed = 2};
	return called(b, "cleanup", err);
}

static int fake_verify(struct boundary *b, struct err *err)
{
	return called(b, "verify", err);
}

static void fake_interrupt(struct boundary *b)
{
	called(b, "interrupt", NULL);
}

static void fake_boundary_free(struct boundary *b)
{
	if (!b)
		return;
	called(b, "free", NULL);
	free(b);
}

static const struct boundary_ops fake_ops = {
	.prepare = fake_prepare,
	.create_suspended = fake_create,
	.enroll = fake_enroll,
	.launch = fake_launch,
	.observe = fake_observe,
	.terminate = fake_terminate,
	.kill = fake_kill,
	.drain = fake_drain,
	.cleanup = fake_cleanup,
	.verify_empty = fake_verify,
	.interrupt = fake_interrupt,
	.free = fake_boundary_free,
};

struct fake_provider {
	struct boundary_provider base;
	struct fake *fake;
	int wake_fd;
};

static int fake_open(void *provider, struct boundary **ret, struct err *err)
{
	const struct fake_provider *from = provider;
	struct fake_boundary *boundary = calloc(1, sizeof(*boundary));
	if (!boundary)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	boundary->base.ops = &fake_ops;
	boundary->fake = from->fake;
	boundary->wake_fd = from->wake_fd;
	int result = called(&boundary->base, "open", err);
	if (result < 0)
		free(boundary);
	else
		*ret = &boundary->base;
	return result;
}

static int fake_recover(void *provider, const struct boundary_identity *identity, int64_t cleanup_ms, int *survivors, struct err *err)
{
	const struct fake_provider *from = provider;
	struct fake_boundary stands_for = {.fake = from->fake};
	char name[64];
	(void)cleanup_ms;
	if (from->fake->recover_failures > 0) {
		from->fake->recover_failures--;
		return err_set(err, ERR_UNVERIFIED, "told to fail");
	}
	*survivors = 1;
	snprintf(name, sizeof(name), "recover:%s", identity->boundary_id);
	return called(&stands_for.base, name, err);
}

static int fake_enumerate(void *provider, const char *ledger_id, boundary_found_fn found, void *context, struct err *err)
{
	const struct fake *fake = ((const struct fake_provider *)provider)->fake;
	(void)ledger_id;
	(void)err;
	for (size_t i = 0; i < fake->found_count; i++)
		found(context, &fake->found[i]);
	return strcmp(fake->fail, "enumerate") == 0 ? err_set(err, ERR_IO, "told to fail") : 0;
}

static const struct boundary_provider_ops fake_provider_ops = {
	.kind = "recording",
	.open = fake_open,
	.recover = fake_recover,
	.enumerate = fake_enumerate,
};

/* What a worker starts with, as seen by the factory. */
static void look_around(struct fake *fake)
{
	struct stat status;
	for (int fd = 0; fd <= 2; fd++)
		fake->null_fd_count += fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
	DIR *fds = opendir("/proc/self/fd");
	for (struct dirent *entry; fds && (entry = readdir(fds));) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		if (fd != dirfd(fds) && fd > fake->highest_fd)
			fake->highest_fd = fd;
	}
	closedir(fds);
	fake->session = getsid(0);
}

static int fake_make(void *context, const char *profile, int wake_fd, struct boundary_provider **ret, struct err *err)
{
	struct fake *fake = context;
	if (fake->no_provider || strcmp(profile, "recording") != 0)
		return err_set(err, ERR_UNSUPPORTED, "profile %s is not here", profile);
	look_around(fake);
	struct fake_provider *provider = malloc(sizeof(*provider));
	if (!provider)
		return err_set(err, ERR_NO_MEMORY, "out of memory");
	*provider = (struct fake_provider){.base = {.ops = &fake_provider_ops, .context = provider}, .fake = fake, .wake_fd = wake_fd};
	*ret = &provider->base;
	return 0;
}

static void fake_release(void *context, struct boundary_provider *provider)
{
	(void)context;
	free(provider->context);
}

struct provider_factory fake_factory(struct fake *fake)
{
	return (struct provider_factory){.make = fake_make, .release = fake_release, .context = fake};
}

struct plan *plan_for(const char *profile, int64_t stream_bytes, struct manifest **ret_manifest)
{
	static const struct plan_host host = {.page_bytes = 4096, .cpus = 2, .memory_bytes = INT64_C(1) << 33, .open_files_hard = 4096, .stack_hard = INT64_MAX,
	.processes_hard = INT64_MAX, .cpu_hard_ms = INT64_MAX, .memory_hard = INT64_MAX, .file_hard = INT64_MAX};
	const struct plan_sealed sealed = {.input_count = 0};
	struct manifest *manifest = NULL;
	struct plan *plan = NULL;
	struct err err = ERR_INIT;
	char text[512];
	snprintf(text, sizeof(text),
	         "{\"version\":\"caisson.manifest/v1\",\"profile\":\"%s\",\"command\":{\"argv\":[\"/bin/true\"]},"
	         "\"limits\":{\"wall_ms\":1000,\"stdout_bytes\":%lld,\"stderr_bytes\":%lld}}",
	         profile, (long long)stream_bytes, (long long)stream_bytes);
	if (manifest_parse(text, strlen(text), &manifest, &err) < 0 || plan_compile(manifest, &host, &sealed, &admission_policy_default()->digest, &plan, &err) < 0) {
		fprintf(stderr, "the test's plan: %s\n", err.text);
		abort();
	}
	if (ret_manifest)
		*ret_manifest = manifest;
	else
		manifest_free(manifest);
	return plan;
}

void ledger_place_new(char ret_path[static 64])
{
	snprintf(ret_path, 64, "/tmp/caisson-keeper-XXXXXX");
	if (!mkdtemp(ret_path))
		abort();
}

struct keeper *keeper_at(const char *path)
{
	const struct sqlite_ledger_options options = {.record_digest = record_digest};
	struct ledger *ledger = NULL;
	struct store *store = NULL;
	struct keeper *keeper = NULL;
	struct err err = ERR_INIT;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sqlite_ledger_open(dir, &options, &ledger, &err) < 0 || store_open(dir, &store, &err) < 0 ||
	    keeper_open(dir, ledger, store, &keeper, &err) < 0) {
		fprintf(stderr, "the test's ledger: %s\n", err.text);
		abort();
	}
	return keeper;
}

void ledger_place_remove(const char *path)
{
	(void)remove_tree(path);
}

int await_end(int pidfd)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};
	siginfo_t info = {0};
	if (poll(&end, 1, AWAIT_MS) != 1 || waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		return -1;
	return info.si_code * 1000 + info.si_status;
}
