/* story.c - reads a told life and tells it again through the real life_step(). */
#include "story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { WORDS_MAX = 8 };

static const char arrow[] = " -> ";

struct words {
	char text[STORY_LINE_MAX];
	const char *word[WORDS_MAX]; /* "" behind the last */
	size_t count;
};

struct teller {
	struct life life;
	struct verdict_totals totals;
	int64_t now_ns;
};

static int split(const char *line, struct words *ret, struct err *err)
{
	char *rest = NULL;

	*ret = (struct words){0};
	if (strlen(line) >= sizeof(ret->text))
		return err_set(err, ERR_LIMIT, "a line of more than %d bytes", STORY_LINE_MAX - 1);
	strncpy(ret->text, line, sizeof(ret->text) - 1);
	for (size_t i = 0; i < WORDS_MAX; i++)
		ret->word[i] = "";
	for (char *word = strtok_r(ret->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (ret->count == WORDS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d words", WORDS_MAX);
		ret->word[ret->count++] = word;
	}
	return 0;
}

static int number(const char *word, int64_t *ret, struct err *err)
{
	char *end = NULL;
	long long value = strtoll(word, &end, 10);

	if (end == word || *end != '\0')
		return err_set(err, ERR_INVALID, "\"%s\" is no number", word);
	*ret = value;
	return 0;
}

/* --- events --- */

static int main_end(const struct words *words, struct main_exit *ret, struct err *err)
{
	const char *how = words->word[1];
	int64_t value = 0;

	int result = number(words->word[2], &value, err);
	if (result < 0)
		return result;
	if (strcmp(how, "exit") == 0) {
		ret->how = MAIN_EXITED;
		ret->code = (int)value;
	} else if (strcmp(how, "signal") == 0) {
		ret->how = MAIN_SIGNALED;
		ret->signal = (int)value;
		ret->killed_by_us = strcmp(words->word[3], "ours") == 0;
	} else if (strcmp(how, "errno") == 0) {
		ret->how = MAIN_NOT_EXECUTED;
		ret->code = (int)value;
	} else {
		return err_set(err, ERR_INVALID, "main ends by exit, signal or errno, not by \"%s\"", how);
	}
	return 0;
}

/* All our enumerations are unsigned, count from 0 and have a name for each member. */
struct vocabulary {
	const char *what;
	const char *(*name_of)(unsigned);
	unsigned count;
};
static const struct vocabulary events = {"event", life_event_name, LIFE_EVENT_COUNT};
static const struct vocabulary causes = {"stop cause", stop_cause_name, STOP_CAUSE_COUNT};
static const struct vocabulary steps = {"step", life_step_name, STEP_COUNT};

static int find_name(const struct vocabulary *words, const char *name, unsigned *ret, struct err *err)
{
	for (unsigned i = 0; i < words->count; i++)
		if (strcmp(name, words->name_of(i)) == 0) {
			*ret = i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "no %s is named \"%s\"", words->what, name);
}

int story_event(const char *line, int64_t at_ns, struct life_event *ret, struct err *err)
{
	struct words words;
	struct life_event event = {.at_ns = at_ns, .descendants_alive = -1};
	const char *reason = "";
	unsigned found = 0;

	int result = split(line, &words, err);
	if (result == 0)
		result = find_name(&events, words.word[0], &found, err);
	if (result < 0)
		return result;
	event.kind = found;
	if (event.kind == LIFE_EV_STOP) {
		result = find_name(&causes, words.word[1], &found, err);
		event.cause = found;
	} else if (event.kind == LIFE_EV_STEP_FAILED) {
		result = find_name(&steps, words.word[1], &found, err);
		event.step = found;
		reason = words.word[2];
	} else if (event.kind == LIFE_EV_MAIN_EXITED) {
		result = main_end(&words, &event.exit, err);
		event.exit.at_ns = at_ns;
	} else if (event.kind == LIFE_EV_DRAINED) {
		event.stdout_retained = strcmp(words.word[1], "stdout_retained") == 0;
		event.stderr_retained = strcmp(words.word[1], "stderr_retained") == 0;
	} else {
		reason = words.word[1];
	}
	if (result < 0)
		return result;
	snprintf(event.reason, sizeof(event.reason), "%.63s", reason);
	*ret = event;
	return 0;
}

/* --- directives --- */

static int set_grace(struct teller *teller, const struct words *words, struct err *err)
{
	int64_t cancel_ms = 0, limit_ms = 0;

	int result = number(words->word[2], &cancel_ms, err);
	if (result == 0)
		result = number(words->word[4], &limit_ms, err);
	if (result == 0)
		life_init(&teller->life, cancel_ms, limit_ms);
	return result;
}

static int set_total(struct teller *teller, const struct words *words, struct err *err)
{
	const char *name = words->word[1];
	int64_t value = 0;

	int result = number(words->word[2], &value, err);
	if (result < 0)
		return result;
	if (strcmp(name, "cpu_ms") == 0)
		teller->totals.cpu_ns = value * NS_PER_MS;
	else if (strcmp(name, "oom_kills") == 0)
		teller->totals.oom_kills = value;
	else if (strcmp(name, "output_over") == 0)
		teller->totals.output_over = value != 0;
	else if (strcmp(name, "retained_ignored") == 0)
		teller->totals.retained_ignored = value != 0;
	else
		return err_set(err, ERR_INVALID, "no total is named \"%s\"", name);
	return 0;
}

static int pass_time(struct teller *teller, const struct words *words, struct err *err)
{
	int64_t wait_ms = 0;

	int result = number(words->word[1], &wait_ms, err);
	if (result == 0)
		teller->now_ns += wait_ms * NS_PER_MS;
	return result;
}

static int restore(struct teller *teller, const struct words *words, struct err *err)
{
	enum life_state state;

	int result = life_state_parse(words->word[1], &state, err);
	if (result < 0)
		return result;
	life_restore(&teller->life, state, strcmp(words->word[2], "intent") == 0, strcmp(words->word[3], "quarantined") == 0);
	teller->totals.cpu_ns = teller->totals.oom_kills = -1; /* what was counted died with the keeper */
	return 0;
}

static int retriable(struct teller *teller, const struct words *words, struct err *err)
{
	(void)words;
	(void)err;
	teller->life.retriable = true;
	return 0;
}

static const struct directive {
	const char *name;
	int (*obey)(struct teller *teller, const struct words *words, struct err *err);
} directives[] = {
	{"grace", set_grace},
	{"totals", set_total},
	{"wait", pass_time},
	{"restore", restore},
	{"retriable", retriable},
};

static const struct directive *find_directive(const char *name)
{
	for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++)
		if (strcmp(name, directives[i].name) == 0)
			return &directives[i];
	return NULL;
}

/* --- answers --- */

static int tell_event(struct teller *teller, const char *line, struct buf *ret, struct err *err)
{
	struct life_event event;
	struct life_actions actions;
	struct err refusal = ERR_INIT;

	int result = story_event(line, teller->now_ns, &event, err);
	if (result < 0)
		return result;
	if (life_step(&teller->life, &event, &actions, &refusal) < 0)
		return buf_printf(ret, err, "%s%sno: %s\n", line, arrow, refusal.text);
	result = buf_printf(ret, err, "%s%s%s [", line, arrow, life_state_name(teller->life.state));
	for (size_t i = 0; i < actions.count && result == 0; i++)
		result = buf_printf(ret, err, "%s%s", i > 0 ? ", " : "", life_action_name(actions.list[i]));
	return result < 0 ? result : buf_puts(ret, "]\n", err);
}

static int tell_verdict(struct teller *teller, const char *line, struct buf *ret, struct err *err)
{
	struct verdict_totals totals = teller->totals;
	struct verdict verdict;

	totals.wall_ns = teller->life.exit.how == MAIN_UNKNOWN ? -1 : teller->life.exit.at_ns - teller->life.launched_at_ns;
	verdict_decide(&teller->life, &totals, &verdict);
	return buf_printf(ret, err, "%s%s%s %s, exit %d: %s\n", line, arrow, verdict_name(verdict.kind),
	                  verdict.reason[0] != '\0' ? verdict.reason : "-", verdict_exit_status(&verdict, 0), verdict.detail);
}

static int tell_line(struct teller *teller, char *line, struct buf *ret, struct err *err)
{
	struct words words;

	if (line[0] == '\0' || line[0] == '#')
		return buf_printf(ret, err, "%s\n", line);
	char *told = strstr(line, arrow);
	if (told)
		*told = '\0';
	int result = split(line, &words, err);
	if (result < 0)
		return result;
	if (strcmp(words.word[0], "verdict") == 0)
		return tell_verdict(teller, line, ret, err);
	const struct directive *directive = find_directive(words.word[0]);
	if (!directive)
		return tell_event(teller, line, ret, err);
	result = directive->obey(teller, &words, err);
	return result < 0 ? result : buf_printf(ret, err, "%s\n", line);
}

int story_tell(const char *text, struct buf *ret, struct err *err)
{
	struct teller teller = {
		.now_ns = 100 * NS_PER_S,
		.totals = {.cpu_ns = 10 * NS_PER_MS, .wall_limit_ns = NS_PER_S, .cpu_limit_ns = NS_PER_S},
	};
	char line[STORY_LINE_MAX];
	int line_number = 0;

	life_init(&teller.life, 2000, 0);
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		line_number++;
		if (length >= sizeof(line))
			return err_set(err, ERR_LIMIT, "line %d is longer than %d bytes", line_number, STORY_LINE_MAX - 1);
		memcpy(line, text, length);
		line[length] = '\0';
		int result = tell_line(&teller, line, ret, err);
		if (result < 0)
			return err_context(err, result, "line %d", line_number);
		text += length + (text[length] == '\n');
	}
	return 0;
}
