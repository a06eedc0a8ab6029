#!/usr/bin/python3
"""lost_cache.py - a machine loses its power at the very points at which only a sync that is missing would show, and its disk everything
that it was not told to flush.

`before` brings runs to these points, one after the other on one ledger, and says when each is there and which answers were given until
then: the driver notes what the disk has been told so far. Without an argument, on another machine: a case for each of those moments, on a
disk that knows no more of it than was flushed.
"""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import harness, proc, supervisor  # noqa: E402
from support.caisson import FAULT_BIN, Caisson  # noqa: E402
from support.harness import equal, holds, is_in  # noqa: E402
from support.server import Server  # noqa: E402

LEDGER = "/var/lib/lost"
MARK = "/run/mark"
PLACE = "/mnt"
LOUD = ("sh", "-c", "yes $1 | head -c 200000", "sh")
FILES = ("sh", "-c", "yes $1 | head -c 200000 >/out/big; echo $1 >/out/small", "sh")

# Fault, point, program. Where the result is committed, the run has to be there.
STOPS = (
    ("FP02", "run.accepted", ("true",)),
    ("FP11", "run.intent", ("true",)),
    ("FP15", "run.launched", ("sleep", "60")),
    ("FP21", "store.named", LOUD),
    ("FP23", "store.named", FILES),
    ("FP24", "run.collected", FILES),
    ("FP28", "run.sealed", FILES),
)

suite = harness.Suite("lost_cache")


def say(*words):
    print("===", *words, flush=True)


def stop_at(caisson, fault, point, program):
    if os.path.exists(MARK):
        os.unlink(MARK)
    run = supervisor.Supervisor.start(caisson, *program, *([fault] if program in (LOUD, FILES) else []), options=("--wall", "100s"),
                                      env={"CAISSON_FAULT": f"{point}:stop", "CAISSON_FAULT_MARK": MARK}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
    pid = harness.wait_until(lambda: [int(word) for word in proc.read(MARK).split()[:1]], 60, f"{point} is passed")[0]
    harness.wait_until(lambda: proc.Process(pid).state == "T", 60, f"{point} stops")
    if point == "run.sealed":
        say("ack", caisson.rows("SELECT run_id FROM run ORDER BY rowid DESC LIMIT 1")[0]["run_id"])
    say("at", fault)
    run.signal("group", signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    run.reap()
    supervisor.reap_orphans()


def before():
    os.mkdir(LEDGER, 0o700)
    caisson = Caisson(FAULT_BIN, ledger=LEDGER)
    for fault, point, program in STOPS:
        receipt = caisson.run(*FILES, fault + point).receipt
        say("ack", receipt["run"])
        stop_at(caisson, fault, point, program)
    with Server(caisson, workers=1) as server:
        server.submit("true", key="before")
        run = server.submit("sleep", "1000", key="kept", limits={"wall_ms": 1000000})
        say("ack", run)
        say("at", "submitted")
    return 0


def check(moment, device):
    subprocess.run(["mount", "-t", "ext4", device, PLACE], check=True)
    try:
        judge(Caisson(ledger=PLACE + LEDGER), moment)
    finally:
        subprocess.run(["umount", PLACE], check=True)


def judge(caisson, moment):
    for _ in range(2):
        recovered = caisson.recover()
        equal(recovered.status, 0, str(recovered))
    equal(caisson.rows("PRAGMA integrity_check")[0]["integrity_check"], "ok")
    equal([row["state"] for row in caisson.attempts() if row["state"] not in ("sealed", "abandoned")], [])
    holds(moment["acked"], "answers were given before")
    for run in moment["acked"]:
        shown = caisson.show(run)
        holds(shown, f"{run}, whose answer was given, is gone")
        is_in(shown.get("verdict") or shown.get("state"), {"succeeded", "queued", "interrupted"} if run == moment["acked"][-1] else {"succeeded"})
        for artifact in shown.get("artifacts", []):
            equal(len(caisson.call("cat", run, artifact["path"]).stdout), artifact["size_bytes"], f"{artifact['path']} of {run}")
    for verb in (("verify", "--all"), ("fsck",), ("gc", "--older", "0s"), ("fsck",)):
        done = caisson.call(*verb)
        equal(done.status, 0, str(done))
    equal(caisson.run("true").word(), "OK")


def add_cases():
    for number, moment in enumerate(json.loads(proc.read("/dev/vdb"))):
        suite.add(f"{moment['name']}: {moment['lost']} writes are lost; every answer that was given holds, and all of it is sound",
                  lambda moment=moment, device=f"/dev/vd{chr(ord('c') + number)}": check(moment, device))
    return suite.main()


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(before() if sys.argv[1:] == ["before"] else add_cases())
