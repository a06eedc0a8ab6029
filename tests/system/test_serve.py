#!/usr/bin/python3
"""test_serve.py - the keeper of many runs: its queue, its workers, its end, and what it does when any of them dies."""

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, scratch  # noqa: E402
from support.caisson import FAULT_BIN, Caisson, sanitized, verdict_word  # noqa: E402
from support.harness import equal, holds, is_in, wait_until  # noqa: E402
from support.invariants import Watch  # noqa: E402
from support.server import Server  # noqa: E402

suite = harness.Suite("serve")


def nothing_is_left(caisson, watch):
    proc.reap_orphans()  # what was dying when the keeper ended came to us
    watch.hold()
    done = caisson.verify()
    equal(done.status, 0, f"verify --all: {done}")


def workers_of(server):
    """Pids of the worker processes."""
    return [pid for pid in proc.descendants(server.popen.pid) if proc.Process(pid).name == "caisson-worker"]


def wait_running(server, run):
    wait_until(lambda: server.run_state(run)["state"] == "running", 20, f"run {run} is running")


def settled(figure):
    """A figure when it has stayed the same for some looks: connections close, workers come."""
    looks = []
    wait_until(lambda: looks.append(figure()) or len(looks) > 40 and len(set(looks[-40:])) == 1, 20, "the figure stays the same")
    return looks[-1]


@suite.case("runs are queued, driven at once, and sealed with the verdicts of `caisson run`")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson) as server:
        programs = [("true",), ("sh", "-c", "exit 7"), ("sh", "-c", "kill -9 $$"), ("sleep", "60")]
        words = ["OK", "NZ(7)", "SIG(9)", "TLE_WALL"]
        runs = [server.submit(*argv, limits={"wall_ms": 500}) for argv in programs]
        for run, word in zip(runs, words):
            equal(verdict_word(server.wait(run), 0), word, run)
    equal(server.popen.returncode, 0)
    nothing_is_left(caisson, watch)


@suite.case("a hundred runs, two workers: each exactly one receipt, nothing left, and the keeper's descriptors are back")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson) as server:
        for run in [server.submit("sleep", "0.2") for _ in range(10)]:  # so that each worker has had one
            server.wait(run)
        fds = settled(lambda: len(os.listdir(f"/proc/{server.popen.pid}/fd")))
        runs = [server.submit("sh", "-c", f"exit {number % 5}") for number in range(100)]
        for number, run in enumerate(runs):
            equal(server.wait(run)["exit_code"], number % 5, run)
        wait_until(lambda: len(os.listdir(f"/proc/{server.popen.pid}/fd")) <= fds, 10, "the keeper's descriptors are back")
    equal(len(caisson.rows("SELECT * FROM seal")), 110)
    equal(len(caisson.attempts()), 110)
    nothing_is_left(caisson, watch)


@suite.case("the same idempotency key gives the same run; another manifest under it is a conflict")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        first = server.submit("true", key="k1")
        equal(server.submit("true", key="k1"), first)
        answer = server.request("POST", "/v1/runs", {"version": "caisson.manifest/v1", "command": {"argv": ["false"]}},
                                {"Idempotency-Key": "k1"})
        equal(answer.status, 409, answer)
        server.wait(first)
        equal(server.submit("true", key="k1"), first, "after the seal as well")
    equal(len(caisson.attempts()), 1)


@suite.case("a cancellation ends a run that runs, one that waits, and after the seal nothing, and says so")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson, workers=1) as server:
        running = server.submit("sleep", "60", limits={"wall_ms": 60000}, cancel={"grace_ms": 100})
        wait_running(server, running)
        waiting = server.submit("sleep", "60")
        equal(server.request("POST", f"/v1/runs/{waiting}/cancel", {}).status, 202)
        equal(verdict_word(server.wait(waiting), 0), "CANCELLED", "without a worker")
        equal(server.run_state(running)["state"], "running")
        equal(server.request("POST", f"/v1/runs/{running}/cancel", {}).status, 202)
        is_in(server.request("POST", f"/v1/runs/{running}/cancel", {}).status, (202, 409)) # it may be sealed by now
        equal(verdict_word(server.wait(running), 0), "CANCELLED")
        answer = server.request("POST", f"/v1/runs/{running}/cancel", {})
        equal(answer.status, 409, answer)
    nothing_is_left(caisson, watch)


