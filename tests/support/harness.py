"""harness.py - a small test framework: named cases, TAP-like lines, one machine-readable summary at the end.

A case is a function; it passes when it returns, fails when it raises, and is skipped when it raises Skip with its reason. With
CAISSON_TEST_MUST_RUN=1 a skip is a failure. The last line is `# summary {"suite": …, "passed": …, "failed": …, "skipped": …}`.

CAISSON_TEST_SLOWNESS: how many times slower than a real machine this one is (emulation); patience() stretches bounds by it.
"""

import argparse
import json
import os
import signal
import sys
import time
import traceback

CASE_TIMEOUT_S = 180


class Skip(Exception):
    """Raised by a case that cannot run on this host; its text is the reason."""


class CaseTimeout(Exception):
    """The case took longer than its own bound."""


def must_run():
    return os.environ.get("CAISSON_TEST_MUST_RUN") == "1"


def env_int(name, default):
    return int(os.environ.get(name, default))


def patience(amount):
    """A bound on time for a real machine, as it is on this one."""
    return amount * env_int("CAISSON_TEST_SLOWNESS", 1)


def equal(got, expected, what=""):
    if got != expected:
        what = what.decode(errors="backslashreplace") if isinstance(what, bytes) else what
        raise AssertionError(f"{what + ': ' if what else ''}expected {expected!r}, got {got!r}")


def is_in(got, allowed, what=""):
    if got not in allowed:
        raise AssertionError(f"{what + ': ' if what else ''}expected one of {sorted(allowed, key=str)!r}, got {got!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_until(condition, seconds, what, interval=0.005):
    """Polls a condition that nothing announces (a process table, a cgroup); returns its first true value."""
    deadline = time.monotonic() + patience(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(interval)


class Suite:
    def __init__(self, name):
        self.name = name
        self.cases = []
        self.finals = []

    def case(self, name, timeout=CASE_TIMEOUT_S):
        def register(function):
            self.cases.append((name, function, timeout))
            return function
        return register

    def add(self, name, function, timeout=CASE_TIMEOUT_S):
        self.cases.append((name, function, timeout))

    def at_end(self, function):
        """Called after the last case, whatever happened (tables, removal of scratch directories)."""
        self.finals.append(function)
        return function

    def main(self, argv=None):
        parser = argparse.ArgumentParser(description=f"suite {self.name}")
        parser.add_argument("-l", "--list", action="store_true", help="print the names of the cases")
        parser.add_argument("pattern", nargs="*", help="run only cases whose name contains one of these")
        options = parser.parse_args(argv)
        chosen = [c for c in self.cases if not options.pattern or any(p in c[0] for p in options.pattern)]
        if options.list:
            print("\n".join(name for name, _, _ in chosen))
            return 0
        signal.signal(signal.SIGALRM, _on_alarm)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would what we start
        started = time.monotonic()
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        for number, (name, function, timeout) in enumerate(chosen, 1):
            counts[_run_case(number, name, function, timeout)] += 1
        for function in self.finals:
            function()
        print(f"1..{len(chosen)}")
        summary = {"suite": self.name, **counts, "seconds": round(time.monotonic() - started, 2)}
        print("# summary " + json.dumps(summary), flush=True)
        return 1 if counts["failed"] else 0


def _on_alarm(_signal, _frame):
    raise CaseTimeout("the case took longer than its bound")


def _run_case(number, name, function, timeout):
    started = time.monotonic()
    signal.alarm(timeout)
    try:
        function()
        outcome, trouble = "passed", ""
    except Skip as skip:
        outcome, trouble = ("failed", f"skipped, though it must run: {skip}") if must_run() else ("skipped", str(skip))
    except (KeyboardInterrupt, SystemExit):
        raise
    except AssertionError as error:
        outcome, trouble = "failed", f"{error}\n{_where(error)}"
    except Exception:  # pylint: disable=broad-except
        outcome, trouble = "failed", traceback.format_exc()
    finally:
        signal.alarm(0)
    seconds = time.monotonic() - started
    if outcome == "passed":
        print(f"ok {number} - {name} # {seconds:.2f} s")
    elif outcome == "skipped":
        print(f"ok {number} - {name} # SKIP {trouble}")
    else:
        print(f"not ok {number} - {name} # {seconds:.2f} s")
        for line in trouble.rstrip().splitlines():
            print(f"#   {line}")
    sys.stdout.flush()
    return outcome


def _where(error):
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.basename(f.filename) != "harness.py"]
    return "\n".join(f"at {os.path.relpath(f.filename)}:{f.lineno} {f.name}" for f in frames)
