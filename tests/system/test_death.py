#!/usr/bin/python3
"""test_death.py - the death of `caisson run` itself: kill -9 of keeper, worker or group in every state, SIGSTOP of both.

With the fault build the keeper stops itself at a named point, so that each kill meets the state that it is meant for. Then: the
guest is dead within 2 s before anybody recovers; after `recover` nothing is left, each run has one terminal state, and verify --all
passes.
"""

import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as product  # noqa: E402
from support import harness, proc, supervisor  # noqa: E402
from support.harness import equal, holds, is_in  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("death")

# In a sanitizer build the keeper looks for leaks as it ends, through a child that traces it. That child looks like a worker here; killed,
# it leaves its parent waiting for ever. Leaks are looked for by all other suites.
os.environ["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")

GUEST_DEAD_S = 2.0
TARGETS = ("keeper", "worker", "group")
PER_TARGET = harness.env_int("CAISSON_TEST_KILLS", 4)  # of each target in each state: 12 kills a state
RANDOM_KILLS = harness.env_int("CAISSON_TEST_RANDOM_KILLS", 60)

# State → the fault points where the keeper is in it.
STATES = {
    "preparing": ("run.preparing",),
    "suspended": ("run.suspended",),
    "enrolled": ("run.enrolled", "run.intent"),
    "running": ("run.launched",),
    "exited": ("run.exited", "run.drained"),
    "cleaning": ("run.cleaning", "run.cleaned"),
    "seal": ("ledger_commit@SEAL", "ledger_committed@SEAL", "run.sealed"),  # SEAL: the number of the run's last commit
}
# What a run that was killed there may have become.
VERDICTS = {
    "preparing": {"not_launched"},
    "suspended": {"not_launched"},
    "enrolled": {"not_launched", "interrupted"},
    "running": {"interrupted", "boundary_error"},
    "exited": {"interrupted", "boundary_error", "succeeded"},
    "cleaning": {"interrupted", "boundary_error", "succeeded"},
    "seal": {"interrupted", "boundary_error", "succeeded"},
}
histogram = {}


def program(state):
    """A guest that outlives its supervisor if it can, or one that ends so that the later states are reached."""
    return ("sh", "-c", "sleep 60 & sleep 60") if state == "running" else ("sh", "-c", "echo x")


def last_commit():
    """Which commit of a run is its seal: the last at which it can be killed. Found on a ledger of its own."""
    caisson, number = product.Caisson(product.FAULT_BIN), 1
    equal(caisson.run("true").word(), "OK")
    while caisson.run("true", env={"CAISSON_FAULT": f"ledger_commit@{number}:kill"}).status != 0:
        equal(caisson.recover().status, 0)
        number += 1
    holds(2 <= number - 1 <= 10, f"a run has {number - 1} commits")
    return number - 1