@suite.case("a service manager hears that it is ready, that it lives, and that it stops")
def _():
    path = os.path.join(scratch.directory("notify"), "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(20)
        server = Server(Caisson(), workers=1, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"})
        heard = [manager.recv(256).decode()]
        while heard.count("WATCHDOG=1") < 3:
            heard.append(manager.recv(256).decode())
        server.popen.send_signal(signal.SIGTERM)
        while not heard[-1].startswith("STOPPING=1"):
            heard.append(manager.recv(256).decode())
        equal(server.stop(), 0)
    equal(heard[0].split("\n")[0], "READY=1")
    equal(set(heard[1:-1]), {"WATCHDOG=1"})


def write_config(path, **keys):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": "caisson.config/v1", **keys}, file)


@suite.case("a configuration is read at the start and at SIGHUP; one that is wrong is named, and changes nothing")
def _():
    caisson = Caisson()
    path = scratch.file("caisson.conf", b"")
    write_config(path, worker=1)
    done = caisson.call("serve", "--config", path)
    equal(done.status, 125)
    holds(b"$.worker" in done.stderr and path.encode() in done.stderr, done)
    write_config(path, per_owner=1)
    with Server(caisson, "--config", path, workers=2) as server:
        first, second = (server.submit("sleep", "60", limits={"wall_ms": 60000}, cancel={"grace_ms": 0}) for _ in range(2))
        wait_running(server, first)
        equal(server.run_state(second)["state"], "queued", "one of this owner at a time")
        write_config(path, per_owner="many")
        server.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: server.events("reload_failed"), 10, "the wrong file is told")
        holds("$.per_owner" in server.events("reload_failed")[0]["reason"], server.events("reload_failed"))
        equal(server.run_state(second)["state"], "queued")
        write_config(path, per_owner=2, lease_ttl_ms=5000)
        server.popen.send_signal(signal.SIGHUP)
        wait_running(server, second)
        equal([event["needs_restart"] for event in server.events("reloaded")], [True])
        for run in (first, second):
            server.request("POST", f"/v1/runs/{run}/cancel", {})


@suite.case("a collector that does not read stops nothing, and is told how many lines it missed")
def _():
    caisson = Caisson()
    with Server(caisson, workers=1, collected=False) as server:
        fcntl.fcntl(server.popen.stderr, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(server.popen.stderr.fileno(), False)
        for _ in range(200):  # one at a time: signals that wait are one
            server.popen.send_signal(signal.SIGHUP)
            wait_until(lambda: "SigPnd:\t0000000000000000" in proc.read(f"/proc/{server.popen.pid}/status") and
                       "ShdPnd:\t0000000000000000" in proc.read(f"/proc/{server.popen.pid}/status"), 5, "the signal is taken")
        equal(verdict_word(server.wait(server.submit("true")), 0), "OK")
        while server.popen.stderr.read():
            pass
        server.popen.send_signal(signal.SIGTERM)
        equal(server.popen.wait(60), 0)
        first_line = json.loads(server.popen.stderr.read().splitlines()[0])
        holds(first_line.get("dropped", 0) > 0, first_line)


@suite.case("SIGTERM lets what runs end, and what waits is the next keeper's")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    server = Server(caisson, workers=1)
    running = server.submit("sh", "-c", "sleep 1; exit 3")
    wait_running(server, running)
    waiting = server.submit("true")
    equal(server.stop(), 0)
    equal(caisson.show(running)["exit_code"], 3)
    equal(caisson.show(waiting)["state"], "queued")
    with Server(caisson) as server:
        equal(verdict_word(server.wait(waiting), 0), "OK")
    nothing_is_left(caisson, watch)


@suite.case("a second SIGTERM kills what runs: interrupted, and nothing is left")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    server = Server(caisson, workers=1)
    run = server.submit("sleep", "60", limits={"wall_ms": 60000})
    wait_running(server, run)
    server.popen.send_signal(signal.SIGTERM)
    wait_until(lambda: server.events("draining"), 10, "it drains")
    equal(server.stop(), 0)
    equal(verdict_word(caisson.show(run), 0), "INTERRUPTED")
    nothing_is_left(caisson, watch)


@suite.case("a worker killed with -9 costs its run alone; its slot is recovered, verified, and takes the next one")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson, workers=1) as server:
        run = server.submit("sleep", "60", limits={"wall_ms": 60000})
        wait_running(server, run)
        for pid in workers_of(server):
            os.kill(pid, signal.SIGKILL)
        equal(verdict_word(server.wait(run), 0), "INTERRUPTED")
        equal(verdict_word(server.wait(server.submit("true")), 0), "OK")
    nothing_is_left(caisson, watch)


@suite.case("a keeper killed with -9: the guest is dead before anybody recovers, and the next keeper seals and goes on")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    server = Server(caisson, workers=1)
    running = server.submit("sleep", "60", limits={"wall_ms": 60000})
    wait_running(server, running)
    waiting = server.submit("true")
    family = [os.pidfd_open(pid) for pid in proc.descendants(server.popen.pid)]
    os.kill(server.popen.pid, signal.SIGKILL)
    server.popen.wait()
    for pidfd in family:
        holds(select.select([pidfd], [], [], 5)[0], "nursery, front, workers and guest are dead within 5 s")
        os.close(pidfd)
    proc.reap_orphans()
    with Server(caisson) as server:
        equal(verdict_word(server.wait(running), 0), "INTERRUPTED")
        equal(verdict_word(server.wait(waiting), 0), "OK")
    nothing_is_left(caisson, watch)


@suite.case("a keeper with a umask of its administrator's: what its workers make is as it always is")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson, workers=1, under=("sh", "-c", 'umask 077; exec "$@"', "sh")) as server:
        for _number in range(3):  # the first boundary, one that was opened ahead, and one more
            equal(verdict_word(server.wait(server.submit("sh", "-c", "ls -l /usr/bin/true && echo x >/box/x")), 0), "OK")
    nothing_is_left(caisson, watch)


