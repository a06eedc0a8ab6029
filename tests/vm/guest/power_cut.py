#!/usr/bin/python3
"""power_cut.py - a machine loses its power while a program runs; what the next boot finds.

`before` makes a ledger with one finished run, starts another, and says when its program runs: the driver then kills the machine.
Without an argument, on the same disk: the cases.
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import harness, proc  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal  # noqa: E402

LEDGER = "/var/lib/caisson"
BEFORE = "/var/lib/before.json"  # what was answered before the cut

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


@suite.case("a run that the power cut ended is sealed as interrupted by the next recover")
def _():
    caisson = Caisson(ledger=LEDGER)
    recovered = caisson.recover()
    equal(recovered.status, 0, str(recovered))
    equal(sorted(row["verdict"] for row in caisson.list()), ["interrupted", "succeeded"])


@suite.case("what was sealed before the power cut is still there, word for word")
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


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(before() if sys.argv[1:] == ["before"] else suite.main())