def kill_once(caisson, state, point, target):
    equal(caisson.recover().status, 0)  # so that the point is met by this run, and not by its recovery of the one before
    run = supervisor.Supervisor.start(caisson, *program(state), options=("--wall", "60s"), env={"CAISSON_FAULT": f"{point}:stop"},
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    harness.wait_until(lambda: proc.Process(run.keeper).state == "T", 10, f"the keeper stops at {point}")
    run.signal(target, signal.SIGKILL)
    supervisor.wait_dead(run.boundaries, GUEST_DEAD_S, known=[run.keeper])
    if target == "worker":
        os.kill(run.keeper, signal.SIGCONT)
    run.reap()
    histogram.setdefault(state, {}).setdefault(target, 0)
    histogram[state][target] += 1


def converge(caisson, watch, allowed):
    """Recovery, twice; then nothing is left, every run is sealed once, and all verifies."""
    for _ in range(2):
        done = caisson.recover()
        equal(done.status, 0, str(done))
    harness.wait_until(lambda: not _unreaped(), 5, "orphans are reaped")
    verified = caisson.verify()
    equal(verified.status, 0, str(verified))
    for row in caisson.list():
        is_in(row["verdict"], allowed, f"verdict of {row['run']} ({row['reason']})")
    watch.hold()


def _unreaped():
    supervisor.reap_orphans()
    return proc.children(os.getpid())


def kill_in(state):
    product.need(product.FAULT_BIN)
    caisson = product.Caisson(product.FAULT_BIN)
    watch = Watch(caisson)
    points = STATES[state]
    if state == "seal":
        equal(caisson.run("true").word(), "OK")  # the ledger is made
        number = str(last_commit())
        points = tuple(point.replace("SEAL", number) for point in points)
    for number in range(PER_TARGET):
        for target in TARGETS:
            kill_once(caisson, state, points[number % len(points)], target)
    holds(sum(histogram[state].values()) >= min(10, 3 * PER_TARGET), f"{histogram[state]}")
    converge(caisson, watch, VERDICTS[state])


for name in STATES:
    suite.add(f"kill -9 while {name}", lambda state=name: kill_in(state), timeout=300)


@suite.case("kill -9 at random times", timeout=300)
def _():
    seed = random.randrange(1 << 32)
    dice, caisson = random.Random(seed), product.Caisson()
    watch = Watch(caisson)
    states = {}
    for _ in range(RANDOM_KILLS):
        run = supervisor.Supervisor.start(caisson, "sh", "-c", "sleep 0.02 & sleep 0.01", stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.08))
        seen = [row["state"] for row in caisson.attempts() if row["boundary_id"] in run.boundaries()]
        run.signal(dice.choice(TARGETS), signal.SIGKILL)
        supervisor.wait_dead(run.boundaries, GUEST_DEAD_S, known=[run.keeper])
        run.reap()
        state = seen[0] if seen else "before accept"
        states[state] = states.get(state, 0) + 1
    print(f"# seed {seed}, states in the ledger when it was killed: {states}")
    converge(caisson, watch, {"not_launched", "interrupted", "boundary_error", "succeeded"})


@suite.case("the next run recovers what a dead one left, without being asked")
def _():
    caisson = product.Caisson()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"))
    run.wait_guest("sleep")
    run.signal("group", signal.SIGKILL)
    supervisor.wait_dead(run.boundaries, GUEST_DEAD_S, known=[run.keeper])
    run.reap()
    equal(caisson.run("true").word(), "OK")
    verdicts = sorted(row["verdict"] for row in caisson.list())
    equal(verdicts, ["interrupted", "succeeded"])
    supervisor.reap_orphans()
    watch.hold()


@suite.case("SIGSTOP of keeper and worker: the guest is dead by wall + grace + 1 s")
def _():
    caisson = product.Caisson()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sh", "-c", "sleep 60 & sleep 60", options=("--wall", "1s", "--grace", "500ms"))
    run.wait_guest("sleep", 2)
    launched = time.monotonic()
    run.signal("both", signal.SIGSTOP)
    bound = 1.0 + 0.5 + 1.0
    supervisor.wait_dead(run.boundaries, bound + 0.5, known=[run.keeper, *run.workers()])
    print(f"# dead {time.monotonic() - launched:.2f} s after its launch, bound {bound} s")
    run.signal("both", signal.SIGCONT)
    status = run.reap()
    is_in(status, {124, 125}, "exit status after SIGCONT")
    equal(caisson.recover().status, 0)
    holds(caisson.list()[0]["verdict"] in ("timed_out", "boundary_error"), str(caisson.list()))
    supervisor.reap_orphans()
    watch.hold()


@suite.case("a recovery that is killed at its own steps converges the next time")
def _():
    faulty = product.Caisson(product.FAULT_BIN)
    watch = Watch(faulty)
    run = supervisor.Supervisor.start(faulty, "sleep", "60", options=("--wall", "60s"))
    run.wait_guest("sleep")
    run.signal("group", signal.SIGKILL)
    run.reap()
    for point in ("recover.cleaned", "ledger_commit@1", "ledger_commit@2", "ledger_committed@2"):
        faulty.recover(env={"CAISSON_FAULT": f"{point}:kill"})
    converge(faulty, watch, {"interrupted"})


@suite.at_end
def print_histogram():
    print("# kills by state and target")
    for state, counts in histogram.items():
        print(f"#   {state:10} " + " ".join(f"{target}={count}" for target, count in counts.items()))


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
