#!/usr/bin/python3
"""test_api.py - the HTTP API of `caisson serve`, whole: runs through it, and the faults of faults.md that a client can cause."""

import contextlib
import hashlib
import json
import os
import re
import resource
import selectors
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, scratch  # noqa: E402
from support.caisson import Caisson, sanitized  # noqa: E402
from support.front import raise_file_limit  # noqa: E402
from support.harness import equal, holds, is_in, patience, wait_until  # noqa: E402
from support.server import Server  # noqa: E402

suite = harness.Suite("api")

EVENT_CLIENTS = 1000
POLLERS = 100
HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def dial(server):
    client = socket.socket(socket.AF_UNIX)
    client.connect(server.socket)  # without a timeout it waits when the backlog is full
    client.settimeout(patience(60))
    return client


def start_request(server, path, *headers):
    client = dial(server)
    client.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"".join(headers) + b"\r\n")
    return client


def read_all(client):
    data = b""
    while True:
        piece = client.recv(65536)
        if not piece:
            return data
        data += piece


def dechunk(data):
    """Head, and the body put together from its chunks."""
    head, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        body, rest = body + rest[:count], rest[count + 2:]
        if count == 0:
            break
    return head.decode(), body


def events_of(body):
    """(id, name, data) of each event of a stream."""
    found = re.findall(rb"id: (\S+)\nevent: (\S+)\ndata: (.*)\n\n", body)
    return [(identity.decode(), name.decode(), json.loads(data)) for identity, name, data in found]


def raw(server, data):
    """Sends bytes and gives the answer's status, 0 for none."""
    with dial(server) as client:
        with contextlib.suppress(BrokenPipeError):
            client.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            answer = read_all(client)
            found = re.match(rb"HTTP/1\.1 (\d+)", answer)
            return int(found.group(1)) if found else 0
    return 0


def post_raw(body):
    return (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)) + body


@suite.case("a run goes through the API from its manifest to its bytes")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        equal(server.request("GET", "/v1/health").status, 200)
        wait_until(lambda: server.request("GET", "/v1/readiness").status == 200, 20, "a worker is verified")
        put = server.request("PUT", "/v1/objects", b"print(6 * 7)\n", {"Content-Type": "application/octet-stream"})
        equal(put.status, 201)
        equal(put.json["digest"], "sha256:" + hashlib.sha256(b"print(6 * 7)\n").hexdigest())
        script = "cat /box/in; echo two >&2; mkdir /out/d; printf 0123456789 > /out/d/digits; printf x > \"$(printf '/out/\\377')\""
        run = server.submit("/bin/sh", "-c", script, inputs=[{"digest": put.json["digest"], "target": "/box/in"}],
                            outputs={"required": ["d/digits"]})
        receipt = server.wait(run)
        equal((receipt["verdict"], receipt["owner"]), ("succeeded", f"uid:{os.geteuid()}"))
        equal(receipt, caisson.show(run))
        state = server.run_state(run)
        equal((state["state"], state["verdict"], state["attempts"], state["cancelled"]), ("sealed", "succeeded", 1, False))
        for stream, text in (("stdout", b"print(6 * 7)\n"), ("stderr", b"two\n")):
            logs = server.request("GET", f"/v1/runs/{run}/logs?stream={stream}")
            equal((logs.body, logs.headers["Caisson-End"], logs.headers["Caisson-Offset"]), (text, "true", str(len(text))))
        artifacts = server.request("GET", f"/v1/runs/{run}/artifacts").json["artifacts"]
        equal(artifacts, receipt["artifacts"])
        for name, text in (("d/digits", b"0123456789"), ("%ff", b"x"), ("%5Cxff", b"x")):
            got = server.request("GET", f"/v1/runs/{run}/artifact?path={name}")
            equal((got.status, got.body, got.headers["Content-Disposition"]), (200, text, "attachment"), name)
        part = server.request("GET", f"/v1/runs/{run}/artifact?path=d/digits", headers={"Range": "bytes=3-4"})
        equal((part.status, part.body, part.headers["Content-Range"]), (206, b"34", "bytes 3-4/10"))
        for name in ("d", "d/", "/d/digits", "./d/digits", "d//digits", "d/../d/digits", "d%2F..%2Fd%2Fdigits", "%2e%2e/digits",
                     "digits", "d%5Cdigits", "d/digits%20"):
            is_in(server.request("GET", f"/v1/runs/{run}/artifact?path={name}").status, {400, 404}, name)
        rows = server.request("GET", "/v1/runs").json
        equal([row["run"] for row in rows["runs"]], [run])
        equal(server.request("POST", f"/v1/runs/{run}/cancel", {}).status, 409)
    equal(caisson.verify().status, 0)


