#!/usr/bin/python3
"""test_evidence.py - every evidence line is worth something: without its protection nothing is launched, and the line is named.

Uses the build with fault points, where CAISSON_OMIT=LINE leaves out the one protection that LINE vouches for.
"""

import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as product  # noqa: E402
from support import harness, proc  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("evidence")

# What a guest would do were it launched; its output is the marker that must never appear.
MARKER = ("sh", "-c", "touch /box/marker && echo marker")
# Limits that differ from what a process here has anyway: a limit that was never set must not look like one that was.
OPTIONS = ("--stack", "4M", "--open-files", "100", "--cpus", "1", "--memory", "200M", "--pids", "50")
CPUS = sorted(os.sched_getaffinity(0))
if len(CPUS) > 1:  # or the pin would be what a process has anyway
    OPTIONS += ("--pin", str(CPUS[-1]))
GRADES = {"observed", "attested", "probed"}
# The least that enroll must vouch for (contract and architecture): by the first words of the names.
EXPECTED = ("ns.user", "ns.mnt", "ns.pid", "ns.net", "ns.ipc", "ns.uts", "ns.cgroup", "limit.memory", "limit.pids", "limit.cpu",
            "no_new_privs", "seccomp", "landlock", "scheduling", "root", "net.lo", "cgroup.", "limit.work", "limit.out", "work")
if len(CPUS) > 1:
    EXPECTED += ("limit.pin", "pin")


# What is the case, and not what protects.
FACTS = ["rootless", "ids.shared"]


def take_advantages():
    """Of scheduling, for a guest to be kept from. What nobody here can have nobody can be seen to be kept from."""
    for name, number in (("rlimit.rtprio", resource.RLIMIT_RTPRIO), ("rlimit.nice", resource.RLIMIT_NICE)):
        try:
            resource.setrlimit(number, (5, 5))
        except (OSError, ValueError):
            FACTS.append(name)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    except OSError:
        FACTS.append("scheduling")


take_advantages()


def evidence():
    if not os.access(product.FAULT_BIN, os.X_OK):
        return None
    result = product.Caisson(product.FAULT_BIN).run("true", options=OPTIONS)
    return result.receipt["boundary"]["evidence"] if result.receipt else []


LINES = evidence()


@suite.case("a run's receipt has its evidence, each line once and graded, with all that is expected")
def _():
    product.need(product.FAULT_BIN)
    names = [line["name"] for line in LINES]
    equal(sorted(set(names)), sorted(names), "names")
    equal({line["grade"] for line in LINES} - GRADES, set(), "grades")
    missing = [word for word in EXPECTED if not any(name == word or name.startswith(word) for name in names)]
    equal(missing, [], f"not vouched for; there are {names}")


@suite.case("a guest can lower its OOM score only where the evidence says that it can")
def _():
    result = product.Caisson().run("sh", "-c", "echo 0 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj")
    said = next(line["detail"] for line in result.receipt["boundary"]["evidence"] if line["name"] == "oom_score")
    equal(said, {"1000\n": "1000: killed first", "0\n": "1000: killed first, unless the guest lowers it"}[result.text])


def leave_out(name):
    caisson = product.Caisson(product.FAULT_BIN)
    watch = Watch(caisson)
    result = caisson.run(*MARKER, options=OPTIONS, env={"CAISSON_OMIT": name})
    equal((result.verdict, result.status), ("not_launched", 125), str(result))
    said = f"{result.receipt['reason']} {result.receipt['detail']}"
    holds(name in said, f"{name} is named in {said!r}")
    equal((result.receipt["stdout"]["bytes"], result.guest_stdout), (0, b""), "the marker")
    equal(result.receipt["times"]["launched_at"], None, "launched_at")
    watch.hold(result)


for entry in LINES or []:
    if entry["name"] in FACTS:
        continue
    suite.add(f"without {entry['name']} nothing is launched", lambda name=entry["name"]: leave_out(name))


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
