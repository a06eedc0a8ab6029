/* fuzz_artifacts.c - a list of artifacts that is taken is written and taken again as it was; any bytes are a name with one spelling. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "artifact/list.h"

static void as_list(const char *text, size_t size)
{
	BUF_AUTO struct buf first = BUF_INIT(4 * ARTIFACT_LIST_TEXT_MAX), second = BUF_INIT(4 * ARTIFACT_LIST_TEXT_MAX);
	ARTIFACT_LIST_AUTO struct artifact_list list = {0}, again = {0};

	if (artifact_list_read(text, size, &list, NULL) != 0)
		return;
	for (size_t i = 0; i < list.count; i++)
		HOLDS(artifact_path_valid(list.items[i].path));
	HOLDS(artifact_list_write(&list, &first, NULL) == 0);
	HOLDS(artifact_list_read(first.data, first.len, &again, NULL) == 0);
	HOLDS(artifact_list_write(&again, &second, NULL) == 0);
	HOLDS(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
}

static void as_name(const char *name)
{
	JSON_AUTO json_t *object = json_object();
	char *back = NULL;

	HOLDS(artifact_set_path(object, "path", name, NULL) == 0);
	HOLDS(artifact_parse_text(json_string_value(json_object_get(object, "path")), &back, NULL) == 0);
	HOLDS(strcmp(back, name) == 0);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	HOLDS(text);
	memcpy(text, data, size);
	text[size] = '\0';
	as_list(text, size);
	as_name(text);
	free(text);
	return 0;
}
