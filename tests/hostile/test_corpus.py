#!/usr/bin/python3
"""test_corpus.py - the corpus is complete: exactly the rows that must be shown, each with a case, each program there and used."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import cases  # noqa: E402
import drivers  # noqa: E402
from support import guests, harness  # noqa: E402
from support.harness import equal, holds  # noqa: E402

suite = harness.Suite("corpus")


@suite.case("the ids are exactly those that must be shown")
def _():
    equal(sorted({case.id for case in cases.CASES}), sorted(cases.required_ids()))
    equal(len(cases.required_ids()), 57, "rows")


@suite.case("each case can fail: it expects verdicts or has a driver that exists")
def _():
    for case in cases.CASES:
        holds(bool(case.drive) != bool(case.expect), case.name)
        holds(not case.drive or callable(getattr(drivers, case.drive)), case.name)


@suite.case("names of cases are unique")
def _():
    names = [case.name for case in cases.CASES]
    equal(sorted(set(names)), sorted(names))


@suite.case("each program of guests/ is used, and each that is used compiles without a warning")
def _():
    used = {case.program for case in cases.CASES if case.program}
    there = {name for name in os.listdir(guests.SOURCES) if not name.endswith(".h")}
    equal(sorted(used), sorted(there))
    for case in cases.CASES:
        if case.program:
            holds(os.access(guests.program(case.program, case.static), os.X_OK), case.program)


if __name__ == "__main__":
    sys.exit(suite.main())
