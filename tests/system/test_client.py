#!/usr/bin/python3
"""test_client.py - submit, wait, cancel, logs -f, events, ps, workers and batch, through a keeper that serves, dies, and is a child.

What a keeper cannot be made to do on demand (a lost reply, one that is cut off) is in test_client_faults.py and test_batch_faults.py.
"""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, scratch, supervisor  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.server import Server  # noqa: E402

suite = harness.Suite("client")

KEEPER_KILLS = harness.env_int("CAISSON_TEST_KEEPER_KILLS", 3)


class Client:
    """A ledger, a keeper that serves it, and calls to it."""

    def __init__(self, **keywords):
        self.caisson = Caisson()
        self.server = Server(self.caisson, **keywords)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def command(self, verb, *words):
        return self.caisson.command(verb, "--socket", self.server.socket, *words)

    def call(self, verb, *words, **keywords):
        done = self.caisson.call(verb, "--socket", self.server.socket, *words, **keywords)
        return done.status, done.stdout.decode(), done.stderr.decode()

    def start(self, verb, *words, **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL)
        # Unbuffered: what follows a line that was read must be there for communicate().
        return subprocess.Popen(self.command(verb, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **keywords)

    def submit(self, *words):
        status, out, err = self.call("submit", *words)
        equal((status, err), (0, ""))
        return out.strip()

    def wait_state(self, run, state):
        harness.wait_until(lambda: self.server.run_state(run)["state"] == state, 20, f"{run} is {state}")


def line(*argv, **fields):
    return json.dumps({"version": "caisson.manifest/v1", "command": {"argv": list(argv)}, **fields})


def verified(caisson):
    """The ledger holds, offline, and nothing of its boundaries is left."""
    done = caisson.verify()
    equal(done.status, 0, str(done))
    supervisor.wait_dead(caisson.boundary_ids(), 10)


# ------------------------------------------------------------------ one run

@suite.case("submit --wait exits as caisson run does, for each verdict")
def _():
    cases = ((("true",), 0), (("sh", "-c", "exit 7"), 7), (("/nowhere",), 127), (("/etc/passwd",), 126), (("sh", "-c", "kill -9 $$"), 137),
             (("sh", "-c", "kill -TERM $$"), 143))
    with Client() as client:
        for argv, expected in cases:
            status, _out, err = client.call("submit", "--wait", "--", *argv)
            equal((status, bool(err)), (expected, expected != 0), f"{argv}: {err}")
            local = client.caisson.run_plain(*argv)
            equal((status, err.rsplit(" (", 1)[0]), (local.status, local.stderr.decode().rsplit(" (", 1)[0]), "as caisson run")
        equal(client.call("submit", "--wait", "--wall", "500ms", "--quiet", "--", "sleep", "60")[0], 124)
        status, out, err = client.call("submit", "--wait", "--json", "--", "sh", "-c", "exit 3")
        equal((status, json.loads(out)["exit_code"]), (3, 3))
        verified(client.caisson)


@suite.case("inputs and standard input reach the program as they are")
def _():
    data = os.urandom(300000)
    source = scratch.file("blob", data)
    with Client() as client:
        status, out, err = client.call("submit", "--wait", "--input", source + ":/box/blob", "--stdin", "-", "--", "sh", "-c",
                                       "cat blob && cat", data=data[::-1])
        equal((status, err), (0, ""))
        done = client.caisson.call("logs", "--stdout", out.strip())
        holds(done.stdout == data + data[::-1], f"{len(done.stdout)} bytes")


@suite.case("a directory is the same input to a keeper as to caisson run, and is sent once")
def _():
    directory = scratch.directory("package")
    os.makedirs(os.path.join(directory, "many"))
    for number in range(1100):  # more than the keeper asks for at a time
        with open(os.path.join(directory, "many", f"{number:04}"), "w", encoding="ascii") as file:
            file.write(f"{number}\n" if number % 3 else "the same\n")
    with open(os.path.join(directory.encode(), b"run \xff"), "wb") as file:
        file.write(b"#!/bin/sh\ncat many/* | sha256sum; readlink link; ls -l link/.. | wc -l\n")
    os.chmod(os.path.join(directory.encode(), b"run \xff"), 0o755)
    os.symlink("many", os.path.join(directory, "link"))
    options = ("--input", directory + ":/box/d", "--cwd", "/box/d")
    words = (*options, "--", "sh", "-c", "sh ./run*")
    with Client() as client:
        local = client.caisson.run_plain("sh", "-c", "sh ./run*", options=options)
        equal((local.status, local.stdout.splitlines()[1:2]), (0, [b"many"]), str(local))
        shutil.rmtree(os.path.join(client.caisson.ledger, "store", "trees"))
        for _ in range(2):
            status, out, err = client.call("submit", "--wait", *words)
            equal((status, err), (0, ""))
            equal(client.caisson.logs(out.strip()), local.stdout)
        plans = [json.loads(row["plan"]) for row in client.caisson.rows("SELECT CAST(plan AS TEXT) AS plan FROM run")]
        equal((len(plans), len({json.dumps(plan["units"][0]["inputs"]) for plan in plans})), (3, 1), "one digest, whoever sealed it")
        row = json.dumps({"version": "caisson.manifest/v1", "command": {"argv": ["sh", "-c", "sh ./run*"], "cwd": "/box/d"},
                          "inputs": [{"source": directory, "target": "/box/d"}]})
        status, out, err = client.call("batch", "-", data=(row + "\n" + row + "\n").encode())
        results = [json.loads(result) for result in out.splitlines()]
        equal((status, [client.caisson.logs(result["run"]) for result in results]), (0, [local.stdout] * 2), err)
        equal(client.caisson.call("fsck").status, 0)
        equal(client.caisson.call("gc").status, 0)
        equal(client.call("submit", "--wait", *words)[0], 0)
        verified(client.caisson)


@suite.case("logs -f shows what is written as it is written, and every byte of it")
def _():
    script = "i=0; while [ $i -lt 40 ]; do echo line $i; echo error $i >&2; i=$((i+1)); sleep 0.02; done; head -c 200000 /dev/zero"
    with Client() as client:
        run = client.submit("--", "sh", "-c", script)
        follower = client.start("logs", "-f", run)
        first = follower.stdout.readline()
        equal(client.server.run_state(run)["receipt"], None, "it is still going on")
        out, err = follower.communicate(timeout=60)
        equal(follower.returncode, 0)
        lines = "".join(f"line {n}\n" for n in range(40)).encode()
        holds(first + out == lines + b"\0" * 200000, (first + out)[:200])
        equal(err, lines.replace(b"line", b"error"))
        equal(client.call("logs", "-f", "--stderr", run)[1].encode(), err, "the same of a run that is over")


@suite.case("events -f tells each record once, to the seal; without -f what there is")
def _():
    with Client() as client:
        run = client.submit("--", "sleep", "1")
        follower = client.start("events", "-f", "--json", run)
        client.wait_state(run, "running")
        status, out, _err = client.call("events", run)
        holds(status == 0 and " launched " in out and " sealed " not in out, out)
        out, err = follower.communicate(timeout=60)
        events = [json.loads(row) for row in out.splitlines()]
        equal((follower.returncode, err, events[-1]["event"]), (0, b"", "sealed"))
        equal([event["id"] for event in events], [f"1-{number}" for number in range(1, len(events) + 1)])


@suite.case("cancel, ps and workers: what runs is shown, and ends")
def _():
    with Client(workers=1) as client:
        first, second = client.submit("--", "sleep", "60"), client.submit("--", "sleep", "60")
        client.wait_state(first, "running")
        listed = json.loads(client.call("ps", "--json")[1])
        equal([run["run"] for run in listed], [second, first])
        workers = json.loads(client.call("workers", "--json")[1])
        equal([(worker["state"], worker["run"]) for worker in workers], [("busy", first)])
        for run in (first, second):
            equal(client.call("cancel", run), (0, f"{run} is being cancelled\n", ""))
            status, _out, err = client.call("wait", run)
            holds(status == 125 and err.startswith("caisson: cancelled: "), err)
        status, out, _err = client.call("cancel", first)
        holds(status == 1 and "changes nothing" in out, out)
        equal(client.call("ps"), (0, "", ""))
        verified(client.caisson)


@suite.case("a run is named by the beginning of its id, too, where it is the only one")
def _():
    with Client(workers=1) as client:
        run = client.submit("--", "sleep", "60")
        client.wait_state(run, "running")
        equal(client.call("cancel", run[:14]), (0, f"{run} is being cancelled\n", ""))
        equal(client.call("wait", run[:14])[0], 125)
        other = run[:12] + ("aa" if run[12:14] != "aa" else "bb")
        equal(client.call("wait", other), (125, "", f"caisson: wait: there is no run {other}\n"))


@suite.case("a keeper killed with -9 and started again: who waits, follows or listens hears the end")
def _():
    with Client() as client:
        run = client.submit("--wall", "60s", "--", "sh", "-c", "echo begun; sleep 50")
        client.wait_state(run, "running")
        waiting = [client.start("wait", "--json", run), client.start("logs", "-f", run), client.start("events", "-f", "--json", run)]
        equal(waiting[1].stdout.readline(), b"begun\n")
        equal(json.loads(waiting[2].stdout.readline())["event"], "accepted")
        client.server.stop(signal.SIGKILL)
        client.server.start()
        results = [process.communicate(timeout=60) for process in waiting]
        equal([process.returncode for process in waiting], [125, 0, 0], str(results))
        equal(json.loads(results[0][0])["verdict"], "interrupted")
        equal(json.loads(results[2][0].splitlines()[-1])["event"], "sealed")
        verified(client.caisson)


# ------------------------------------------------------------------ batches

def mixed(count):
    """Lines, and the verdict that each must have."""
    kinds = [(("true",), {}, "succeeded"), (("sh", "-c", "exit 3"), {}, "failed"), (("sh", "-c", "kill -SEGV $$"), {}, "signaled"),
             (("sleep", "60"), {"limits": {"wall_ms": 100}}, "timed_out"), (("sh", "-c", "echo $0", "x"), {}, "succeeded"),
             (("head", "-c", "9000", "/dev/zero"), {"limits": {"stdout_bytes": 1000}}, "limit_exceeded")]
    chosen = [kinds[n % len(kinds)] for n in range(count)]
    return [line(*argv, labels={"n": str(n)}, **fields) for n, (argv, fields, _) in enumerate(chosen, 1)], [verdict for _, _, verdict in chosen]


@suite.case("a batch: a receipt for each line, in their order, and each is in the ledger once")
def _():
    lines, verdicts = mixed(60)
    with Client() as client:
        status, out, err = client.call("batch", "-", data="\n".join(lines).encode())
        results = [json.loads(row) for row in out.splitlines()]
        equal((status, err), (0, ""))
        equal([result["receipt"]["verdict"] for result in results], verdicts)
        equal(client.caisson.show(results[5]["run"]), results[5]["receipt"])
        equal(len(client.caisson.rows("SELECT run_id FROM run")), 60)
        equal(client.call("batch", "--in-flight", "2", "--unordered", "-", data=(line("true") + "\n").encode())[0], 0)
        verified(client.caisson)


@suite.case("a file that many lines of a batch name is there for each of them, also after gc")
def _():
    source = scratch.file("data", b"some data\n")
    row = line("cat", "x", inputs=[{"source": source, "target": "/box/x"}])
    harness.wait_until(lambda: time.time() - os.stat(source).st_ctime > 2.1, 10, "the file is settled", interval=0.1)
    with Client() as client:
        process = client.start("batch", "--in-flight", "1", "-", stdin=subprocess.PIPE)
        for swept in (False, False, True, False):
            if swept:
                equal(client.caisson.call("gc").status, 0)
            process.stdin.write(row.encode() + b"\n")
            result = json.loads(process.stdout.readline())
            equal((result["receipt"]["verdict"], client.caisson.logs(result["run"])), ("succeeded", b"some data\n"), str(result))
        process.communicate(timeout=20)
        equal(process.returncode, 0)


@suite.case("the same batch again, under the same key, is the same runs")
def _():
    text = "\n".join([line("true"), line("sh", "-c", "exit 3")]).encode()
    with Client() as client:
        first = client.call("batch", "--key", "nightly", "-", data=text)
        equal(client.call("batch", "--key", "nightly", "-", data=text), first)
        status, out, _err = client.call("batch", "--key", "nightly", "-", data=line("false").encode())
        equal((status, json.loads(out)["error"]["code"]), (1, "conflict"))
        equal(len(client.caisson.rows("SELECT run_id FROM run")), 2)


@suite.case("a batch while the keeper is killed with -9, again and again: one receipt for each line", timeout=170)
def _():
    count = 40 * (KEEPER_KILLS + 1)
    with Client() as client:
        process = client.start("batch", "-", stdin=subprocess.PIPE)
        rows = []
        reader = threading.Thread(target=lambda: rows.extend(io.BufferedReader(process.stdout)))
        feeder = threading.Thread(target=lambda: (process.stdin.write(("\n".join(mixed(count)[0])).encode()), process.stdin.close()))
        reader.start()
        feeder.start()
        for number in range(1, KEEPER_KILLS + 1):
            harness.wait_until(lambda: len(rows) >= 30 * number, 120, "it goes on")  # pylint: disable=cell-var-from-loop
            client.server.stop(signal.SIGKILL)
            client.server.start()
        feeder.join()
        reader.join()
        results = [json.loads(row) for row in rows]
        equal((process.wait(60), process.stderr.read()), (0, b""))
        equal([result["line"] for result in results], list(range(1, count + 1)))
        expected = mixed(count)[1]
        wrong = [(result["line"], result["receipt"]["verdict"]) for result, verdict in zip(results, expected)
                 if result["receipt"]["verdict"] not in (verdict, "interrupted")]
        equal(wrong, [])
        equal(len(client.caisson.rows("SELECT run_id FROM run")), count, "one run for each line")
        holds(sum(result["receipt"]["verdict"] == "interrupted" for result in results) <= 4 * KEEPER_KILLS, "only what ran was interrupted")
        verified(client.caisson)


# ------------------------------------------------------------------ a keeper of its own

def keepers(caisson):
    """Processes that serve this ledger: the keeper, its nursery, its workers."""
    return [pid for pid in proc.pids() if b"\0serve\0--ledger\0" + caisson.ledger.encode() + b"\0" in _argv(pid)]


def _argv(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def nothing_left(caisson):
    equal(keepers(caisson), [])
    equal([name for name in os.listdir(caisson.ledger) if name.endswith(".sock")], [])
    verified(caisson)


@suite.case("without a keeper a batch is one itself, and leaves nothing but the ledger")
def _():
    lines, verdicts = mixed(12)
    caisson = Caisson()
    done = caisson.call("batch", scratch.file("jobs.jsonl", "\n".join(lines)))
    equal((done.status, done.stderr), (0, b""))
    equal([json.loads(row)["receipt"]["verdict"] for row in done.stdout.splitlines()], verdicts)
    nothing_left(caisson)


@suite.case("its own keeper is killed with -9: it starts another one, and every line has its receipt")
def _():
    caisson = Caisson()
    path = scratch.file("jobs.jsonl", "\n".join(mixed(60)[0]))
    process = subprocess.Popen(caisson.command("batch", "--unordered", path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    rows = [process.stdout.readline()]
    (keeper,) = proc.children(process.pid)
    os.kill(keeper, signal.SIGKILL)
    rows.extend(process.stdout)
    equal((process.wait(60), process.stderr.read()), (0, b""))
    equal(sorted(json.loads(row)["line"] for row in rows), list(range(1, 61)))
    holds(all("receipt" in json.loads(row) for row in rows), "each has a receipt")
    process.stdout.close()
    process.stderr.close()
    nothing_left(caisson)


@suite.case("INT to a batch with a keeper of its own cancels what runs, and everything ends")
def _():
    caisson = Caisson()
    path = scratch.file("jobs.jsonl", "\n".join([line("sleep", "50", limits={"wall_ms": 60000})] * 20))
    process = subprocess.Popen(caisson.command("batch", "--in-flight", "6", path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    harness.wait_until(lambda: [row for row in caisson.attempts() if row["state"] == "running"], 30, "something runs")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, _err = process.communicate(timeout=60)
    results = [json.loads(row) for row in out.splitlines()]
    equal((process.returncode, len(results)), (130, 6))
    equal({result["receipt"]["verdict"] for result in results if "receipt" in result}, {"cancelled"})
    nothing_left(caisson)


def _insist(pid):
    """Two TERMs that come at once are one."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


@suite.case("a batch killed with -9 takes its keeper with it")
def _():
    caisson = Caisson()
    path = scratch.file("jobs.jsonl", line("sleep", "50", limits={"wall_ms": 60000}))
    process = subprocess.Popen(caisson.command("batch", path), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    harness.wait_until(lambda: [row for row in caisson.attempts() if row["state"] == "running"], 30, "something runs")
    (keeper,) = proc.children(process.pid)
    process.kill()
    process.wait()
    holds(proc.Process(keeper).state not in ("Z", " "), "it drains: what runs may end, unless somebody insists")
    harness.wait_until(lambda: _insist(keeper) or not keepers(caisson), 25, "the keeper ends", interval=0.2)
    verified(caisson)


@suite.case("a keeper of its own that cannot start: its last words, and an error for each line that was begun")
def _():
    caisson = Caisson(ledger=scratch.file("not-a-directory", b""))
    done = caisson.call("batch", "-", data=(line("true") + "\n").encode())
    equal(done.status, 125)
    holds(b"the keeper that was started" in done.stderr and b"ended with status 125: caisson: serve: " in done.stderr, done.stderr)
    result = json.loads(done.stdout)
    equal((result["line"], result["error"]["code"]), (1, "lost"))


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
