"""caisson.py - runs the built program on a private ledger and gives back what it said.

CAISSON_BIN names the program (default build/caisson), CAISSON_FAULT_BIN the one with fault points (default build-fault/caisson). With
CAISSON_TEST_AS it is run by an ordinary user (delegated.py).
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import time

from support import delegated, harness, proc, scratch

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("CAISSON_BIN", os.path.join(TOP, "build", "caisson")))
FAULT_BIN = os.path.abspath(os.environ.get("CAISSON_FAULT_BIN", os.path.join(TOP, "build-fault", "caisson")))

RUN_TIMEOUT_S = 120


def need(path):
    """Skips the case when a program is not built."""
    if not os.access(path, os.X_OK):
        raise harness.Skip(f"{path} is not built")
    return path


class Result:
    """One `caisson` call: exit status, both outputs, and for a run its receipt and the guest's captured streams."""

    def __init__(self, argv, status, stdout, stderr, seconds):
        self.argv, self.status, self.seconds = argv, status, seconds
        self.stdout, self.stderr = stdout, stderr
        self.receipt = self.provisional = None
        self.guest_stdout = self.guest_stderr = b""

    @property
    def text(self):
        return self.guest_stdout.decode("utf-8", "replace")

    @property
    def verdict(self):
        return self.receipt["verdict"] if self.receipt else None

    @property
    def reason(self):
        return self.receipt["reason"] if self.receipt else None

    def word(self):
        """The verdict in the words of the hostile matrix: OK, NZ(7), SIG(9), TLE_WALL, TLE_CPU, MLE, OLE, RETAINED, REJECTED, …"""
        return verdict_word(self.receipt, self.status)

    def __str__(self):
        receipt = self.receipt or {}
        verdict = f"{receipt.get('verdict')}/{receipt.get('reason')} ({receipt.get('detail')})"
        return (f"{' '.join(self.argv)}\n  exit {self.status}, {verdict}, {self.seconds:.2f} s\n"
                f"  stdout {self.stdout[:300]!r}\n  stderr {self.stderr[:600]!r}\n"
                f"  guest stdout {self.guest_stdout[:600]!r}\n  guest stderr {self.guest_stderr[:300]!r}")


def sanitized():
    """Was the program built with AddressSanitizer?"""
    with open(BIN, "rb") as file:
        return b"__asan_init" in file.read()


def signal_number(name):
    import signal  # pylint: disable=import-outside-toplevel
    return getattr(signal, name).value


_FIXED_WORDS = {
    ("timed_out", "wall_limit"): "TLE_WALL",
    ("timed_out", "cpu_limit"): "TLE_CPU",
    ("limit_exceeded", "memory_limit"): "MLE",
    ("limit_exceeded", "output_limit"): "OLE",
    ("failed", "output_handle_retained"): "RETAINED",
    ("failed", "exec_failed"): "EXEC",
}


def verdict_word(receipt, status):
    if receipt is None:
        return "REJECTED" if status == 125 else f"NONE({status})"
    verdict, reason = receipt["verdict"], receipt["reason"]
    if (verdict, reason) in _FIXED_WORDS:
        return _FIXED_WORDS[verdict, reason]
    if verdict == "succeeded":
        return "OK"
    if verdict == "failed" and reason == "exit_code":
        return f"NZ({receipt['exit_code']})"
    if verdict == "signaled":
        return f"SIG({signal_number(receipt['signal'])})"
    names = {"refused": "REJECTED", "not_launched": "REJECTED", "interrupted": "INTERRUPTED", "boundary_error": "SBX_ERR",
             "cancelled": "CANCELLED"}
    return names.get(verdict, f"{verdict}/{reason}")


def exit_status_of(word):
    """The exit status that `caisson run` must have for a verdict word (contract, below the verdict table)."""
    if word == "OK":
        return 0
    if word.startswith("NZ("):
        return int(word[3:-1])
    if word.startswith("SIG("):
        return 128 + int(word[4:-1])
    return {"TLE_WALL": 124, "TLE_CPU": 124, "MLE": 137, "OLE": 137}.get(word, 125)


