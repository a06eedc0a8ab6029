#!/usr/bin/python3
"""test_corpus.py - the corpus is complete: exactly the rows that must be shown, each with a case, each program there and used."""

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

import cases  # noqa: E402
import corpus  # noqa: E402
import more_cases  # noqa: E402
from support import guests, harness, proc  # noqa: E402
from support.harness import equal, holds  # noqa: E402

suite = harness.Suite("corpus")


@suite.case("the ids are exactly those that must be shown")
def _():
    equal(sorted({case.id for case in cases.CASES}), sorted(cases.required_ids()))
    equal(len(cases.required_ids()), 57, "rows")


@suite.case("every row of the corpus has a case here or in another suite, or a reason why not")
def _():
    here = {case.id for case in corpus.EVERY_CASE}
    equal(sorted(here | set(more_cases.ELSEWHERE) | set(more_cases.LEFT_OUT)), sorted(more_cases.complete_ids()))
    equal(sorted(here & set(more_cases.LEFT_OUT)), [], "rows that are left out and have a case")
    for row, (path, text) in more_cases.ELSEWHERE.items():
        holds(text in proc.read(os.path.join(TESTS, path)), f"{row}: {text} in {path}")


@suite.case("each case can fail: it expects verdicts or has a driver that exists")
def _():
    for case in corpus.EVERY_CASE:
        holds(bool(case.drive) != bool(case.expect), case.name)
        holds(not case.drive or callable(corpus.driver(case)), case.name)


@suite.case("names of cases are unique")
def _():
    names = [case.name for case in corpus.EVERY_CASE]
    equal(sorted(set(names)), sorted(names))


@suite.case("each program of guests/ is used, and each that is used compiles without a warning")
def _():
    used = {case.program for case in corpus.EVERY_CASE if case.program}
    there = {name for name in os.listdir(guests.SOURCES) if not name.endswith(".h")}
    equal(sorted(used), sorted(there))
    for case in corpus.EVERY_CASE:
        if case.program:
            holds(os.access(guests.program(case.program, case.static), os.X_OK), case.program)


if __name__ == "__main__":
    sys.exit(suite.main())
