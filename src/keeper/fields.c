/* fields.c - flat structs as JSON objects, both ways by one table of fields. */
#include "keeper/fields.h"

#include <stdio.h>
#include <string.h>

enum { FIELDS_MAX = 16 };

static int write_field(const struct field *field, const char *member, json_t *object)
{
	int64_t number = 0;
	int narrow;
	bool flag;
	switch (field->type) {
	case FIELD_INT64:
		memcpy(&number, member, sizeof(number));
		return json_object_set_new(object, field->name, json_integer(number));
	case FIELD_INT:
		memcpy(&narrow, member, sizeof(narrow));
		return json_object_set_new(object, field->name, json_integer(narrow));
	case FIELD_BOOL:
		memcpy(&flag, member, sizeof(flag));
		return json_object_set_new(object, field->name, json_boolean(flag));
	case FIELD_TEXT:
		return json_set_bytes(object, field->name, member, strnlen(member, (size_t)field->max), NULL);
	}
	return -1;
}

json_t *fields_write(const struct field *fields, const void *record)
{
	json_t *object = json_object();
	for (; object && fields->name; fields++)
		if (write_field(fields, (const char *)record + fields->offset, object) < 0) {
			json_decref(object);
			return NULL;
		}
	return object;
}

static int read_field(const struct field *field, const struct json_at *at, char *member, struct err *err)
{
	int64_t number = 0;
	bool flag = false;
	const char *text = "";
	int result = 0;
	if (!at->value)
		return err_set(err, ERR_INVALID, "%s: is missing", at->path);
	switch (field->type) {
	case FIELD_INT64:
		result = json_read_int(at, field->min, field->max, &number, err);
		memcpy(member, &number, sizeof(number));
		break;
	case FIELD_INT:
		result = json_read_int(at, field->min, field->max, &number, err);
		memcpy(member, &(int){(int)number}, sizeof(int));
		break;
	case FIELD_BOOL:
		result = json_read_bool(at, &flag, err);
		memcpy(member, &flag, sizeof(flag));
		break;
	case FIELD_TEXT:
		result = json_read_string(at, SIZE_MAX, &text, err);
		snprintf(member, (size_t)field->max, "%s", text);
		break;
	}
	return result;
}

int fields_read(const struct field *fields, const struct json_at *at, void *record, struct err *err)
{
	const char *names[FIELDS_MAX + 1] = {NULL};
	for (size_t i = 0; fields[i].name && i < FIELDS_MAX; i++)
		names[i] = fields[i].name;
	int result = json_only_keys(at, names, err);
	for (; result == 0 && fields->name; fields++) {
		struct json_at member;
		json_at_key(at, fields->name, &member);
		result = read_field(fields, &member, (char *)record + fields->offset, err);
	}
	return result;
}
