#!/usr/bin/python3
"""power_cut.py - a machine loses its power while a program runs; what the next boot finds.

`before` makes a ledger with one finished run, starts another, and says when its program runs: the driver then kills the machine.
Without an argument, on the same disk: the cases; and what only a machine of one's own may do to its clock.
"""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import harness, proc, supervisor  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402

LEDGER = "/var/lib/caisson"
BEFORE = "/var/lib/before.json"  # what was answered before the cut
DAY_S = 24 * 3600

suite = harness.Suite("power_cut")


def before():
    caisson = Caisson(ledger=LEDGER)
    finished = caisson.run("echo", "kept")
    with open(BEFORE, "w", encoding="utf-8") as file:
        json.dump(finished.receipt, file)
        file.flush()
        os.fsync(file.fileno())
    os.sync()
    running = caisson.start("sh", "-c", "echo ready; exec sleep 1000", options=("--wall", "1000s"), stderr=subprocess.STDOUT)
    print("=== cut" if running.stdout.readline() == b"ready\n" else "the program did not start", flush=True)
    time.sleep(1000)


@suite.case("FP15 a run that the power cut ended is sealed as interrupted by the next recover")
def _():
    caisson = Caisson(ledger=LEDGER)
    recovered = caisson.recover()
    equal(recovered.status, 0, str(recovered))
    equal(sorted(row["verdict"] for row in caisson.list()), ["interrupted", "succeeded"])


@suite.case("FP28 what was sealed before the power cut is still there, word for word")
def _():
    caisson = Caisson(ledger=LEDGER)
    with open(BEFORE, encoding="utf-8") as file:
        receipt = json.load(file)
    equal(caisson.show(receipt["run"]), receipt)
    equal(caisson.logs(receipt["run"]), b"kept\n")


@suite.case("everything verifies, and the ledger takes the next run")
def _():
    caisson = Caisson(ledger=LEDGER)
    equal(caisson.run("true").word(), "OK")
    verified = caisson.verify()
    equal(verified.status, 0, str(verified))


def step_clock(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def start_sleeping(caisson, seconds):
    run = supervisor.Supervisor.start(caisson, "sleep", seconds, options=("--wall", "1000s"), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
    run.wait_guest("sleep")
    return run


@suite.case("FP49 the wall clock steps by a day, there and back: no lease expires by it, no limit and no figure is stretched")
def _():
    caisson = Caisson(ledger=LEDGER)
    living, dead = start_sleeping(caisson, "20"), start_sleeping(caisson, "1000")
    dead.signal("group", signal.SIGKILL)
    dead.reap()
    supervisor.wait_dead(dead.boundaries() - living.boundaries(), 30)
    try:
        step_clock(DAY_S)
        recovered = caisson.recover()
        equal(recovered.status, 0, str(recovered))
        holds(b"1 of living keepers left alone" in recovered.stdout, str(recovered))
        equal(caisson.list()[0]["verdict"], "interrupted")
        holds(living.popen.poll() is None, "the other run goes on")
        timed = caisson.run("sleep", "1000", options=("--wall", "1s"))
        equal(timed.word(), "TLE_WALL", str(timed))
        equal(living.reap(300), 0)
    finally:
        step_clock(-DAY_S)
    equal(caisson.run("true").word(), "OK")
    for receipt in map(caisson.show, (row["run"] for row in caisson.list())):
        figures = [receipt["usage"]["wall_ms"], receipt["times"]["cleanup_ms"], receipt["times"]["drain_ms"]]
        holds(all(figure is None or 0 <= figure < DAY_S * 500 for figure in figures), f"{receipt['usage']} {receipt['times']}")
    verified = caisson.verify()
    equal(verified.status, 0, str(verified))


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(before() if sys.argv[1:] == ["before"] else suite.main())
