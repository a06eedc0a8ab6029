#!/usr/bin/python3
"""bare.py - a machine with one hierarchy of cgroups, none of its controllers enabled, and a kernel without Landlock: what cannot be
enforced is refused by name, and the rest works."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import harness, proc  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402

CONTROL = "/sys/fs/cgroup/cgroup.subtree_control"

suite = harness.Suite("bare")


def enable(*controllers):
    for name in controllers:
        with open(CONTROL, "w", encoding="ascii") as file:
            file.write("+" + name)


def refused(result, word):
    equal((result.verdict, result.reason, result.status), ("not_launched", "limit_unenforceable", 125), str(result))
    holds(word in result.receipt["detail"], f"{word} in {result}")
    equal(result.receipt["boundary"]["verified_empty"], True, "verified_empty")


def doctor(caisson):
    done = subprocess.run([caisson.binary, "doctor", "--json"], env=caisson.environment(), capture_output=True, check=False)
    return done.returncode, done.stdout.decode()


@suite.case("no controller enabled: the first limit is refused by name, and doctor says how to enable it")
def _():
    caisson = Caisson()
    refused(caisson.run("true"), "limit.memory: controller memory is not enabled in /sys/fs/cgroup/caisson")
    status, said = doctor(caisson)
    equal(status, 1, said)
    holds("cgroup.subtree_control" in said, said)


@suite.case("memory alone: the number of processes is refused by name")
def _():
    enable("memory")
    refused(Caisson().run("true"), "limit.pids: controller pids is not enabled")


@suite.case("without cpu, everything but a limit of CPUs works: CPU time needs no controller")
def _():
    enable("pids")
    caisson = Caisson()
    equal(caisson.run("true").word(), "OK")
    equal(caisson.run("sh", "-c", "while :; do :; done", options=("--cpu", "300ms")).word(), "TLE_CPU")
    refused(caisson.run("true", options=("--pin", "0")), "limit.pin: controller cpuset is not enabled")
    enable("cpuset")
    equal(caisson.run("true", options=("--pin", "0")).word(), "OK")
    refused(caisson.run("true", options=("--cpus", "1")), "limit.cpu: controller cpu is not enabled")
    enable("cpu")
    equal(caisson.run("true", options=("--cpus", "0.5")).word(), "OK")
    peaks = caisson.run("true", options=("--require", "pids.peak", "--require", "memory.peak"))
    equal((peaks.word(), peaks.receipt["usage"]["pids_peak"]), ("OK", 1), str(peaks))


@suite.case("without Landlock the layer is not claimed, and can be required")
def _():
    caisson = Caisson()
    result = caisson.run("true")
    equal([line for line in result.receipt["boundary"]["evidence"] if line["name"] == "landlock"], [])
    refused(caisson.run_manifest({"command": {"argv": ["true"]}, "require": ["landlock>=1"]}), "landlock")
    holds("landlock" in doctor(caisson)[1], "doctor says so")
    json.loads(doctor(caisson)[1])


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
