"""corpus.py - all cases that may run here, and who drives them."""

import os

import cases
import drivers
import more_cases
import more_drivers

EVERY_CASE = [*cases.CASES, *more_cases.MORE_CASES, *more_cases.OWN_MACHINE]


def runnable():
    """The cases for this machine. CAISSON_TEST_OWN_MACHINE=1: nobody else uses it, and it is thrown away."""
    mine = os.environ.get("CAISSON_TEST_OWN_MACHINE") == "1"
    return EVERY_CASE if mine else [*cases.CASES, *more_cases.MORE_CASES]


def driver(case):
    return getattr(drivers, case.drive, None) or getattr(more_drivers, case.drive)
