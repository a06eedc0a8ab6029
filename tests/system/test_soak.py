#!/usr/bin/python3
"""test_soak.py - a batch, 5 % of it hostile, while keeper or a worker is killed with -9 every few moments: each run is sealed exactly once.

CAISSON_TEST_SOAK_RUNS=300: how many; `make soak` does 10,000. CAISSON_TEST_SOAK_PERIOD_MS=1500: from one kill to the next.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, scratch  # noqa: E402
from support.caisson import Caisson, sanitized, verdict_word  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.invariants import Watch  # noqa: E402
from support.server import Server  # noqa: E402

suite = harness.Suite("soak")

RUNS = harness.env_int("CAISSON_TEST_SOAK_RUNS", 300)
PERIOD_S = harness.env_int("CAISSON_TEST_SOAK_PERIOD_MS", 1500) / 1000
WORKERS = 4
KEEPER_SHARE = 0.3   # of the kills
RSS_GROWTH_KIB = 16 * 1024
FDS_GROWTH = 8

# What may become of a run whose keeper or worker was killed: behind main's end it depends on what was heard of it. No more of them than kills.
UNDER_A_KILL = {"interrupted", "boundary_error", "not_launched"}

# Program and verdicts that are right for it, unless its keeper or worker was killed while it ran.
BENIGN = [(["true"], ["OK"]), (["sh", "-c", "exit 3"], ["NZ(3)"]), (["sh", "-c", "echo out; echo err >&2"], ["OK"])]
HOSTILE = [
    (["sh", "-c", "kill -9 $$"], ["SIG(9)"]),
    (["sh", "-c", "while :; do :; done"], ["TLE_WALL", "TLE_CPU"]),
    (["sh", "-c", ":(){ :|:& };:"], ["NZ(2)", "OK", "TLE_WALL", "TLE_CPU", "RETAINED", "NZ(254)", "SIG(9)"]),
    (["python3", "-c", "x = bytearray(400 << 20)"], ["MLE"]),
    (["sh", "-c", "yes | head -c 4000000"], ["OLE"]),
    (["sh", "-c", "setsid sleep 1000 & exit 0"], ["RETAINED"]),
]


def programs(count, seed):
    """The same list for the same seed: a failure can be run again."""
    choice = random.Random(seed)
    return [choice.choice(HOSTILE if choice.random() < 0.05 else BENIGN) for _ in range(count)]


def write_batch(chosen):
    lines = (json.dumps({"version": "caisson.manifest/v1", "command": {"argv": argv}, "limits": {"wall_ms": 2000, "pids": 32}})
             for argv, _ in chosen)
    return scratch.file("batch.jsonl", ("\n".join(lines) + "\n").encode())


class Killer(threading.Thread):
    """Kills the keeper, and starts the next, or a worker of it, until it is told to stop."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.server, self.choice, self.over = server, random.Random(seed), threading.Event()
        self.kills = {"keeper": 0, "worker": 0}
        self.trouble = None

    def run(self):
        try:
            while not self.over.wait(PERIOD_S):
                self.kill_one()
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error

    def kill_one(self):
        if self.choice.random() < KEEPER_SHARE:
            self.server.stop(signal.SIGKILL)
            self.server.start()
            self.kills["keeper"] += 1
            return
        # Not by name alone: until it has executed its program, a newborn guest init is called as its worker is.
        nurseries = [pid for pid in proc.children(self.server.popen.pid) if proc.Process(pid).name == "caisson-nursery"]
        workers = [pid for nursery in nurseries for pid in proc.children(nursery) if proc.Process(pid).name == "caisson-worker"]
        if workers:
            try:
                os.kill(self.choice.choice(workers), signal.SIGKILL)
                self.kills["worker"] += 1
            except ProcessLookupError:
                pass  # it had ended by itself

    def stop(self):
        self.over.set()
        self.join()
        if self.trouble:
            raise self.trouble


def figures(pid):
    status = dict(line.split(":", 1) for line in proc.read(f"/proc/{pid}/status").splitlines() if ":" in line)
    return int(status["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd"))


def check_results(lines, chosen):
    """One result a line, and the right verdict but where a process of ours was killed under the run."""
    wrong, interrupted = [], 0
    for line, (argv, allowed) in zip(lines, chosen):
        receipt = line.get("receipt")
        word = verdict_word(receipt, 0) if receipt else f"no receipt: {line}"
        if receipt and receipt["verdict"] in UNDER_A_KILL:
            interrupted += 1
        elif word not in allowed:
            wrong.append(f"line {line['line']}: {argv}: {word} ({receipt and receipt['detail']})")
    equal(wrong, [], "wrong verdicts")
    return interrupted


@suite.case(f"{RUNS} runs, 5 % hostile, and a kill every {PERIOD_S} s: each one receipt, nothing left, the keeper as small as before",
            timeout=300 + RUNS)
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    seed = harness.env_int("CAISSON_TEST_SOAK_SEED", int(time.time()))
    chosen = programs(RUNS, seed)
    with Server(caisson, workers=WORKERS) as server:
        killer = Killer(server, seed)
        killer.start()
        argv = caisson.command("batch", "--socket", server.socket, "--in-flight", "64", "--patience", "5m", write_batch(chosen))
        done = subprocess.run(argv, env=caisson.environment(), capture_output=True, check=False, timeout=280 + RUNS)
        killer.stop()
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        equal(len(lines), RUNS, f"seed {seed}: one result for each line; {done.stderr[-500:]!r}")
        interrupted = check_results(lines, chosen)
        met = killer.kills["worker"] + WORKERS * killer.kills["keeper"]
        holds(interrupted <= met, f"{interrupted} runs are as if killed under, at most {met} were")
        equal(len({line["run"] for line in lines}), RUNS, "no run twice")

        server.wait(server.submit("true"))
        before = figures(server.popen.pid)
        for run in [server.submit("true") for _ in range(50)]:
            server.wait(run)
        after = figures(server.popen.pid)
        small = after[0] <= before[0] + RSS_GROWTH_KIB or sanitized()  # which keeps what was freed
        holds(small and after[1] <= before[1] + FDS_GROWTH, f"RSS and descriptors {before} -> {after}")
        equal(server.stop(), 0)
    proc.reap_orphans()
    equal(caisson.rows("SELECT count(*) AS n FROM seal")[0]["n"], RUNS + 51)
    equal(caisson.rows("SELECT count(*) AS n FROM queue")[0]["n"], 0)
    equal(caisson.rows("SELECT count(*) AS n FROM attempt WHERE state NOT IN ('sealed', 'abandoned')")[0]["n"], 0)
    watch.hold()
    verified = caisson.verify()
    equal(verified.status, 0, f"{verified}")
    equal(caisson.call("fsck").status, 0)
    print(f"# seed {seed}: {killer.kills['keeper']} keepers and {killer.kills['worker']} workers killed, {interrupted} runs interrupted by it, "
          f"keeper {after[0]} KiB and {after[1]} descriptors")


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