@suite.case("the events of a run are its records, in order, resumable, without anything private")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        run = server.submit("/bin/true")
        with start_request(server, f"/v1/runs/{run}/events") as client:
            head, body = dechunk(read_all(client))
        holds("text/event-stream" in head, head)
        events = events_of(body)
        names = [name for _, name, _ in events]
        equal((names[0], names[-1]), ("accepted", "sealed"))
        milestones = ["prepared", "suspended", "enrolled", "launch_intent", "launched", "main_exited", "verified_empty", "sealed"]
        equal([name for name in names if name in milestones], milestones)
        equal([identity for identity, _, _ in events], [f"1-{i + 1}" for i in range(len(events))])
        records = caisson.rows("SELECT seq, kind FROM record ORDER BY seq")
        equal(names[:-1], [row["kind"] for row in records])
        owners = {row["owner_id"] for row in caisson.rows("SELECT * FROM owner")}
        for secret in caisson.boundary_ids() | owners | {caisson.ledger, "epoch", "lease", "at_ns"}:
            holds(secret.encode() not in body, f"{secret} is in the events")
        with start_request(server, f"/v1/runs/{run}/events", b"Last-Event-ID: 1-4\r\n") as client:
            equal(events_of(dechunk(read_all(client))[1]), events[4:])


@suite.case("output is followed while it is written")
def _():
    with Server(Caisson()) as server:
        run = server.submit("/bin/sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done")
        offset, pieces, text = 0, 0, b""
        while True:
            logs = server.request("GET", f"/v1/runs/{run}/logs?stream=stdout&offset={offset}&wait_ms=10000")
            equal(logs.status, 200)
            text, pieces = text + logs.body, pieces + bool(logs.body)
            offset = int(logs.headers["Caisson-Offset"])
            equal(offset, len(text))
            if logs.headers["Caisson-End"] == "true":
                break
        equal(text, b"1\n2\n3\n")
        holds(pieces >= 2, f"{pieces} pieces")


@suite.case("a large stream comes from the store, from any offset")
def _():
    with Server(Caisson()) as server:
        size = 3 << 20
        run = server.submit("/bin/sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x", limits={"stdout_bytes": size})
        equal(server.wait(run)["verdict"], "succeeded")
        for offset in (0, 1, size - 1, size, size + 5):
            logs = server.request("GET", f"/v1/runs/{run}/logs?stream=stdout&offset={offset}")
            equal((logs.status, len(logs.body), logs.headers["Caisson-End"]), (200, max(0, size - offset), "true"), str(offset))


@suite.case("the same key and manifest is the same run; another manifest is a conflict (S13)")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        run = server.submit("/bin/true", key="k")
        equal(server.submit("/bin/true", key="k"), run)
        body = {"version": "caisson.manifest/v1", "command": {"argv": ["/bin/false"]}}
        answer = server.request("POST", "/v1/runs", body, {"Idempotency-Key": "k"})
        equal((answer.status, answer.json["error"]["code"]), (409, "conflict"))
        server.wait(run)
        equal(len(caisson.rows("SELECT * FROM run")), 1)


