#!/usr/bin/python3
"""test_leases.py - who may drive a run: attempts that were lost before their intent are followed by others, and stopped keepers lose theirs.

With the fault build a keeper dies at a named point of its first run.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc  # noqa: E402
from support.caisson import FAULT_BIN, Caisson, need, verdict_word  # noqa: E402
from support.harness import equal, wait_until  # noqa: E402
from support.invariants import Watch  # noqa: E402
from support.server import Server  # noqa: E402

suite = harness.Suite("leases")

LEASE_S = 2
DELAY_MS = 2000
ATTEMPTS_MAX = 3


def orphans_are_gone():
    """What a dead keeper's nursery, front and workers leave comes to us, and ends by itself."""
    proc.reap_orphans()
    return not proc.children(os.getpid())


def nothing_is_left(caisson, watch):
    wait_until(orphans_are_gone, 10, "nursery, front and workers of the dead are gone")
    watch.hold()
    done = caisson.verify()
    equal(done.status, 0, f"verify --all: {done}")


def dies_at(caisson, point, run=None):
    """A keeper that is killed at the first passage of this point; the run is submitted to it if there is none yet."""
    server = Server(caisson, workers=1, env={"CAISSON_FAULT": f"{point}:kill"}, doomed=bool(run))
    if not run:
        run = server.submit("sh", "-c", "echo done")
    equal(server.popen.wait(60), -signal.SIGKILL, f"the keeper dies at {point}")
    server.reader.join(10)
    return run


def attempts_of(caisson, run):
    return [(row["number"], row["state"]) for row in
            caisson.rows(f"SELECT number, state FROM attempt WHERE run_id = '{run}' ORDER BY number")]


def lost_before_the_intent(point):
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    run = dies_at(caisson, point)
    equal(len(attempts_of(caisson, run)), 1)
    with Server(caisson, workers=1) as server:
        receipt = server.wait(run)
        equal(verdict_word(receipt, 0), "OK", str(receipt))
    equal(attempts_of(caisson, run), [(1, "abandoned"), (2, "sealed")])
    nothing_is_left(caisson, watch)


for name in ("run.preparing", "run.suspended", "run.enrolled"):
    suite.add(f"a keeper that dies at {name}: its run is queued again, and done by the next", lambda name=name: lost_before_the_intent(name))


@suite.case("a keeper that dies behind the launch intent: its run is interrupted, and never tried again")
def _():
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    run = dies_at(caisson, "run.intent")
    with Server(caisson, workers=1) as server:
        equal(verdict_word(server.wait(run), 0), "INTERRUPTED")
    equal(attempts_of(caisson, run), [(1, "sealed")])
    nothing_is_left(caisson, watch)


@suite.case("the third attempt that is lost is the last: not_launched")
def _():
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    run = None
    for _number in range(ATTEMPTS_MAX):
        run = dies_at(caisson, "run.suspended", run)
    with Server(caisson, workers=1) as server:
        receipt = server.wait(run)
        equal((receipt["verdict"], receipt["reason"]), ("not_launched", "keeper_lost"))
    equal(attempts_of(caisson, run), [(1, "abandoned"), (2, "abandoned"), (3, "sealed")])
    nothing_is_left(caisson, watch)


@suite.case("a recovery that dies before it queues a run again is done again")
def _():
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    run = dies_at(caisson, "run.suspended")
    for point in ("recover.started", "recover.cleaned", "recover.abandoning"):
        done = caisson.call("recover", env={"CAISSON_FAULT": f"{point}:kill"})
        equal(done.status, -signal.SIGKILL, f"{point}: {done}")
    equal(caisson.call("recover").status, 0)
    equal(caisson.show(run)["state"], "queued")
    with Server(caisson, workers=1) as server:
        equal(verdict_word(server.wait(run), 0), "OK")
    equal(attempts_of(caisson, run), [(1, "abandoned"), (2, "sealed")])
    nothing_is_left(caisson, watch)


@suite.case("a worker that is killed before the launch costs an attempt, not the run")
def _():
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    with Server(caisson, workers=1, env={"CAISSON_FAULT": f"run.suspended:delay_{DELAY_MS}"}) as server:
        run = server.submit("true")
        wait_until(lambda: attempts_of(caisson, run), 20, "it is claimed")
        worker = next(pid for pid in proc.descendants(server.popen.pid) if proc.Process(pid).name == "caisson-worker")
        os.kill(worker, signal.SIGKILL)
        equal(verdict_word(server.wait(run), 0), "OK")
    equal(attempts_of(caisson, run), [(1, "abandoned"), (2, "sealed")])
    nothing_is_left(caisson, watch)


@suite.case("a run that somebody else's recovery has queued again is found by a keeper that had read past it")
def _():
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    with Server(caisson, workers=1) as server:
        server.popen.send_signal(signal.SIGSTOP)
        run = dies_at(caisson, "run.suspended")
        server.popen.send_signal(signal.SIGCONT)
        server.wait(server.submit("true"))
        equal(caisson.call("recover").status, 0)
        equal(verdict_word(server.wait(run), 0), "OK")
    equal(attempts_of(caisson, run), [(1, "abandoned"), (2, "sealed")])
    nothing_is_left(caisson, watch)


@suite.case("a step of the worker that lasts longer than the lease: it is kept meanwhile, and nobody takes the run over")
def _():
    need(FAULT_BIN)
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    slow = {"CAISSON_FAULT": f"worker.preparing@2:delay_{4 * LEASE_S * 1000}"}  # the first is the worker's verification
    with Server(caisson, "--lease", f"{LEASE_S}s", workers=1, env=slow) as driver:
        run = driver.submit("true")
        wait_until(lambda: attempts_of(caisson, run), 20, "it is claimed")
        with Server(caisson, workers=1):
            receipt = driver.wait(run)
    equal(verdict_word(receipt, 0), "OK", str(receipt))
    equal(receipt["lease_generations"], 1)
    equal(attempts_of(caisson, run), [(1, "sealed")])
    nothing_is_left(caisson, watch)


@suite.case("FP31 a stopped keeper: another takes its run over, and when it goes on it does nothing further and says so")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson, "--lease", f"{LEASE_S}s", workers=1) as stopped, Server(caisson, workers=1) as other:
        run = stopped.submit("sleep", "600", limits={"wall_ms": 600000})
        wait_until(lambda: caisson.show(run)["state"] == "running", 20, "it runs")
        driver = next(server for server in (stopped, other) if server.run_state(run)["state"] == "running" and
                      any(worker["state"] == "busy" for worker in server.worker_states()))
        heir = other if driver is stopped else stopped
        driver.popen.send_signal(signal.SIGSTOP)
        receipt = heir.wait(run, seconds=90)
        equal(verdict_word(receipt, 0), "INTERRUPTED", str(receipt))
        equal(receipt["lease_generations"], 2)
        driver.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: driver.events("lease_lost"), 30, "it says so")
        equal(driver.events("lease_lost")[0]["run"], run)
        equal(verdict_word(driver.wait(driver.submit("true")), 0), "OK", "it serves on")
    equal(len(caisson.rows(f"SELECT * FROM seal WHERE run_id = '{run}'")), 1)
    nothing_is_left(caisson, watch)


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
