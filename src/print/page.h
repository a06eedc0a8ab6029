/* page.h - text in the making for people: the first failure sticks, so that many pieces are checked once, at the end. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

enum { PAGE_MAX = 16 * 1024 * 1024 };

struct page {
	struct buf text;
	int result; /* 0, or the code of the first failure */
};

#define PAGE_INIT ((struct page){.text = BUF_INIT(PAGE_MAX), .result = 0})

void page_done(struct page *page);
#define PAGE_AUTO __attribute__((cleanup(page_done)))

/* Does nothing after a failure. */
void page_add(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the text to fd: exact to a pipe, escaped to a terminal. ERR_LIMIT or ERR_NO_MEMORY when a piece could not be added; then
 * nothing is written. */
int page_print(const struct page *page, int fd, struct err *err);
