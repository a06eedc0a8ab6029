#!/usr/bin/env python3
"""test_manual.py - the man pages name exactly the commands, options and resources that there are."""

import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from support import caisson, harness  # noqa: E402  pylint: disable=wrong-import-position

PAGE = os.path.join(caisson.TOP, "docs", "man", "caisson.1")

suite = harness.Suite("manual")


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read().replace("\\-", "-")


def help_text(*words):
    done = subprocess.run([caisson.need(caisson.BIN), "help", *words], capture_output=True, text=True, check=True)
    return done.stdout


def commands():
    return set(re.findall(r"^  caisson (\w+)", help_text(), re.MULTILINE))


@suite.case("each command of the program is in the manual, and no other")
def _():
    section = page().split(".SH COMMANDS", 1)[1].split(".SH ", 1)[0]
    harness.equal(set(re.findall(r"^\.B (\w+)", section, re.MULTILINE)), commands() - {"help", "version"})


@suite.case("each option of the program is in the manual, and no other")
def _():
    options = set()
    for command in commands():
        options |= set(re.findall(r"^  --([\w-]+)", help_text(command), re.MULTILINE))
    sections = page().split(".SH OPTIONS OF RUN AND SUBMIT", 1)[1].split(".SH EXIT STATUS", 1)[0]
    harness.equal(set(re.findall(r"--([a-z][\w-]*)", sections)), options - {"help"})


@suite.case("each resource of the API is in its manual, and no other")
def _():
    served = set()
    for path in glob.glob(os.path.join(caisson.TOP, "src", "http", "*.c")):
        with open(path, encoding="utf-8") as file:
            served |= set(re.findall(r'\.method = MHD_HTTP_METHOD_(\w+),\s+\.pattern = "([^"]+)"', file.read()))
    with open(os.path.join(caisson.TOP, "docs", "man", "caisson-api.7"), encoding="utf-8") as file:
        told = set(re.findall(r"^\.B (GET|POST|PUT) (/[^?\s]*)", file.read(), re.MULTILINE))
    harness.equal({(method, re.sub(r"\b[A-Z]+\b", "*", path)) for method, path in told}, served)


if __name__ == "__main__":
    sys.exit(suite.main())
