#!/usr/bin/python3
"""test_hostile.py - runs the hostile corpus on the Linux boundary, every invariant asserted after each case; prints id × verdict.

CAISSON_TEST_REPEATS: how often a quick case is repeated for I8 (default 2; the full figure is 20).
"""

import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import cases  # noqa: E402
import corpus  # noqa: E402
from support import guests, harness, proc  # noqa: E402
from support.caisson import Caisson, exit_status_of  # noqa: E402
from support.invariants import Broken, Watch  # noqa: E402

REPEATS = harness.env_int("CAISSON_TEST_REPEATS", 2)
CASE_TIMEOUT_S = 400  # H19 and H56 are hundreds of runs
QUICK_S = 0.5  # a case that takes longer is repeated once only
DEFAULT_WALL_S = 10  # contract, "Defaults and bounds"

suite = harness.Suite("hostile")
table = {}


class PeakMemory(threading.Thread):
    """Samples the resident memory of our children that are not guests, while it lasts."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.over = 0, threading.Event()

    def run(self):
        while not self.over.wait(0.01):
            for pid in proc.descendants(os.getpid()):
                process = proc.Process(pid)
                if process.gone or process.is_guest:
                    continue
                for line in proc.read(f"/proc/{pid}/status").splitlines():
                    if line.startswith("RssAnon:"):
                        self.peak = max(self.peak, int(line.split()[1]) * 1024)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def wall(case):
    """An emulated machine is given the time that it needs: what a guest does there under the default limit may take longer than that."""
    if "--wall" in case.options or harness.patience(1) == 1:
        return ()
    return ("--wall", f"{harness.patience(DEFAULT_WALL_S)}s")


def run_program(case, caisson):
    path = guests.program(case.program, case.static)
    if case.control:
        case.control(path)

    def once():
        return caisson.run(cases.BOX, *case.arguments, options=(*case.options, *wall(case), "--input", f"{path}:{cases.BOX}"))

    watch = Watch(caisson)
    with PeakMemory() if case.watch_rss else _Nothing() as memory:
        result = once()
    table.setdefault(case.id, []).append(result.word())
    _check_result(case, result)
    watch.hold(result, supervisor_rss=memory.peak)
    if case.repeat:
        times = REPEATS if result.seconds < QUICK_S else min(REPEATS, 2)
        words = [result.word()] + [once().word() for _ in range(times - 1)]
        if len(set(words)) > 1:
            raise Broken({"I8": [f"verdicts differ over {times} repeats: {words}"]}, result)


def _check_result(case, result):
    word = result.word()
    harness.is_in(word, case.expect, f"verdict of {result}")
    harness.equal(result.status, exit_status_of(word), f"exit status of {result}")
    if result.receipt and word != "REJECTED":
        harness.holds(result.receipt["boundary"]["verified_empty"], f"verified empty: {result}")
    if case.check:
        try:
            case.check(result)
        except AssertionError as error:
            raise AssertionError(f"{error}\nin {result}") from error


def run_driver(case, caisson):
    path = guests.program(case.program) if case.program else None
    watch = Watch(caisson)
    word = corpus.driver(case)(caisson, path)
    table.setdefault(case.id, []).append(word)
    watch.hold()


class _Nothing:
    peak = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def register(case):
    def function():
        try:
            (run_driver if case.drive else run_program)(case, Caisson())
        except BaseException:
            table.setdefault(case.id, []).append("!")
            raise
    suite.add(case.name, function, CASE_TIMEOUT_S)


for entry in corpus.runnable():
    register(entry)


@suite.at_end
def print_table():
    print("# id × verdict (! marks a case that failed)")
    for identity in sorted(table):
        print(f"#   {identity}  {' '.join(table[identity])}")


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
