"""fake_keeper.py - a keeper's API without a keeper, for what a real one cannot be made to do: lose a reply after the commit, cut one at any
byte, answer late, be full, be gone and come back.

    with FakeKeeper() as keeper:
        keeper.faults.append(Fault("POST", "/v1/runs", lose=True))
        …

A run's command says what becomes of it: ["exit", "3"], ["signal", "SIGKILL"], ["sleep", "0.2"], ["provisional"], ["quarantined"],
["exec", "ENOENT"], ["forever"]; anything else succeeds at once. What was accepted outlives stop() and start(), as a ledger does.
"""

import base64
import hashlib
import http.server
import json
import os
import re
import socket
import socketserver
import threading
import time
import urllib.parse

from support import scratch

VERSION = "caisson.manifest/v1"


class Fault:
    """What goes wrong with the next `times` requests of a method whose path begins so."""

    def __init__(self, method, path, times=1, lose=False, deaf=False, cut=None, late_s=0.0, status=None, headers=None, after=0):
        self.method, self.path, self.times, self.after = method, path, times, after
        self.lose = lose        # done, but not answered
        self.deaf = deaf        # neither
        self.cut = cut          # answered, but only so many bytes of it, or without so many
        self.late_s = late_s
        self.status = status    # answered with this error, and not done
        self.headers = headers or {}

    def takes(self, method, path):
        if method != self.method or not path.startswith(self.path) or self.times == 0:
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


class Run:
    def __init__(self, run, manifest):
        self.run, self.manifest = run, manifest
        self.argv = manifest["command"]["argv"]
        self.created = time.monotonic()
        self.cancelled = False
        self.stdout = f"output of {run}\n".encode()

    def lasts_s(self):
        return {"sleep": lambda: float(self.argv[1]), "forever": lambda: 1e9}.get(self.argv[0], lambda: 0.0)()

    def over(self):
        return self.cancelled or time.monotonic() - self.created >= self.lasts_s()

    def receipt(self):
        fields = {"verdict": "succeeded", "reason": "", "detail": "exit code 0", "exit_code": 0, "signal": None}
        word = self.argv[0]
        if self.cancelled:
            fields.update(verdict="cancelled", reason="cancelled", detail="by its owner", exit_code=None)
        elif word == "exit":
            fields.update(verdict="failed", reason="exit_code", detail=f"exit code {self.argv[1]}", exit_code=int(self.argv[1]))
        elif word == "signal":
            fields.update(verdict="signaled", reason=self.argv[1], detail="main died", exit_code=None, signal=self.argv[1])
        elif word == "exec":
            fields.update(verdict="failed", reason="exec_failed", detail=f"some text ({self.argv[1]})", exit_code=None)
        elif word == "timeout":
            fields.update(verdict="timed_out", reason="wall_limit", detail="ran 1001 ms of 1000 ms", exit_code=None)
        elif word == "memory":
            fields.update(verdict="limit_exceeded", reason="memory_limit", detail="1 OOM kill", exit_code=None)
        return {"version": "caisson.receipt/v1", "run": self.run, **fields}

    def state(self):
        state = {"run": self.run, "owner": "uid:0", "created_at": "2026-11-29T00:00:00.000Z", "attempts": 1, "receipt": None}
        if not self.over():
            return {**state, "state": "running", "reason": ""}
        receipt = self.receipt()
        if self.argv[0] == "quarantined":
            return {**state, "state": "quarantined", "reason": None}
        if self.argv[0] == "provisional":
            result = {key: receipt[key] for key in ("verdict", "reason", "detail", "exit_code", "signal")}
            return {**state, "state": "quarantined", "reason": "cleanup", "provisional_result": result}
        return {**state, "state": "sealed", "verdict": receipt["verdict"], "reason": receipt["reason"], "receipt": receipt}

    def events(self):
        kinds = ["admitted", "launched"] + (["exited", "sealed"] if self.over() else [])
        return [(f"1-{number}", kind, {"seq": number, "kind": kind}) for number, kind in enumerate(kinds, 1)]