class Caisson:
    """A program and a ledger of its own."""

    def __init__(self, binary=None, ledger=None, user=None):
        self.binary = need(os.path.abspath(binary or BIN))
        self.user = user or delegated.from_environment()
        if self.user:
            self.binary = self.user.program(self.binary)
        self.ledger = ledger or (self.user.directory("ledger") if self.user else scratch.directory("ledger"))

    def command(self, verb, *words):
        argv = [self.binary, verb, "--ledger", self.ledger, *words]
        return self.user.command(*argv) if self.user else argv

    def environment(self, extra=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CAISSON_")}
        if self.user:
            environment.update(self.user.environment())
        environment.update(extra or {})
        return environment

    def call(self, verb, *words, env=None, stdin=subprocess.DEVNULL, data=None, cwd=None, timeout=RUN_TIMEOUT_S):
        """Any subcommand, waited for."""
        argv = self.command(verb, *words)
        started = time.monotonic()
        done = subprocess.run(argv, env=self.environment(env), cwd=cwd, timeout=timeout, capture_output=True, check=False,
                              **({"input": data} if data is not None else {"stdin": stdin}))
        return Result(argv, done.returncode, done.stdout, done.stderr, time.monotonic() - started)

    def run(self, *argv, options=(), **keywords):
        """`caisson run --json OPTIONS -- ARGV`, with the receipt parsed and the guest's streams fetched from the store."""
        return self._finish(self.call("run", "--json", *options, "--", *argv, **keywords))

    def run_manifest(self, manifest, options=(), **keywords):
        """`caisson run --json --manifest FILE`; manifest is a dict (version put in when absent), or bytes as they are."""
        if isinstance(manifest, dict):
            manifest = json.dumps({"version": "caisson.manifest/v1", **manifest}).encode()
        path = scratch.file("manifest.json", manifest)
        return self._finish(self.call("run", "--json", *options, "--manifest", path, **keywords))

    def run_plain(self, *argv, options=(), **keywords):
        """`caisson run OPTIONS -- ARGV` without --json: stdout and stderr are what a user sees."""
        return self.call("run", *options, "--", *argv, **keywords)

    def start(self, *argv, options=(), env=None, **keywords):
        """Starts `caisson run OPTIONS -- ARGV` in a session of its own and does not wait."""
        keywords.setdefault("stdin", subprocess.DEVNULL)
        keywords.setdefault("stdout", subprocess.PIPE)
        keywords.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.command("run", *options, "--", *argv), env=self.environment(env), start_new_session=True,
                                **keywords)

    def _finish(self, result):
        text = result.stdout.strip()
        if not text:
            return result
        document = json.loads(text)
        if "provisional_result" in document:
            result.provisional = document["provisional_result"]
            return result
        result.receipt = document
        result.guest_stdout = self.logs(result.receipt["run"], "stdout")
        result.guest_stderr = self.logs(result.receipt["run"], "stderr")
        return result

    def logs(self, run, stream="stdout"):
        done = self.call("logs", run, f"--{stream}")
        return done.stdout if done.status == 0 else b""

    def show(self, run):
        """The receipt of a run as `show --json` prints it, or None."""
        done = self.call("show", run, "--json")
        return json.loads(done.stdout) if done.status == 0 and done.stdout.strip() else None

    def list(self):
        """Rows of `list --json`."""
        done = self.call("list", "--json")
        if done.status != 0:
            raise AssertionError(f"list failed: {done}")
        return parse_rows(done.stdout)

    def recover(self, **keywords):
        return self.call("recover", **keywords)

    def verify(self, *words):
        return self.call("verify", *(words or ("--all",)))

    def database(self):
        return os.path.join(self.ledger, "ledger.db")

    def rows(self, query):
        """Rows of a query on the ledger's own file, as dicts; none when it is not made yet."""
        if not os.path.exists(self.database()):
            return []
        # Not mode=ro: a reader must be able to take up the WAL of a process that was killed.
        with contextlib.ExitStack() as opened:
            opened.enter_context(proc.files_of(self.user.uid if self.user else 0))
            connection = sqlite3.connect(f"file:{self.database()}?mode=rw", uri=True, timeout=10)
            opened.callback(connection.close)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA query_only = 1")
            try:
                return [dict(row) for row in connection.execute(query)]
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    def attempts(self):
        return self.rows("SELECT * FROM attempt")

    def boundary_ids(self):
        return {row["boundary_id"] for row in self.attempts()}


def parse_rows(text):
    """One JSON array, or one JSON object a line."""
    text = text.decode().strip()
    if not text:
        return []
    if text.startswith("["):
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines()]
