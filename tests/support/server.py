"""server.py - a running `caisson serve`, and requests to it over its unix socket."""

import http.client
import json
import os
import signal
import socket
import subprocess
import threading

from support import harness, proc, scratch

REQUEST_TIMEOUT_S = 120


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=REQUEST_TIMEOUT_S):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.status} {self.body[:400]!r}"


class Server:
    """`caisson serve` on a ledger. A context manager: leaving it stops the keeper and waits for its end."""

    def __init__(self, caisson, *options, env=None, workers=2, under=(), collected=True, doomed=False):
        self.caisson, self.options, self.env, self.workers_wanted, self.under = caisson, options, env, workers, list(under)
        self.collected = collected  # else its events are left in the pipe from the first one on
        self.doomed = doomed  # it dies by a run that waits for it already, maybe before it says that it serves
        self.socket = os.path.join(scratch.directory("socket"), "s")
        self.log, self.popen = [], None
        self.start()

    def start(self):
        argv = self.caisson.command("serve", "--socket", self.socket, "--workers", str(self.workers_wanted), *self.options)
        self.serving = threading.Event()
        self.popen = subprocess.Popen(self.under + argv, env=self.caisson.environment(self.env), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        self.reader = threading.Thread(target=self._read, args=(self.popen,), daemon=True)
        self.reader.start()
        if not self.serving.wait(harness.patience(30)) or (self.popen.poll() is not None and not self.doomed):
            raise AssertionError(f"the keeper does not serve: {self.log[-5:]}")

    def _read(self, popen):
        for line in popen.stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.log.append({"event": "text", "line": line.decode(errors="replace")})
            if self.log[-1].get("event") == "serving":
                self.serving.set()
                if not self.collected:
                    return
        popen.stderr.close()
        self.serving.set() # it ended: nobody need wait

    def signal_keeper(self, number):
        """The keeper itself, also when another program runs it."""
        pid = next(iter(proc.children(self.popen.pid))) if self.under else self.popen.pid
        os.kill(pid, number)

    def events(self, name):
        return [line for line in self.log if line.get("event") == name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, number=signal.SIGTERM, seconds=60):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.send_signal(number)
        status = self.popen.wait(harness.patience(seconds))
        self.reader.join(10)
        return status

    def request(self, method, path, body=None, headers=None, timeout=REQUEST_TIMEOUT_S):
        connection = Connection(self.socket, timeout)
        try:
            headers = dict(headers or {})
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def submit(self, *argv, key=None, **fields):
        manifest = {"version": "caisson.manifest/v1", "command": {"argv": list(argv)}, **fields}
        answer = self.request("POST", "/v1/runs", manifest, {"Idempotency-Key": key} if key else None)
        if answer.status not in (200, 201):
            raise AssertionError(f"submit: {answer}")
        return answer.json["run"]

    def run_state(self, run):
        answer = self.request("GET", f"/v1/runs/{run}")
        if answer.status != 200:
            raise AssertionError(f"run {run}: {answer}")
        return answer.json

    def wait(self, run, seconds=60):
        """Until it is sealed; its receipt."""
        def sealed():
            answer = self.request("GET", f"/v1/runs/{run}?wait_ms=10000")
            if answer.status != 200:
                raise AssertionError(f"wait for {run}: {answer}")
            return answer.json.get("receipt")
        return harness.wait_until(sealed, seconds, f"run {run} is sealed")

    def worker_states(self):
        return self.request("GET", "/v1/workers").json["workers"]
