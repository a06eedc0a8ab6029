/* evidence.c - the list of verified properties that a boundary hands over. */
#include "boundary/boundary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int evidence_add(struct evidence_list *list, const char *name, enum evidence_grade grade, struct err *err, const char *format, ...)
{
	if (list->count >= EVIDENCE_MAX)
		return err_set(err, ERR_LIMIT, "more than %d evidence lines; no room for %s", EVIDENCE_MAX, name);
	if (strlen(name) >= EVIDENCE_NAME_MAX)
		return err_set(err, ERR_LIMIT, "evidence name too long: %s", name);

	struct evidence_line *line = &list->lines[list->count];
	va_list args;
	va_start(args, format);
	vsnprintf(line->detail, sizeof(line->detail), format, args);
	va_end(args);
	snprintf(line->name, sizeof(line->name), "%s", name);
	line->grade = grade;
	list->count++;
	return 0;
}

const char *evidence_grade_name(enum evidence_grade grade)
{
	switch (grade) {
	case EVIDENCE_OBSERVED:
		return "observed";
	case EVIDENCE_ATTESTED:
		return "attested";
	case EVIDENCE_PROBED:
		return "probed";
	}
	return "unknown";
}
