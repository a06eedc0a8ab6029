/* report.h - what a person is told about a run: lines made from its verdict and its receipt. */
#pragma once

#include "base/json.h"
#include "print/page.h"

/* "VERDICT: REASON: DETAIL (run-…)", without what is empty. */
void report_line(struct page *page, const char *run_id, const char *verdict, const char *reason, const char *detail);

/* "boundary verified empty" or "boundary NOT verified empty", and how many survivors were killed. */
void report_boundary(struct page *page, const json_t *receipt);

/* "wall 12 ms, CPU user 3 ms, …". */
void report_usage(struct page *page, const json_t *receipt);

/* The whole receipt for reading, a line for each fact. */
void report_receipt(struct page *page, const json_t *receipt);
