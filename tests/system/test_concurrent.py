#!/usr/bin/python3
"""test_concurrent.py - many keepers on one ledger, recoveries and lists beside them, and a second ledger being recovered."""

import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, supervisor  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("concurrent")

RUNS = 20
DISTURBANCES = 200


def leave_dead_runs(caisson, count):
    """Runs of another ledger whose keepers were killed; their recovery is part of the disturbance."""
    for _ in range(count):
        run = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"), stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
        run.wait_guest("sleep")
        run.signal("group", signal.SIGKILL)
        run.reap()


@suite.case(f"{RUNS} runs at once, {DISTURBANCES} × recover and list, and a second ledger's recovery beside them", timeout=300)
def _():
    caisson, other = Caisson(), Caisson()
    watch, other_watch = Watch(caisson), Watch(other)
    equal(caisson.run("true").word(), "OK")
    leave_dead_runs(other, 3)
    troubles, over = [], threading.Event()

    def disturb():
        for number in range(DISTURBANCES):
            for who, done in (("recover", caisson.recover()), ("list", caisson.call("list", "--json"))):
                if done.status != 0:
                    troubles.append(f"{who} {number}: {done}")
        over.set()

    def recover_other():
        while not over.is_set():
            done = other.recover()
            if done.status != 0:
                troubles.append(f"second ledger: {done}")

    runs = [supervisor.Supervisor.start(caisson, "sleep", "3", stdout=subprocess.DEVNULL) for _ in range(RUNS)]
    threads = [threading.Thread(target=disturb), threading.Thread(target=recover_other)]
    for thread in threads:
        thread.start()
    statuses = []
    for run in runs:
        errors = run.popen.stderr.read()
        statuses.append(run.reap(60))
        if errors:
            troubles.append(errors.decode("utf-8", "replace"))
    for thread in threads:
        thread.join()
    equal(troubles, [])
    equal(statuses, [0] * RUNS, "exit statuses")
    rows = caisson.call("list", "--json", "--limit", "1000")
    equal(rows.stdout.count(b'"verdict":"succeeded"'), RUNS + 1)
    supervisor.reap_orphans()
    equal(sorted(row["verdict"] for row in other.list()), ["interrupted"] * 3)
    for ledger in (caisson, other):
        verified = ledger.verify()
        equal(verified.status, 0, str(verified))
    watch.hold()
    other_watch.hold()


@suite.case("a living keeper's run is left alone by recover, and is still there afterwards")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"))
    sleeper = run.wait_guest("sleep")[0]
    for _ in range(5):
        equal(caisson.recover().status, 0)
    holds(not proc.Process(sleeper).gone, "the guest lives")
    equal([row["state"] for row in caisson.attempts()] != ["sealed"], True, "its attempt is open")
    equal(run.stop(), 130)
    watch.hold()


@suite.case("two runs at the first use of a ledger agree on one identity and one key")
def _():
    for _ in range(5):
        caisson = Caisson()
        runs = [supervisor.Supervisor.start(caisson, "true", stdout=subprocess.DEVNULL) for _ in range(4)]
        errors = [run.popen.stderr.read() for run in runs]
        equal([run.reap() for run in runs], [0] * 4, repr(errors))
        equal(len(caisson.rows("SELECT * FROM ledger")), 1)
        equal(len(caisson.rows("SELECT * FROM key")), 1)
        equal(caisson.verify().status, 0)


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
