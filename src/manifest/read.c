/* read.c - reads texts, lists, pairs, words and numbers of a document into memory of our own. */
#include <stdlib.h>
#include <string.h>

#include "manifest/internal.h"

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "out of memory");
}

int manifest_need(const struct json_at *at, struct err *err)
{
	return at->value ? 0 : err_set(err, ERR_INVALID, "%s: is required", at->path);
}

int manifest_copy_text(const char *text, char **ret, struct err *err)
{
	char *copy = strdup(text);

	if (!copy)
		return no_memory(err);
	*ret = copy;
	return 0;
}

void manifest_free_texts(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
}

void manifest_free_pairs(struct manifest_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(pairs[i].key);
		free(pairs[i].value);
	}
	free(pairs);
}

int manifest_copy_texts(const char *const *texts, size_t count, struct text_list *ret, struct err *err)
{
	char **items = calloc(count + 1, sizeof *items);

	if (!items)
		return no_memory(err);
	for (size_t i = 0; i < count; i++) {
		int r = manifest_copy_text(texts[i], &items[i], err);
		if (r < 0) {
			manifest_free_texts(items);
			return r;
		}
	}
	*ret = (struct text_list){.items = items, .count = count};
	return 0;
}

static int check_text(const struct json_at *at, const char *text, const struct text_rule *rule, struct err *err)
{
	if (strlen(text) > rule->max_bytes)
		return err_set(err, ERR_INVALID, "%s: must be at most %zu bytes", at->path, rule->max_bytes);
	const char *complaint = rule->complaint ? rule->complaint(text) : NULL;
	return complaint ? err_set(err, ERR_INVALID, "%s: %s", at->path, complaint) : 0;
}

int manifest_read_text(const struct json_at *at, const struct text_rule *rule, char **ret, struct err *err)
{
	const char *text = NULL;
	int r = json_read_string(at, rule->max_bytes, &text, err);

	if (r < 0 || !text)
		return r;
	r = check_text(at, text, rule, err);
	return r < 0 ? r : manifest_copy_text(text, ret, err);
}

int manifest_read_texts(const struct json_at *at, const struct list_rule *rule, struct text_list *ret, struct err *err)
{
	if (!at->value)
		return 0;
	size_t count = json_array_size(at->value);
	if (!json_is_array(at->value) || count < rule->min_count || count > rule->max_count)
		return err_set(err, ERR_INVALID, "%s: must be an array of %zu to %zu strings", at->path, rule->min_count, rule->max_count);
	char **items = calloc(count + 1, sizeof *items);
	if (!items)
		return no_memory(err);
	for (size_t i = 0; i < count; i++) {
		struct json_at element;
		json_at_index(at, i, &element);
		int r = manifest_read_text(&element, &rule->text, &items[i], err);
		if (r < 0) {
			manifest_free_texts(items);
			return r;
		}
	}
	*ret = (struct text_list){.items = items, .count = count};
	return 0;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct manifest_pair *left = a, *right = b;

	return strcmp(left->key, right->key);
}

static int read_pair(const struct json_at *at, const char *key, const struct pair_rule *rule, struct manifest_pair *ret, struct err *err)
{
	int r = check_text(at, key, &rule->key, err);

	if (r == 0)
		r = manifest_copy_text(key, &ret->key, err);
	if (r == 0)
		r = manifest_read_text(at, &rule->value, &ret->value, err);
	return r;
}

int manifest_read_pairs(const struct json_at *at, const struct pair_rule *rule, struct pair_list *ret, struct err *err)
{
	if (!at->value)
		return 0;
	size_t count = json_object_size(at->value), i = 0;
	if (!json_is_object(at->value) || count > rule->max_count)
		return err_set(err, ERR_INVALID, "%s: must be an object of at most %zu strings", at->path, rule->max_count);
	struct manifest_pair *items = calloc(count + 1, sizeof *items);
	if (!items)
		return no_memory(err);
	const char *key;
	json_t *value;
	json_object_foreach ((json_t *)at->value, key, value) {
		struct json_at member;
		json_at_key(at, key, &member);
		int r = read_pair(&member, key, rule, &items[i++], err);
		if (r < 0) {
			manifest_free_pairs(items, count);
			return r;
		}
	}
	qsort(items, count, sizeof *items, compare_pairs);
	*ret = (struct pair_list){.items = items, .count = count};
	return 0;
}

/* "must be "a", "b" or "c"". */
static int refuse_choice(const struct json_at *at, const char *const *names, struct err *err)
{
	char text[ERR_TEXT_MAX];
	struct err list = ERR_INIT;

	for (size_t i = 0; names[i]; i++) {
		memcpy(text, list.text, sizeof text);
		err_set(&list, ERR_INVALID, "%s%s\"%s\"", text, i == 0 ? "" : names[i + 1] ? ", " : " or ", names[i]);
	}
	return err_set(err, ERR_INVALID, "%s: must be %s", at->path, list.text);
}

int manifest_read_choice(const struct json_at *at, const char *const *names, size_t *ret, struct err *err)
{
	if (!at->value)
		return 0;
	const char *text = json_string_value(at->value);
	for (size_t i = 0; text && names[i]; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return refuse_choice(at, names, err);
}

int manifest_read_digest(const struct json_at *at, struct digest *ret, struct err *err)
{
	const char *text = NULL;
	int r = json_read_string(at, DIGEST_TEXT_SIZE - 1, &text, err);

	if (r < 0 || !text)
		return r;
	r = digest_parse(text, ret, err);
	return r < 0 ? err_context(err, r, "%s", at->path) : 0;
}

int manifest_read_numbers(const struct json_at *at, const struct number_field *fields, size_t count, void *base, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct json_at member;
		json_at_key(at, fields[i].name, &member);
		int64_t *number = (int64_t *)(void *)((char *)base + fields[i].offset);
		int r = json_read_int(&member, fields[i].min, fields[i].max, number, err);
		if (r < 0)
			return r;
	}
	return 0;
}