ARGV = b'"command":{"argv":["/bin/true"]},"version":"caisson.manifest/v1"'
MALFORMED = [
    b"", b"{", b"[" * 100000, b'{"a":' * 100000, b"null", b"[]", b'"x"', b"{" + ARGV + b"}x", b"{" + ARGV + b"}{}",
    b"\xef\xbb\xbf{" + ARGV + b"}", b"{" + ARGV + b',"labels":{"a":"\xff"}}', b"{" + ARGV + b',"labels":{"a":"\\ud800"}}',
    b"{" + ARGV + b',"labels":{"a":"\\u0000"}}', b"{" + ARGV + b"\0}", b"{" + ARGV + b',"version":"caisson.manifest/v1"}',
    b"{" + ARGV + b',"limits":{"wall_ms":1e999}}',
    b"{" + ARGV + b',"limits":{"wall_ms":NaN}}', b"{" + ARGV + b',"limits":{"wall_ms":1.5}}',
    b"{" + ARGV + b',"limits":{"wall_ms":"1"}}',
    b"{" + ARGV + b',"limits":{"wall_ms":9223372036854775808}}', b"{" + ARGV + b',"limits":{"wall_ms":-1}}',
    b"{" + ARGV + b',"limits":{"wal_ms":1000}}', b"{" + ARGV + b',"limits":{"wall_ms":true}}', b"{" + ARGV + b',"limits":[]}',
    b"{" + ARGV + b',"inputs":[{"source":"/etc/shadow","target":"/box/x"}]}', b"{" + ARGV + b',"stdin":{"source":"/etc/shadow"}}',
]


@suite.case(f"{len(MALFORMED)} malformed manifests are 400, and nothing is recorded (S06, S07)")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        for body in MALFORMED:
            equal(raw(server, post_raw(body)), 400, body[:60])
        equal(caisson.rows("SELECT * FROM run"), [])
        equal(server.request("GET", "/v1/health").status, 200)
        server.wait(server.submit("/bin/true"))


@suite.case("a client that vanishes while it waits changes nothing; in an upload it leaves nothing (S11, S12)")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        run = server.submit("/bin/sleep", "60", limits={"wall_ms": 90000})
        waiting = [start_request(server, f"/v1/runs/{run}{path}")
                   for path in ("?wait_ms=60000", "/events", "/logs?stream=stdout&wait_ms=60000")]
        wait_until(lambda: b"\ncaisson_api_waiting 3\n" in server.request("GET", "/metrics").body, 20, "they wait")
        for client in waiting:
            client.close()
        upload = dial(server)
        upload.sendall(b"PUT /v1/objects HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" + b"x" * (1 << 20))
        upload.close()
        wait_until(lambda: b"\ncaisson_api_connections 1\n" in server.request("GET", "/metrics").body, 20, "they are gone")
        equal(server.run_state(run)["verdict"], None)
        equal(server.request("POST", f"/v1/runs/{run}/cancel", {}).status, 202)
        equal(server.wait(run)["verdict"], "cancelled")
        left = [name for _, _, names in os.walk(os.path.join(caisson.ledger, "store", "tmp")) for name in names]
        equal(left, [])


@suite.case("short of descriptors the keeper waits, does not spin, and goes on (S22)")
def _():
    caisson = Caisson()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Clients first: they are this process's own descriptors.
    with Server(caisson, workers=1) as server:
        server.wait(server.submit("/bin/true"))
        used = len(os.listdir(f"/proc/{server.popen.pid}/fd"))
        resource.prlimit(server.popen.pid, resource.RLIMIT_NOFILE, (used + 16, before[1]))
        clients = [dial(server) for _ in range(64)]
        told = lambda: [line for line in server.log if "open files" in json.dumps(line)]  # noqa: E731
        started = time.monotonic()
        wait_until(lambda: len(told()) >= 5, 20, "it says so, each time that it tries again")
        holds(time.monotonic() - started > 0.3, "it pauses in between")
        for client in clients:
            client.close()
        wait_until(lambda: raw(server, HEALTH) == 200, 20, "it serves")
        resource.prlimit(server.popen.pid, resource.RLIMIT_NOFILE, before)
        equal(server.wait(server.submit("/bin/true"))["verdict"], "succeeded")


