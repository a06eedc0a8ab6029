#!/usr/bin/env python3
"""test_model.py - spin searches the whole of docs/model; and each guard that is taken out makes one of its assertions fail.

CAISSON_MODEL_CRASHES, _EXPIRIES, _LOSSES: how much may go wrong in the full search (default 2, 2, 1; docs/model/README.md).
"""

import concurrent.futures
import functools
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from support import harness, scratch  # noqa: E402  pylint: disable=wrong-import-position

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
MODEL = os.path.join(TOP, "docs", "model")
PRINTER = os.path.join(os.environ.get("CAISSON_BUILD", os.path.join(TOP, "build")), "docs", "model", "print_transitions")

DEPTH_MAX = 100000
MEMORY_MB = 3000
HASH_BITS = 24
SEARCH_TIMEOUT_S = 800

SETTLED = "SETTLED"  # the run neither sealed nor quarantined, though nobody can do anything any more

# What is taken out, and what then fails. The smallest troubles that show it: crashes, expiries, losses.
GUARDS = {
    "FENCE_IN_INTENT": ("stale_intent", (0, 1, 0)),
    "FENCE_IN_APPEND": ("stale_write", (0, 1, 0)),
    "FENCE_IN_SEAL": ("stale_write", (0, 1, 0)),
    "FENCE_IN_ABANDON": ("stale_write", (1, 1, 0)),
    "GENERATION": ("stale_write", (0, 2, 0)),
    "DEADLINE": ("stale_effect", (0, 1, 0)),
    "LIVING_KEEPER": ("stale_effect", (1, 0, 0)),
    "FLOCK": ("stale_effect", (0, 0, 0)),
    "UNCHANGED": ("stale_effect", (0, 1, 0)),
    "REAPING": ("receipt_not_empty", (0, 0, 1)),
    "QUEUED_IN_CLAIM": ("receipt_not_empty", (0, 0, 0)),
    "CANCEL_IN_INTENT": ("launch_of_cancelled", (0, 0, 0)),
    "CANCEL_IN_SEAL": ("receipt_forgets_cancel", (0, 0, 0)),
    "INTENT_FIRST": ("launch_without_intent", (0, 0, 1)),
    "VERIFY": ("receipt_not_empty", (0, 0, 0)),
    "QUARANTINE": ("receipt_not_empty", (1, 0, 0)),
    # Three that stand behind one another: what fails is what the next one behind still prevents.
    "INTENT_IN_ABANDON": (SETTLED, (1, 0, 0)),
    "INTENT_IN_ABANDON INTENT_IN_CLAIM": ("receipt_of_another", (1, 0, 0)),
    "INTENT_IN_ABANDON INTENT_IN_CLAIM ONE_INTENT": ("launches<=1", (1, 0, 0)),
}

suite = harness.Suite("model")


def run(*command, cwd, timeout=SEARCH_TIMEOUT_S):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Search:
    """One model, made and searched; `found` is the assertion that failed, or None."""

    def __init__(self, troubles, defines=(), checker=("-O1", "-DNOBOUNDCHECK", "-DSAFETY"), options=()):
        place = scratch.directory("model")
        for name in os.listdir(MODEL):
            if name.endswith(".pml"):
                shutil.copy(os.path.join(MODEL, name), place)
        with open(os.path.join(place, "transitions.pml"), "w", encoding="utf-8") as table:
            table.write(run(PRINTER, cwd=place))
        budgets = (f"-D{name}={count}" for name, count in zip(("CRASHES", "EXPIRIES", "LOSSES"), troubles))
        said = run("spin", *budgets, *(f"-D{name}" for name in defines), "-a", "caisson.pml", cwd=place)
        harness.equal(said, "", "what spin says of the model")
        run("gcc", "-w", "-DVECTORSZ=512", "-DNOREDUCE", f"-DMEMLIM={MEMORY_MB}", *checker, "-o", "pan", "pan.c", cwd=place)
        text = run("./pan", "-n", f"-m{DEPTH_MAX}", f"-w{HASH_BITS}", *options, cwd=place)
        shutil.rmtree(place)
        self.complete = "Search not completed" not in text and "max search depth too small" not in text
        error = re.search(r"^pan:1: (?:assertion violated (.*)|(.*)) \(at depth", text, re.MULTILINE)
        self.found = (error[1] or error[2]).strip() if error else None
        self.states, self.transitions = (int(re.search(rf"(\d+) {what}", text)[1]) for what in ("states, stored", "transitions"))
        self.memory_mb = float(re.search(r"([\d.]+)\ttotal actual memory usage", text)[1])

    def says(self):
        return f"{self.states} states, {self.transitions} transitions, {self.memory_mb:.0f} MB"


def need_tools():
    for tool in ("spin", "gcc"):
        if not shutil.which(tool):
            raise harness.Skip(f"there is no {tool} here")
    harness.holds(os.access(PRINTER, os.X_OK), f"{PRINTER} is built")


def holds(search):
    harness.equal(search.found, None, "what fails in the model")
    harness.holds(search.complete, "the search is exhaustive")
    print(f"# {search.says()}")


@suite.case("no_run_goes_round_in_circles", timeout=SEARCH_TIMEOUT_S)
def _no_cycle():
    need_tools()
    holds(Search((1, 1, 1), defines=("NP",), checker=("-O1", "-DNP"), options=("-l",)))


def fails_without(guards, expected, troubles):
    need_tools()
    only = ["LAUNCHES_ALONE"] if expected == "launches<=1" else []
    search = Search(troubles, defines=[f"NO_{guard}" for guard in guards] + only, checker=("-O0", "-DSAFETY"))
    harness.holds(search.found, f"something fails without {', '.join(guards)} ({search.says()})")
    harness.equal("SETTLED" if "enabled" in search.found else re.sub(r"[ !()]", "", search.found), expected, "what fails")


for names, (assertion, budget) in GUARDS.items():
    suite.add("without_" + names.lower().replace(" ", "_and_"),
              lambda names=names, assertion=assertion, budget=budget: fails_without(names.split(), assertion, budget), timeout=SEARCH_TIMEOUT_S)


@suite.case("every_guard_is_taken_out_once")
def _complete():
    with open(os.path.join(MODEL, "guards.pml"), encoding="utf-8") as file:
        known = set(re.findall(r"^#ifdef NO_(\w+)", file.read(), re.MULTILINE))
    harness.equal({guard for names in GUARDS for guard in names.split()}, known, "the guards that are taken out")


@functools.cache
def everything():
    """The whole search, begun: it has a processor to itself while the short ones go on."""
    troubles = [harness.env_int(f"CAISSON_MODEL_{name}", count) for name, count in (("CRASHES", 2), ("EXPIRIES", 2), ("LOSSES", 1))]
    return concurrent.futures.ThreadPoolExecutor(1).submit(Search, troubles)


@suite.case("nothing_twice_and_nothing_lost_in_every_order", timeout=SEARCH_TIMEOUT_S)
def _everything():
    need_tools()
    holds(everything().result())


if __name__ == "__main__":
    if len(sys.argv) == 1 and shutil.which("spin"):
        everything()
    sys.exit(suite.main())
