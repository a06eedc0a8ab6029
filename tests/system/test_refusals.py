#!/usr/bin/python3
"""test_refusals.py - what Caisson will not do: each with one clear line, exit 125, and nothing of the guest's executed."""

import json
import os
import resource
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, scratch  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("refusals")

MARKER = ("sh", "-c", "echo marker")
VERSION = '"version": "caisson.manifest/v1"'


def refused(done, *words):
    """One line that has all these words, exit 125, no marker."""
    equal(done.status, 125, str(done))
    holds(b"marker" not in done.stdout, f"the guest did not run: {done}")
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    equal(len(lines), 1, f"lines of {done.stderr!r}")
    for word in words:
        holds(word in lines[0], f"{word!r} in {lines[0]!r}")


def refuses_manifest(text, *words):
    caisson = Caisson()
    path = scratch.file("manifest.json", text)
    refused(caisson.call("run", "--manifest", path), *words)
    checked = caisson.call("manifest", "validate", path)
    holds(checked.status != 0, f"manifest validate says the same: {checked}")


def manifest(more):
    return '{%s, "command": {"argv": ["sh", "-c", "echo marker"]}, %s}' % (VERSION, more)


@suite.case("a limit that this host cannot enforce")
def _():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        raise harness.Skip("this host has no hard limit of open files")
    caisson = Caisson()
    watch = Watch(caisson)
    refused(caisson.run_plain(*MARKER, options=("--open-files", str(hard + 1))), "open", str(hard))
    result = caisson.run(*MARKER, options=("--open-files", str(hard + 1)))
    equal((result.verdict, result.reason, result.status), ("refused", "limit_unenforceable", 125), str(result))
    watch.hold(result)


DAC_OVERRIDE = 1
NEEDED = {"SYS_ADMIN": 21, "NET_ADMIN": 12, "SETUID": 7, "SETGID": 6, "CHOWN": 0, "FOWNER": 3, "MKNOD": 27, "DAC_READ_SEARCH": 2}


@suite.case("a root without a capability that it needs is told which; without any other it runs")
def _():
    caisson = Caisson()
    if caisson.user:
        holds(b"an ordinary user needs none\n" in caisson.call("doctor").stdout, "doctor")
        return

    def without(numbers, *words):
        return subprocess.run([caisson.binary, *words], env=caisson.environment(), capture_output=True, check=False,
                              preexec_fn=lambda: proc.drop_from_bounds(numbers))  # pylint: disable=subprocess-popen-preexec-fn

    run = ("run", "--ledger", caisson.ledger, "--", "true")
    for name, number in NEEDED.items():
        done = without([number, DAC_OVERRIDE], *run)
        holds(done.returncode == 125 and f"prepare: root is without CAP_{name} here".encode() in done.stderr, f"{name}: {done.stderr!r}")
    done = without([*NEEDED.values(), DAC_OVERRIDE], *run)
    holds(b"without " + ", ".join(f"CAP_{name}" for name in NEEDED).encode() + b" here" in done.stderr, done.stderr)
    done = without([NEEDED["MKNOD"]], "doctor", "--ledger", caisson.ledger)
    holds(done.returncode == 1 and b"root is without CAP_MKNOD\n" in done.stdout, done.stdout)
    others = set(range(64)) - set(NEEDED.values())
    equal(without(others, *run).returncode, 0, "none but those")
    equal(caisson.verify().status, 0)


@suite.case("a limit out of the contract's range")
def _():
    caisson = Caisson()
    refused(caisson.run_plain(*MARKER, options=("--memory", "1M")), "memory")
    refused(caisson.run_plain(*MARKER, options=("--wall", "25h")), "wall")
    refused(caisson.run_plain(*MARKER, options=("--pids", "0")), "pids")


@suite.case("a duplicate key")
def _():
    refuses_manifest(manifest('"labels": {}, "labels": {}'), "duplicate", "line")


@suite.case("a negative limit")
def _():
    refuses_manifest(manifest('"limits": {"memory_bytes": -1}'), "limits.memory_bytes")


@suite.case("a fraction")
def _():
    refuses_manifest(manifest('"limits": {"wall_ms": 1.5}'), "limits.wall_ms")


@suite.case("an unknown field")
def _():
    refuses_manifest(manifest('"limits": {"wal_ms": 1000}'), "wal_ms")


@suite.case("depth 20,000")
def _():
    refuses_manifest(manifest('"labels": ' + "[" * 20000 + "]" * 20000), "line")


@suite.case("invalid UTF-8")
def _():
    refuses_manifest(manifest('"labels": {"a": "?"}').encode().replace(b"?", b"\xff"), "line", "0xff")


@suite.case("an empty argv")
def _():
    refuses_manifest('{%s, "command": {"argv": []}}' % VERSION, "command.argv")


@suite.case("text behind the document, a number as a string, and a NUL in a word")
def _():
    refuses_manifest(manifest('"labels": {}') + " x", "line")
    refuses_manifest(manifest('"limits": {"pids": "64"}'), "limits.pids")
    refuses_manifest('{%s, "command": {"argv": ["a\\u0000b"]}}' % VERSION)