class FakeKeeper:
    def __init__(self, path=None):
        self.path = path or os.path.join(scratch.directory("keeper"), "api.sock")
        self.lock = threading.Lock()
        self.runs, self.by_key, self.objects, self.trees = {}, {}, {}, {}
        self.missing_max = 1000  # of one answer about a directory
        self.on_tree = None      # what is answered instead; None: the usual
        self.faults, self.requests = [], []
        self.queue_max = None
        self.server = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.server = _Server(self.path, _Handler)
        self.server.keeper = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self):
        """As a keeper that was killed: whoever is connected hears of it at once, and the socket's name stays."""
        server, self.server = self.server, None
        if server:
            server.end()

    def restart(self, away_s=0.0):
        self.stop()
        time.sleep(away_s)
        self.start()

    def fault_of(self, method, path):
        with self.lock:
            self.requests.append((method, path))
            return next((fault for fault in self.faults if fault.takes(method, path)), None)

    def count(self, method, path):
        with self.lock:
            return sum(1 for seen in self.requests if seen[0] == method and seen[1].startswith(path))

    def submit(self, manifest, key):
        """(status, document) of a submission."""
        trouble = _complain(manifest, {**self.objects, **self.trees})
        if trouble:
            return 400, {"error": {"code": "invalid", "message": trouble[1], "path": trouble[0]}}
        digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        with self.lock:
            if key in self.by_key:
                known, run = self.by_key[key]
                if known != digest:
                    return 409, {"error": {"code": "conflict", "message": "the key was used for another manifest"}}
                return 200, {"run": run.run, "state": "queued"}
            open_runs = sum(1 for run in self.runs.values() if not run.over())
            if self.queue_max is not None and open_runs >= self.queue_max:
                return 429, {"error": {"code": "queue_full", "message": "the queue is full"}}
            run = Run("run-" + base64.b32encode(os.urandom(10)).decode().lower(), manifest)
            self.runs[run.run] = run
            if key:
                self.by_key[key] = (digest, run)
            return 201, {"run": run.run, "state": "queued"}


