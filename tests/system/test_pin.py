#!/usr/bin/python3
"""test_pin.py - a guest that is pinned runs on those CPUs and on no other, whatever it asks for; and what that does to its limits."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("pin")

USABLE = sorted(os.sched_getaffinity(0))
LAST = USABLE[-1]
ABSENT = LAST + 1
PATIENT = ("--wall", "120s")

# A process, its child and its threads each ask for every CPU that there could be, one by one and all at once; then each says where it
# may run, and where it was seen while it worked.
ESCAPE = """
import os, threading
mine = os.sched_getaffinity(0)
seen, taken = set(), set()

def field(line):
    with open("/proc/thread-self/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[line])

def ask():
    for wanted in [{cpu} for cpu in range(8)] + [set(range(1024))]:
        try:
            os.sched_setaffinity(0, wanted)
        except OSError:
            pass
        taken.update(os.sched_getaffinity(0))
        for _ in range(40):
            seen.add(field(36))

threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads:
    thread.start()
ask()
for thread in threads:
    thread.join()
child = os.fork()
if child == 0:
    ask()
    os._exit(0 if (taken | seen) <= mine else 1)
left = os.waitpid(child, 0)[1]
print(sorted(mine), sorted(taken), sorted(seen), left)
"""


def pinned(cpus, *argv, options=(), **keywords):
    return Caisson().run(*argv, options=("--pin", ",".join(map(str, cpus)), *options), **keywords)


def need_two():
    if len(USABLE) < 2:
        raise harness.Skip("this machine has one CPU")


@suite.case("a guest that asks for other CPUs, in threads and children, stays where it was pinned")
def _():
    need_two()
    caisson = Caisson()
    watch = Watch(caisson)
    result = caisson.run("python3", "-c", ESCAPE, options=("--pin", str(LAST), *PATIENT))
    equal((result.word(), result.text), ("OK", f"[{LAST}] [{LAST}] [{LAST}] 0\n"), str(result))
    watch.hold(result)
    free = caisson.run("python3", "-c", ESCAPE, options=PATIENT)
    equal(free.text.split("] ")[1], f"[{', '.join(map(str, USABLE))}", f"without it the same guest takes them all: {free}")


@suite.case("programs count the CPUs that they have")
def _():
    equal(pinned([LAST], "nproc").text, "1\n")
    equal(pinned(USABLE, "nproc").text, f"{len(USABLE)}\n")


@suite.case("the receipt says it in the kernel's form, with the group's file, the membership and main's own mask as evidence")
def _():
    need_two()
    result = pinned([LAST, USABLE[0], LAST], "true")
    first, last = USABLE[0], LAST
    expected = f"{first}-{last}" if last == first + 1 else f"{first},{last}"
    equal(result.receipt["limits"]["pin"], expected, str(result))
    details = {line["name"]: (line["grade"], line["detail"]) for line in result.receipt["boundary"]["evidence"]}
    equal(details["limit.pin"], ("observed", f"cpuset.cpus {expected}"))
    equal(details["pin"], ("observed", f"Cpus_allowed_list {expected}"))
    holds("cgroup.cpuset" in details or "cgroup.unified.guest" in details, f"membership in {sorted(details)}")


@suite.case("without it the receipt has none")
def _():
    result = Caisson().run("true")
    holds("pin" not in result.receipt["limits"], str(result.receipt["limits"]))
    equal([line for line in result.receipt["boundary"]["evidence"] if "pin" in line["name"] or "cpuset" in line["name"]], [])


@suite.case("CPU time is by default wall time times the CPUs of the pin, and that ends a busy guest")
def _():
    equal(pinned([LAST], "true", options=("--wall", "3s")).receipt["limits"]["cpu_ms"], 3000)
    equal(pinned(USABLE, "true", options=("--wall", "3s")).receipt["limits"]["cpu_ms"], 3000 * len(USABLE))
    busy = pinned([LAST], "sh", "-c", "while :; do :; done & while :; do :; done", options=("--cpu", "300ms"))
    equal(busy.word(), "TLE_CPU", str(busy))


@suite.case("a CPU that is not there is refused by name, and nothing runs")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    result = caisson.run("echo", "marker", options=("--pin", f"{USABLE[0]},{ABSENT}"))
    equal((result.verdict, result.reason, result.status), ("refused", "limit_unenforceable", 125), str(result))
    holds(f"limits.pin: CPU {ABSENT} asked for" in result.receipt["detail"], str(result))
    watch.hold(result)


@suite.case("a CPU that Caisson itself may not use is not there either")
def _():
    need_two()
    os.sched_setaffinity(0, {USABLE[0]})
    try:
        result = pinned([LAST], "true")
    finally:
        os.sched_setaffinity(0, USABLE)
    equal((result.verdict, result.reason), ("refused", "limit_unenforceable"), str(result))


@suite.case("more bandwidth than the pinned CPUs have is refused by name; less is kept to")
def _():
    need_two()
    result = pinned([LAST], "true", options=("--cpus", "1.5"))
    equal((result.verdict, result.reason), ("refused", "limit_unenforceable"), str(result))
    holds("limits.cpus: 1.5 asked for, but the pin can give 1" in result.receipt["detail"], str(result))
    half = pinned([LAST], "true", options=("--cpus", "0.5"))
    equal((half.word(), half.receipt["limits"]["cpus"], half.receipt["limits"]["pin"]), ("OK", "0.5", str(LAST)), str(half))


@suite.case("a list that is none is one clear error")
def _():
    for wrong in ("", "all", "1-0", "0,,1", "0-9999"):
        done = Caisson().run_plain("echo", "marker", options=(f"--pin={wrong}",))
        equal((done.status, done.stdout), (125, b""), str(done))
        holds(b"--pin" in done.stderr and done.stderr.count(b"\n") == 1, str(done))


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