@suite.case("something that this version does not do is refused by name, and recorded")
def _():
    caisson = Caisson()
    result = caisson.run(*MARKER, options=("--require", "landlock>=99"))
    equal((result.status, result.guest_stdout), (125, b""), str(result))
    holds(result.verdict in ("refused", "not_launched") and "landlock" in json.dumps(result.receipt), str(result))


@suite.case("a ledger newer than the program")
def _():
    caisson = Caisson()
    equal(caisson.run("true").word(), "OK")
    connection = sqlite3.connect(caisson.database())
    connection.execute("PRAGMA user_version = 999")
    connection.commit()
    connection.close()
    refused(caisson.run_plain(*MARKER), "newer")
    refused(caisson.call("list"), "newer")


@suite.case("a ledger directory that others can write")
def _():
    for mode in (0o777, 0o770, 0o702):
        caisson = Caisson()
        os.chmod(caisson.ledger, mode)
        refused(caisson.run_plain(*MARKER), caisson.ledger)
    theirs = Caisson()
    os.chown(theirs.ledger, 1, 1)
    refused(theirs.run_plain(*MARKER), theirs.ledger)


@suite.case("a copied ledger may be verified, not written")
def _():
    caisson = Caisson()
    equal(caisson.run("true").word(), "OK")
    copy = Caisson(ledger=scratch.directory("copy"))
    subprocess.run(["cp", "-a", caisson.ledger + "/.", copy.ledger], check=True)
    refused(copy.run_plain(*MARKER), "copied")
    equal(copy.verify().status, 0)


FULL_DISK = r"""
set -e
mount -t tmpfs -o size=1m,mode=0700 none "$LEDGER"
head -c 10m /dev/zero > "$LEDGER/filler" 2>/dev/null || true
"$@" 2> "$OUT/first.err" > "$OUT/first.out" && echo 0 > "$OUT/first.status" || echo $? > "$OUT/first.status"
rm "$LEDGER/filler"
"$@" 2> "$OUT/second.err" > "$OUT/second.out" && echo 0 > "$OUT/second.status" || echo $? > "$OUT/second.status"
"""


def read(directory, name):
    with open(os.path.join(directory, name), "rb") as file:
        return file.read()


@suite.case("a full disk; and it works again when there is space")
def _():
    caisson, out = Caisson(), scratch.directory("out")
    environment = {**caisson.environment(), "LEDGER": caisson.ledger, "OUT": out}
    command = caisson.command("run", "--", *MARKER)
    subprocess.run(["unshare", "-m", "sh", "-c", FULL_DISK, "sh", *command], env=environment, check=True)
    first = read(out, "first.err").decode().splitlines()
    equal((read(out, "first.status"), read(out, "first.out")), (b"125\n", b""), repr(first))
    complaints = [line for line in first if "space" in line or "full" in line]
    equal((len(complaints), len(first)), (1, 1), f"one clear line: {first}")
    equal((read(out, "second.status"), read(out, "second.out")), (b"0\n", b"marker\n"), repr(read(out, "second.err")))


LATE_FULL_DISK = r"""
set -e
mount -t tmpfs -o size=2m,mode=0700 none "$LEDGER"
"$@" -- true
"$@" -- sh -c 'echo marker; sleep 0.3' > "$OUT/out" 2> "$OUT/err" &
sleep 0.1
head -c 10m /dev/zero > "$LEDGER/filler" 2>/dev/null || true
wait $! && echo 0 > "$OUT/status" || echo $? > "$OUT/status"
rm "$LEDGER/filler"
"$RECOVER" recover --ledger "$LEDGER" > "$OUT/recover" 2>&1
"$RECOVER" verify --ledger "$LEDGER" --all > "$OUT/verify" 2>&1
"$RECOVER" list --ledger "$LEDGER" --json > "$OUT/list"
"""


@suite.case("a disk that fills while a program runs gives no wrong verdict, and leaves nothing")
def _():
    caisson, out = Caisson(), scratch.directory("out")
    environment = {**caisson.environment(), "LEDGER": caisson.ledger, "OUT": out, "RECOVER": caisson.binary}
    subprocess.run(["unshare", "-m", "sh", "-c", LATE_FULL_DISK, "sh", *caisson.command("run")], env=environment, check=True)
    rows = json.loads(read(out, "list"))
    equal([row["state"] for row in rows], ["sealed", "sealed"])
    status = int(read(out, "status"))
    # Either the seal still fitted, or it did not and the recovery sealed it.
    allowed = {0: ("succeeded",), 125: ("interrupted", "boundary_error", "not_launched")}
    holds(status in allowed and rows[0]["verdict"] in allowed[status], f"exit {status}, {rows[0]}, {read(out, 'err')!r}")
    holds(not [p for p in proc.processes() if p.is_guest and not p.boundaries()], "no guest is left")


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
