/* fields.h - flat structs as JSON objects, both ways by one table of fields. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

/* Types of members. An enum is read and written as FIELD_INT (asserted where the tables are). */
enum field_type { FIELD_INT64, FIELD_INT, FIELD_BOOL, FIELD_TEXT };

struct field {
	const char *name; /* NULL ends a table */
	enum field_type type;
	size_t offset;
	int64_t min, max; /* FIELD_TEXT: max is the size of the array */
};

/* A new object (json_decref) with every field of the table; NULL when out of memory. Text is escaped as json_set_bytes does. */
json_t *fields_write(const struct field *fields, const void *record);

/* Every field must be there, and no other; numbers within their range. ERR_INVALID names the path; the record is then half written. A text that
 * escaping made longer than its array is cut. */
int fields_read(const struct field *fields, const struct json_at *at, void *record, struct err *err);