def damage(caisson, run, table, column, value):
    """Somebody has written over what the ledger says of a run; not over its schema."""
    rows = f"run_id = '{run}'" if table == "run" else f"attempt_id = (SELECT attempt_id FROM attempt WHERE run_id = '{run}')"
    with contextlib.closing(sqlite3.connect(caisson.database(), isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?", (table,)).fetchall()
        connection.execute("PRAGMA ignore_check_constraints = 1")
        for name, _sql in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {rows}", (value,))
        for _name, sql in triggers:
            connection.execute(sql)


@suite.case("a run whose stored documents are damaged is set aside, and shown so; all the others go on")
def _():
    caisson = Caisson()
    server = Server(caisson, workers=1)
    running = server.submit("sleep", "60", limits={"wall_ms": 60000})
    wait_running(server, running)
    damaged = {server.submit("true"): column for column in ("plan", "manifest")}
    others = [server.submit("true") for _ in range(2)]
    server.popen.kill()
    server.popen.wait()
    for run, column in damaged.items():
        damage(caisson, run, "run", column, b"{{")
    with Server(caisson, workers=1) as server:
        for run in others:
            equal(verdict_word(server.wait(run), 0), "OK")
        cancelled = next(iter(damaged))
        equal(server.request("POST", f"/v1/runs/{cancelled}/cancel", {}).status, 202)
        equal(verdict_word(server.wait(server.submit("true")), 0), "OK")
        for run in damaged:
            state = server.run_state(run)
            equal((state["state"], state["reason"], state["cancelled"]), ("paused", "damaged", run == cancelled))
        listed = {row["run"]: row["state"] for row in server.request("GET", "/v1/runs").json["runs"]}
        equal(len(listed), 6)
        equal(sorted(event["run"] for event in server.events("run_unreadable")), sorted(damaged))
    proc.reap_orphans()
    equal([row["run"] for row in caisson.list() if row["state"] != "sealed"], list(damaged)[::-1])


@suite.case("an attempt whose rows are damaged is told, and all the others are recovered and go on")
def _():
    caisson = Caisson()
    places = [("attempt", "profile", "x{"), ("lease", "ttl_ms", -7), ("record", "body", "x{"), ("lease", "owner_id", "x{")]
    server = Server(caisson, workers=len(places) + 1)
    runs = [server.submit("sleep", "60", limits={"wall_ms": 60000}) for _ in range(len(places) + 1)]
    for run in runs:
        wait_running(server, run)
    server.popen.kill()
    server.popen.wait()
    for run, place in zip(runs, places):
        damage(caisson, run, *place)
    with Server(caisson, workers=1) as server:
        equal(verdict_word(server.wait(server.submit("true")), 0), "OK")
        for run in runs[-2:]:  # of an owner that has no name nobody can be alive
            equal(verdict_word(server.wait(run), 0), "INTERRUPTED")
        told = {event.get("run") for event in server.events("recovery")}
        equal(set(runs) - told, set(), f"told in the log: {server.log}")
        equal(server.request("GET", "/v1/runs").status, 200)
    proc.reap_orphans()
    done = caisson.call("recover")
    equal((done.status, [run for run in runs[:-2] if run.encode() not in done.stdout + done.stderr]), (1, []), str(done))
    equal(sorted(row["run"] for row in caisson.list() if row["state"] != "sealed"), sorted(runs[:-2]))


@suite.case("two keepers on one ledger share its queue, and no run is driven twice")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    with Server(caisson) as one, Server(caisson) as other:
        runs = [(one if number % 2 else other).submit("sh", "-c", f"exit {number % 3}") for number in range(60)]
        for number, run in enumerate(runs):
            equal((other if number % 2 else one).wait(run)["exit_code"], number % 3)
    equal(len(caisson.rows("SELECT * FROM launch_intent")), 60)
    equal(len(caisson.attempts()), 60)
    nothing_is_left(caisson, watch)


@suite.case("a thousand runs that wait cost the keeper little memory, and one more than may wait is refused")
def _():
    caisson = Caisson()
    with Server(caisson, "--queue", "1000", workers=1) as server:
        blocking = server.submit("sleep", "60", limits={"wall_ms": 60000}, cancel={"grace_ms": 0})
        wait_running(server, blocking)
        for _ in range(1000):
            server.submit("true")
        refused = server.request("POST", "/v1/runs", {"version": "caisson.manifest/v1", "command": {"argv": ["true"]}})
        is_in(refused.status, (429, 503), refused)
        equal(refused.json["error"]["code"], "queue_full")
        kib = int(proc.read(f"/proc/{server.popen.pid}/status").split("VmRSS:")[1].split()[0])
        holds(kib < 64 * 1024 or sanitized(), f"{kib} KiB resident with 1,000 runs waiting")
        print(f"# {kib} KiB resident with 1,000 runs waiting")
        server.request("POST", f"/v1/runs/{blocking}/cancel", {})
        equal(verdict_word(server.wait(blocking), 0), "CANCELLED")


TRACED = ["strace", "-f", "-y", "-qq", "-s", "5000", "-e", "trace=fdatasync,pwrite64,sendmsg", "-e", "signal=none"]


def first(lines, start, condition, what):
    found = next((at for at in range(start, len(lines)) if condition(lines[at])), None)
    holds(found is not None, what)
    return found


@suite.case("runs that share a commit: each one's gate is opened behind its own durable intent, by the order of system calls")
def _():
    if not shutil.which("strace"):
        raise harness.Skip("strace is not installed")
    caisson, log = Caisson(), scratch.file("calls", b"")
    with Server(caisson, workers=3, under=[*TRACED, "-o", log]) as server:
        for run in [server.submit("true") for _ in range(12)]:
            equal(server.wait(run)["verdict"], "succeeded")
        server.signal_keeper(signal.SIGTERM)
        server.popen.wait(60)
    lines = [line.split(None, 1) for line in proc.read(log).splitlines()]
    commits = sum(1 for _, call in lines if "sync" in call and call.endswith("= 0"))
    for boundary in caisson.boundary_ids():
        intent = first(lines, 0, lambda line: "-wal>" in line[1] and re.search(rf"launch_intent.{{0,60}}{boundary}", line[1]),
                       f"the intent of {boundary} is written")
        writer = lines[intent][0]
        synced = first(lines, intent, lambda line: line[0] == writer and "fdatasync" in line[1] and line[1].endswith("= 0"), "and synced")
        prepare = first(lines, 0, lambda line: line[1].startswith("sendmsg(") and boundary in line[1], f"{boundary} is prepared")
        driver = lines[prepare][0]
        launch = first(lines, prepare, lambda line: line[0] == driver and line[1].startswith("sendmsg(") and '\\"launch\\"' in line[1],
                       f"{boundary} is launched")
        holds(intent < synced < launch, f"{boundary}: intent at {intent}, synced at {synced}, launched at {launch}")
    print(f"# 12 runs, {commits} durable commits")


@suite.case("a boundary that cannot be emptied: provisional result, quarantine; the others go on; recovered, it is back")
def _():
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    with Server(caisson, workers=1, env={"CAISSON_FAULT": "run.cleaning@1:eio"}) as server:
        run = server.submit("true")
        wait_until(lambda: server.worker_states()[0]["state"] == "quarantined", 20, "the slot is quarantined")
        shown = server.run_state(run)
        equal(shown["state"], "quarantined")
        equal(shown.get("receipt"), None)
        waiting = server.submit("true")
        wait_until(lambda: server.run_state(waiting)["state"] == "paused", 10, "with no worker left it is paused")
        equal(server.run_state(waiting)["reason"], "no_safe_worker")
        equal(server.request("GET", "/v1/readiness").status, 503)
        done = caisson.call("recover", "0", "--socket", server.socket)
        equal(done.status, 0, done)
        equal(verdict_word(server.wait(run), 0), "SBX_ERR")
        equal(verdict_word(server.wait(waiting), 0), "OK")
        equal(server.request("GET", "/v1/readiness").status, 200)
    nothing_is_left(caisson, watch)


@suite.case("with one of two workers in quarantine the other has all the runs, and the slot stays shut until it is recovered")
def _():
    caisson = Caisson(FAULT_BIN)
    watch = Watch(caisson)
    with Server(caisson, workers=2, env={"CAISSON_FAULT": "run.cleaning@1:eio"}) as server:
        lost = server.submit("true")

        def shut():
            return [worker["slot"] for worker in server.worker_states() if worker["state"] == "quarantined"]
        wait_until(shut, 20, "a slot is quarantined")
        slot, = shut()
        for run in [server.submit("true") for _ in range(6)]:
            equal(verdict_word(server.wait(run), 0), "OK")
        equal(shut(), [slot])
        equal(server.request("GET", "/v1/readiness").status, 200)
        holds(server.run_state(lost).get("provisional_result"), "what the run came to is shown before it is sealed")
        done = caisson.call("recover", str(slot), "--socket", server.socket)
        equal(done.status, 0, done)
        equal(verdict_word(server.wait(lost), 0), "SBX_ERR")
        wait_until(lambda: all(worker["state"] == "available" for worker in server.worker_states()), 20, "both are available")
    nothing_is_left(caisson, watch)


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