def _complain(manifest, objects):
    if manifest.get("version") != VERSION:
        return "$.version", "must be " + VERSION
    if not manifest.get("command", {}).get("argv"):
        return "$.command.argv", "must be there"
    if manifest.get("labels", {}).get("refuse"):
        return "$.labels.refuse", "is refused by the keeper alone"
    for number, entry in enumerate([manifest.get("stdin", {}), *manifest.get("inputs", [])]):
        path = f"$.inputs[{number - 1}]" if number else "$.stdin"
        if "source" in entry:
            return path + ".source", "is refused over HTTP"
        if "digest" in entry and entry["digest"] not in objects:
            return path + ".digest", "is not in the store"
    return None


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, *words):
        self.connections, self.guard = set(), threading.Lock()
        super().__init__(*words)

    def get_request(self):
        connection, _ = super().get_request()
        with self.guard:
            self.connections.add(connection)
        return connection, ("unix", 0)

    def shutdown_request(self, request):
        with self.guard:
            self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        pass  # a client that went away, or that we left

    def end(self):
        self.shutdown()
        self.server_close()
        with self.guard:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class _Gone(Exception):
    """The connection is to end without (all of) an answer."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (_Gone, OSError):
            self.close_connection = True

    @property
    def keeper(self):
        return self.server.keeper

    def do(self, method):
        body = self.body()
        self.fault = self.keeper.fault_of(method, self.path)
        if self.fault and self.fault.late_s:
            time.sleep(self.fault.late_s)
        if self.fault and self.fault.deaf:
            raise _Gone
        if self.fault and self.fault.status:
            self.answer(self.fault.status, {"error": {"code": "busy", "message": "not now"}}, self.fault.headers)
            return
        url = urllib.parse.urlsplit(self.path)
        self.parameters = dict(urllib.parse.parse_qsl(url.query))
        for pattern, wanted, function in _ROUTES:
            match = re.fullmatch(pattern, url.path)
            if match and method == wanted:
                function(self, body, *match.groups())
                return
        self.answer(404, {"error": {"code": "not_found", "message": "no such resource"}})

    def do_GET(self):
        self.do("GET")

    def do_POST(self):
        self.do("POST")

    def do_PUT(self):
        self.do("PUT")

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            pieces = []
            while True:
                size = int(self.rfile.readline(), 16)
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
                if size == 0:
                    return b"".join(pieces)
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:
            raise _Gone
        return body

    def answer(self, status, document, headers=None):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in (headers or {}).items())]
        raw = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
        if self.fault and self.fault.lose:
            raise _Gone
        if self.fault and self.fault.cut is not None:
            self.wfile.write(raw[:self.fault.cut])
            self.wfile.flush()
            raise _Gone
        self.wfile.write(raw)
        self.wfile.flush()

    def find(self, name):
        run = self.keeper.runs.get(name)
        if not run:
            self.answer(404, {"error": {"code": "not_found", "message": f"there is no run {name}"}})
        return run

    def submit(self, body):
        self.answer(*self.keeper.submit(json.loads(body), self.headers.get("Idempotency-Key")))

    def list(self, _body):
        limit, after = int(self.parameters.get("limit", 50)), int(self.parameters.get("cursor", 0))
        runs = [run for run in self.keeper.runs.values() if run.run.startswith(self.parameters.get("run", ""))][::-1]
        page = [run.state() for run in runs[after:after + limit]]
        self.answer(200, {"runs": page, "next": str(after + limit) if after + limit < len(runs) else None})

    def get(self, _body, name):
        run = self.find(name)
        if not run:
            return
        deadline = time.monotonic() + int(self.parameters.get("wait_ms", 0)) / 1000
        while not run.over() and time.monotonic() < deadline and self.keeper.server is self.server:
            time.sleep(0.005)
        if self.keeper.server is not self.server:
            raise _Gone
        self.answer(200, run.state())

    def cancel(self, _body, name):
        run = self.find(name)
        if not run:
            return
        if run.over():
            self.answer(409, {"error": {"code": "conflict", "message": "it is sealed: this changes nothing any more"}})
            return
        run.cancelled = True
        self.answer(202, {"run": name, "sealed": False})

    def logs(self, _body, name):
        run = self.find(name)
        if not run:
            return
        offset = int(self.parameters["offset"])
        data = run.stdout if self.parameters["stream"] == "stdout" else b"errors\n"
        piece = data[offset:offset + 5]
        deadline = time.monotonic() + int(self.parameters.get("wait_ms", 0)) / 1000
        while not piece and not run.over() and time.monotonic() < deadline:
            time.sleep(0.005)
        end = run.over() and offset + len(piece) >= len(data)
        self.answer(200, piece, {"Caisson-Offset": offset + len(piece), "Caisson-End": "true" if end else "false"})

    def events(self, _body, name):
        run = self.find(name)
        if not run:
            return
        last = self.headers.get("Last-Event-ID", "1-0")
        self.wfile.write(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.chunk(b": hello\n\n")
        seen = int(last.split("-")[1])
        sent = 0
        while True:
            for number, (ident, kind, data) in enumerate(run.events(), 1):
                if number > seen:
                    self.chunk(f"id: {ident}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode())
                    seen, sent = number, sent + 1
                    if self.fault and self.fault.cut is not None and sent >= self.fault.cut:
                        raise _Gone
                    if kind == "sealed":
                        self.wfile.write(b"0\r\n\r\n")
                        self.wfile.flush()
                        return
            if self.parameters.get("follow") == "false":
                self.wfile.write(b"0\r\n\r\n")
                self.wfile.flush()
                return
            time.sleep(0.005)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def put(self, body):
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        self.keeper.objects[digest] = body
        self.answer(201, {"digest": digest, "bytes": len(body)})

    def put_tree(self, body):
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        answer = self.keeper.on_tree(body) if self.keeper.on_tree else None
        missing = [entry["sha256"] for entry in json.loads(body) if entry["kind"] == "file" and entry["sha256"] not in self.keeper.objects]
        if answer is not None:
            self.answer(200, answer)
        elif missing:
            self.answer(200, {"missing": missing[:self.keeper.missing_max]})
        else:
            self.keeper.trees[digest] = json.loads(body)
            self.answer(201, {"digest": digest})

    def workers(self, _body):
        self.answer(200, {"workers": [
            {"slot": 0, "profile": "linux", "state": "busy", "run": "run-aaaaaaaaaaaaaaaa", "reason": ""},
            {"slot": 1, "profile": "linux", "state": "quarantined", "run": "", "reason": "not verified empty"}]})

    def health(self, _body):
        self.answer(200, {"ok": True})


_RUN = "/v1/runs/([^/]+)"
_ROUTES = [
    ("/v1/runs", "POST", _Handler.submit), ("/v1/runs", "GET", _Handler.list), (_RUN, "GET", _Handler.get),
    (_RUN + "/cancel", "POST", _Handler.cancel), (_RUN + "/logs", "GET", _Handler.logs), (_RUN + "/events", "GET", _Handler.events),
    ("/v1/objects", "PUT", _Handler.put), ("/v1/trees", "PUT", _Handler.put_tree), ("/v1/workers", "GET", _Handler.workers), ("/v1/health", "GET", _Handler.health),
    ("/v1/readiness", "GET", _Handler.health),
]
