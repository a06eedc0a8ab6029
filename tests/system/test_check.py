#!/usr/bin/env python3
"""test_check.py - each rule of tools/check fails on a small tree that breaks it, and the tree without the breach passes."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from support import harness, scratch  # noqa: E402  pylint: disable=wrong-import-position

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CHECK = os.path.join(TOP, "tools", "check")

suite = harness.Suite("check")

GOOD = {
    "src/base/thing.h": "/* thing.h - a thing. */\n#pragma once\n\n#include <stddef.h>\n\nsize_t thing_size(void);\n",
    "src/base/thing.c": '/* thing.c - a thing. */\n#include "base/thing.h"\n\nsize_t thing_size(void)\n{\n\treturn 1;\n}\n',
    "src/boundary/linux/linux.h": "#pragma once\nstruct native;\n",
    "src/ledger/sqlite/sqlite.h": "#pragma once\nstruct store;\n",
    "src/cli/wiring.c": '#include "base/thing.h"\n#include "boundary/linux/linux.h"\n#include "ledger/sqlite/sqlite.h"\n',
}


def check(changes):
    """Runs tools/check on the good tree with these files in place of, or beside, its own; its lines."""
    root = scratch.directory("tree")
    for path, text in {**GOOD, **changes}.items():
        place = os.path.join(root, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
    done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
    harness.equal(done.stderr, "", "standard error")
    harness.equal(done.returncode, 1 if done.stdout else 0, "exit status")
    return done.stdout.splitlines()


def finds(changes, place, rule, text=""):
    lines = check(changes)
    harness.equal(len(lines), 1, f"findings in {lines}")
    harness.holds(lines[0].startswith(f"{place}: {rule}: ") and text in lines[0], f"unexpected finding: {lines[0]}")


def function(lines):
    return "int long_one(void);\nint long_one(void)\n{\n" + "\t;\n" * (lines - 4) + "\treturn 0;\n}\n"


@suite.case("the sources of this tree pass")
def _():
    done = subprocess.run([sys.executable, CHECK, TOP], capture_output=True, text=True, check=False)
    harness.equal(done.stdout + done.stderr, "")


@suite.case("a tree without a breach passes")
def _():
    harness.equal(check({}), [])


@suite.case("base may not include another folder")
def _():
    finds({"src/base/thing.c": '#include "base/thing.h"\n#include "lease/lease.h"\n', "src/lease/lease.h": "#pragma once\n"},
          "src/base/thing.c:2", "include-law", "base/ may not include lease/lease.h")


@suite.case("a pure folder may not include a contract with effects")
def _():
    finds({"src/lifecycle/step.c": '#include "boundary/boundary.h"\n', "src/boundary/boundary.h": "#pragma once\n"},
          "src/lifecycle/step.c:1", "include-law")


@suite.case("the runner may include the boundary's contract, and no concrete boundary")
def _():
    contract = {"src/boundary/boundary.h": "#pragma once\n"}
    harness.equal(check({**contract, "src/runner/run.c": '#include "boundary/boundary.h"\n'}), [])
    finds({**contract, "src/runner/run.c": '#include "boundary/linux/linux.h"\n'}, "src/runner/run.c:1", "include-law")


@suite.case("only the wiring names sqlite and linux")
def _():
    finds({"src/cli/main.c": '#include "ledger/sqlite/sqlite.h"\n'}, "src/cli/main.c:1", "include-law", "ledger/sqlite/sqlite.h")
    finds({"src/cli/main.c": '#include "boundary/linux/linux.h"\n'}, "src/cli/main.c:1", "include-law", "boundary/linux/linux.h")


@suite.case("a folder without a place in the law is named")
def _():
    finds({"src/misc/misc.c": "int misc;\n"}, "src/misc/misc.c:1", "include-law", "no place")


@suite.case("a function of 80 lines passes and one of 81 does not")
def _():
    harness.equal(check({"src/base/long.c": function(80)}), [])
    finds({"src/base/long.c": function(81)}, "src/base/long.c:2", "function-length", "81 lines")


@suite.case("a file of 800 lines passes and one of 801 does not")
def _():
    harness.equal(check({"src/base/long.c": "extern int x;\n" * 800}), [])
    finds({"src/base/long.c": "extern int x;\n" * 801}, "src/base/long.c:801", "file-length", "801 lines")


@suite.case("banned calls are found, in tests too, and not in comments, strings or other names")
def _():
    for name in ("strcpy", "sprintf", "strcat", "system", "popen", "alloca", "gets", "atoi"):
        finds({"tests/unit/t.c": f"void t(void)\n{{\n\t{name}(x);\n}}\n"}, "tests/unit/t.c:3", "banned-call", name)
    harness.equal(check({"src/base/fine.c": '/* strcpy(a, b) */\nstatic char *s = "system(1) \\" popen(";\nint f = my_system(1);\n'}), [])


@suite.case("a library neither logs nor exits nor reads the environment; a program may")
def _():
    for name in ("exit", "getenv", "printf", "fprintf", "perror", "syslog"):
        text = f"void t(void)\n{{\n\t{name}(x);\n}}\n"
        finds({"src/base/loud.c": text}, "src/base/loud.c:3", "library-call", name)
        harness.equal(check({"src/cli/loud.c": text}), [])


@suite.case("a header that needs another one first is found")
def _():
    finds({"src/base/thing.h": "#pragma once\nsize_t thing_size(void);\n"}, "src/base/thing.h:1", "header", "size_t")


@suite.case("a header that is no ISO C is found")
def _():
    finds({"src/base/thing.h": "#pragma once\nstruct empty {};\n"}, "src/base/thing.h:1", "header")


if __name__ == "__main__":
    sys.exit(suite.main())
