/* page.c - text in the making. */
#include "print/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "print/output.h"

void page_done(struct page *page)
{
	buf_done(&page->text);
}

void page_add(struct page *page, const char *format, ...)
{
	char *piece = NULL;
	va_list args;

	if (page->result)
		return;
	va_start(args, format);
	int length = vasprintf(&piece, format, args);
	va_end(args);
	page->result = length < 0 ? ERR_NO_MEMORY : buf_append(&page->text, piece, (size_t)length, NULL);
	if (length >= 0)
		free(piece);
}

int page_print(const struct page *page, int fd, struct err *err)
{
	if (page->result)
		return err_set(err, page->result, "the text could not be put together");
	print_text(fd, &page->text);
	return 0;
}
