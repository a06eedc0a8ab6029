/* verify.c - `caisson verify`: does the ledger still say what was sealed? Read-only and offline, also of a copy. */
#include "evidence/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/wiring.h"
#include "print/output.h"
#include "print/page.h"

struct findings {
	struct page page;
	json_t *lines; /* NULL: text is wanted */
};

static int dump(void *context, int (*row)(void *row_context, const char *table, const char *json), void *row_context,
                struct err *err)
{
	struct wiring *wiring = context;

	return wiring->ledger->ops->dump(wiring->ledger, row, row_context, err);
}

static int check_object(void *context, const struct digest *digest, struct err *err)
{
	struct wiring *wiring = context;

	return store_check(wiring->store, digest, err);
}

static void add_line(void *context, enum verify_line_kind kind, const char *line)
{
	struct findings *findings = context;
	const char *name = kind == VERIFY_PROBLEM ? "problem" : "note";

	if (!findings->lines)
		page_add(&findings->page, "%s: %s\n", name, line);
	else if (json_array_append_new(findings->lines, json_pack("{s:s,s:s}", "kind", name, "line", line)))
		findings->page.result = ERR_NO_MEMORY;
}

static int print_findings(struct findings *findings, const struct verify_report *report, struct err *err)
{
	if (!findings->lines || findings->page.result) {
		page_add(&findings->page, "%" PRId64 " sealed, %" PRId64 " not yet, %" PRId64 " rows: ", report->sealed,
		         report->unsealed, report->rows);
		if (report->problems)
			page_add(&findings->page, "%" PRId64 " problems\n", report->problems);
		else
			page_add(&findings->page, "all of it holds\n");
		return page_print(&findings->page, STDOUT_FILENO, err);
	}

	JSON_AUTO json_t *document =
		json_pack("{s:I,s:I,s:I,s:I,s:O}", "problems", (json_int_t)report->problems, "sealed", (json_int_t)report->sealed,
	                  "unsealed", (json_int_t)report->unsealed, "rows", (json_int_t)report->rows, "lines", findings->lines);

	return document ? print_json(STDOUT_FILENO, document, err) : err_set(err, ERR_NO_MEMORY, "out of memory");
}

static int read_head(const char *path, struct buf *ret, struct err *err)
{
	FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_sys(err, errno, "--head %s", path);

	int result = fd_read_rest(fd, ret, err);

	/* An empty file is a head too, of a ledger without seals: the text must not be NULL. */
	if (result == 0)
		result = buf_puts(ret, "", err);
	return result ? err_context(err, result, "--head %s", path) : 0;
}

/* The file has the old head or the whole new one, whatever happens meanwhile. */
static int save_head(const struct verify_source *source, const char *path, struct err *err)
{
	BUF_AUTO struct buf text = BUF_INIT(VERIFY_HEAD_BYTES_MAX), temporary = BUF_INIT(MANIFEST_MAX_PATH);
	int result = head_write(source, &text, err);

	if (result == 0)
		result = buf_printf(&temporary, err, "%s.%d.new", path, (int)getpid());
	if (result)
		return result;

	FD_AUTO int fd = open(temporary.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(err, errno, "--save-head %s", temporary.data);
	result = fd_write_all(fd, text.data, text.len);
	if (result == 0 && (fsync(fd) < 0 || rename(temporary.data, path) < 0))
		result = -errno;
	if (result) {
		unlink(temporary.data);
		return err_sys(err, -result, "--save-head %s", path);
	}
	return 0;
}

static int name_run(struct wiring *wiring, const struct options *options, char run_id[static ID_SIZE], struct err *err)
{
	if (!options->all && options->operand_count == 0)
		return err_set(err, ERR_INVALID, "needs a run, or --all");

	int result = require_operands(options, options->all ? 0 : 1, options->all ? "no run with --all" : "one run", err);

	if (result == 0)
		result = wiring_open(options->ledger, WIRING_READ, wiring, err);
	if (result == 0 && !options->all)
		result = wiring->ledger->ops->find_run(wiring->ledger, options->operands[0], run_id, err);
	return result;
}

static int check(struct wiring *wiring, const struct options *options, const char *run_id, struct findings *findings,
                 struct err *err)
{
	BUF_AUTO struct buf head = BUF_INIT(VERIFY_HEAD_BYTES_MAX);
	const struct verify_source source = {.dump = dump, .object = wiring->store ? check_object : NULL, .context = wiring};
	struct verify_report report;
	int result = options->head ? read_head(options->head, &head, err) : 0;

	if (result)
		return result;

	const struct verify_options verify_options = {.run_id = run_id, .trust = options->trust, .head = head.data};

	result = verify(&source, &verify_options, add_line, findings, &report, err);
	if (result == 0)
		result = print_findings(findings, &report, err);
	if (result == 0 && !report.problems && options->save_head)
		result = save_head(&source, options->save_head, err);
	if (result)
		return result;
	return report.problems ? STATUS_NO : STATUS_OK;
}

static int run(struct options *options, struct err *err)
{
	WIRING_AUTO struct wiring wiring = WIRING_INIT;
	struct findings findings = {.page = PAGE_INIT, .lines = options->json ? json_array() : NULL};
	char run_id[ID_SIZE];
	int result = name_run(&wiring, options, run_id, err);

	if (result == 0)
		result = check(&wiring, options, options->all ? NULL : run_id, &findings, err);
	page_done(&findings.page);
	json_decref(findings.lines);
	return result;
}

const struct command command_verify = {
	.name = "verify",
	.bit = FOR_VERIFY,
	.usage = "[options] RUN | --all",
	.summary = "Checks records, receipts, signatures and the chain of seals, offline, and names what does not hold.",
	.examples = "  caisson verify latest\n"
		    "  caisson verify --all --save-head head.txt\n"
		    "  caisson verify --all --ledger /backup/caisson --trust FINGERPRINT --head head.txt\n",
	.run = run,
};