@contextlib.contextmanager
def small_disk(megabytes):
    if os.geteuid() != 0:
        raise harness.Skip("a disk of one's own is root's to mount")
    path = scratch.directory("disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@suite.case("a full disk is 507 or 503 for who writes, nothing for who reads, and over when there is room (S14)")
def _():
    with small_disk(24) as path:
        caisson = Caisson(ledger=os.path.join(path, "ledger"))
        with Server(caisson) as server:
            run = server.submit("/bin/echo", "kept")
            server.wait(run)
            filler = os.open(os.path.join(path, "filler"), os.O_WRONLY | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):
                while True:
                    os.write(filler, b"x" * 4096)
            os.close(filler)
            manifest = {"version": "caisson.manifest/v1", "command": {"argv": ["/bin/true"]}, "labels": {"a": "x" * 1000}}
            refused = [server.request("POST", "/v1/runs", manifest).status for _ in range(30)]
            is_in(507, refused)
            equal(set(refused) <= {201, 503, 507}, True, str(refused))
            is_in(server.request("PUT", "/v1/objects", b"x" * (1 << 20)).status, {503, 507})
            equal(server.request("GET", f"/v1/runs/{run}").json["verdict"], "succeeded")
            equal(server.request("GET", f"/v1/runs/{run}/logs?stream=stdout").body, b"kept\n")
            os.unlink(os.path.join(path, "filler"))
            equal(server.wait(server.submit("/bin/true"))["verdict"], "succeeded")
        equal(caisson.verify().status, 0)


@suite.case("another writer that holds the ledger delays a submission, and loses none (S15)")
def _():
    caisson = Caisson()
    with Server(caisson) as server:
        server.wait(server.submit("/bin/true"))
        with contextlib.closing(sqlite3.connect(caisson.database(), isolation_level=None, timeout=10)) as other:
            other.execute("BEGIN IMMEDIATE")
            answers = []
            manifest = {"version": "caisson.manifest/v1", "command": {"argv": ["/bin/true"]}}
            threads = [threading.Thread(target=lambda i=i: answers.append(
                server.request("POST", "/v1/runs", manifest, {"Idempotency-Key": f"k{i}"}))) for i in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(3)  # the lock is held this long: nothing announces that somebody waits for it
            equal(server.request("GET", "/v1/health").status, 200)
            other.execute("ROLLBACK")
        for thread in threads:
            thread.join()
        for i, answer in enumerate(answers):
            is_in(answer.status, {201, 503}, str(i))
        for i in range(4):
            server.wait(server.submit("/bin/true", key=f"k{i}"))
        equal(len(caisson.rows("SELECT * FROM run")), 5)


@suite.case("a guest reaches no API (S30)")
def _():
    with Server(Caisson()) as server:
        script = ("import os, socket\n"
                  f"path = {server.socket!r}\n"
                  "assert not os.path.exists(path)\n"
                  "for address in (path, '\\0' + path):\n"
                  "    try:\n"
                  "        socket.socket(socket.AF_UNIX).connect(address)\n"
                  "    except OSError as error:\n"
                  "        print(error.errno)\n")
        run = server.submit("/usr/bin/python3", "-c", script)
        receipt = server.wait(run)
        trouble = server.request("GET", f"/v1/runs/{run}/logs?stream=stderr").body
        equal((receipt["verdict"], trouble), ("succeeded", b""))
        equal(server.request("GET", f"/v1/runs/{run}/logs?stream=stdout").body, b"2\n111\n")


@suite.case("what a client chooses makes no line of the log (S31)")
def _():
    with Server(Caisson()) as server:
        evil = 'x"}\n{"event":"forged"}\n\x1b[2J'
        run = server.submit("/bin/echo", evil, labels={"forged": evil}, key="k-forged")
        server.wait(run)
        for path in ("/v1/runs/%0a%7B%22event%22", "/v1/runs?owner=%0A%7B%22event%22:%22forged%22%7D", "/v1/x\x1b"):
            raw(server, b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        server.stop()
        equal([line for line in server.log if line.get("event") in ("forged", "text")], [])


@suite.case(f"{POLLERS} pollers of a list and a metric slow nobody's run down for long (S32)", timeout=240)
def _():
    raise_file_limit()
    caisson = Caisson()
    with Server(caisson) as server:
        for _ in range(20):
            server.submit("/bin/true")
        over, troubles = threading.Event(), []

        def poll(number):
            while not over.is_set():
                path = ("/v1/runs?limit=200", "/metrics", "/v1/workers", "/v1/runs?limit=1")[number % 4]
                answer = server.request("GET", path)
                if answer.status != 200:
                    troubles.append(f"{path}: {answer}")

        threads = [threading.Thread(target=poll, args=(number,), daemon=True) for number in range(POLLERS)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            equal(server.wait(server.submit("/bin/true"), 60)["verdict"], "succeeded")
        over.set()
        for thread in threads:
            thread.join()
        equal(troubles, [])


def front_pid(server):
    found = subprocess.run(["pgrep", "-P", str(server.popen.pid), "-x", "caisson-front"], capture_output=True, text=True,
                           check=True)
    return int(found.stdout)


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


@suite.case("a front that is killed costs its connections, and no run")
def _():
    with Server(Caisson()) as server:
        run = server.submit("/bin/sleep", "1")
        waiting = start_request(server, f"/v1/runs/{run}/events")
        waiting.recv(100)
        os.kill(front_pid(server), signal.SIGKILL)
        with contextlib.suppress(ConnectionResetError):
            read_all(waiting)
        wait_until(lambda: raw(server, HEALTH) == 200, 20, "served")
        equal(server.wait(run)["verdict"], "succeeded")


@suite.case(f"{EVENT_CLIENTS} clients follow one run, one never reads: all others get every event, memory is bounded", timeout=240)
def _():
    raise_file_limit()
    caisson = Caisson()
    with Server(caisson) as server:
        server.wait(server.submit("/bin/true"))
        before = resident_kb(front_pid(server)), resident_kb(server.popen.pid)
        gate = server.submit("/bin/sleep", "600", limits={"wall_ms": 900000})
        clients = [start_request(server, f"/v1/runs/{gate}/events") for _ in range(EVENT_CLIENTS)]
        deaf, selector = clients[500], selectors.DefaultSelector()
        data = {client: b"" for client in clients if client is not deaf}
        for client in data:
            selector.register(client, selectors.EVENT_READ)
        late = set(data)
        while late:
            for key, _ in selector.select(patience(60)):
                data[key.fileobj] += key.fileobj.recv(65536)
                if b"event: launched\n" in data[key.fileobj]:
                    late.discard(key.fileobj)
        grown = resident_kb(front_pid(server)) - before[0], resident_kb(server.popen.pid) - before[1]
        started = time.monotonic()
        equal(server.request("POST", f"/v1/runs/{gate}/cancel", {}).status, 202)
        first = last = None
        while selector.get_map():
            for key, _ in selector.select(patience(60)):
                piece = key.fileobj.recv(65536)
                data[key.fileobj] += piece
                if not piece:
                    selector.unregister(key.fileobj)
                    last = time.monotonic() - started
                    first = first or last
        receipt = server.wait(gate)
        equal(receipt["verdict"], "cancelled")
        expected = dechunk(next(iter(data.values())))[1]
        equal(events_of(expected)[-1][1], "sealed")
        identities = [identity for identity, _, _ in events_of(expected)]
        equal(identities, [f"1-{i + 1}" for i in range(len(identities))])
        for stream in data.values():
            equal([identity for identity, _, _ in events_of(dechunk(stream)[1])], identities)
        print(f"# {EVENT_CLIENTS} clients: cancel to the end of the first stream {first * 1000:.0f} ms, of the last "
              f"{last * 1000:.0f} ms; {grown[0]} KiB more in the front, {grown[1]} KiB in the keeper")
        holds(max(grown) < 96 * 1024 or sanitized(), f"{grown} KiB")
        deaf.close()


if __name__ == "__main__":
    sys.exit(suite.main())
