#!/usr/bin/python3
"""test_invariants_selftest.py - breaks each invariant on purpose and shows that the helper fails on exactly that one.

Runs in a mount namespace of its own, on a ledger that it writes itself: it needs no built program and touches nothing of the host.
"""

import contextlib
import ctypes
import os
import signal
import socket
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, invariants, proc, scratch  # noqa: E402
from support.caisson import Result  # noqa: E402
from support.harness import equal, holds  # noqa: E402

BOUNDARY = "bnd-selftestselftest"
SETTLE_S = 0.2
GUEST_UID = proc.GUEST_UID_FIRST + 1000
MS_REC_PRIVATE = 0x4000 | 0x40000

suite = harness.Suite("invariants-selftest")
libc = ctypes.CDLL(None, use_errno=True)


class Stand:
    """Stands in for Caisson: a ledger with one sealed run, and a control run whose verdict the test chooses."""

    def __init__(self):
        self.ledger = scratch.directory("ledger")
        self.control = "succeeded"
        self.words = []
        with contextlib.closing(self._open()) as connection:
            connection.executescript(
                "CREATE TABLE run (run_id TEXT); CREATE TABLE attempt (attempt_id TEXT, run_id TEXT, boundary_id TEXT, state TEXT);"
                "CREATE TABLE seal (attempt_id TEXT, run_id TEXT);"
                "INSERT INTO run VALUES ('run-1');"
                f"INSERT INTO attempt VALUES ('att-1', 'run-1', '{BOUNDARY}', 'sealed');"
                "INSERT INTO seal VALUES ('att-1', 'run-1');")

    def _open(self):
        return sqlite3.connect(os.path.join(self.ledger, "ledger.db"))

    def execute(self, statement):
        with contextlib.closing(self._open()) as connection:
            connection.execute(statement)
            connection.commit()

    def rows(self, query):
        with contextlib.closing(self._open()) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]

    def attempts(self):
        return self.rows("SELECT * FROM attempt")

    def boundary_ids(self):
        return {row["boundary_id"] for row in self.attempts()}

    def run(self, *_argv, **_keywords):
        verdict = self.words.pop(0) if self.words else self.control
        return result(verdict)


def result(verdict="succeeded", seconds=0.1):
    made = Result(["caisson"], 0 if verdict == "succeeded" else 125, b"", b"", seconds)
    made.receipt = {"verdict": verdict, "reason": "", "detail": "", "exit_code": 0, "signal": None, "times": {"cleanup_ms": 5},
                    "limits": {"wall_ms": 1000, "cancel_grace_ms": 0, "on_limit_grace_ms": 0, "drain_ms": 100}}
    return made


def breaks(name, break_it, **check):
    """Snapshot, break, check: exactly the one invariant fails. break_it(stand) gives a function that mends it again."""
    stand = Stand()
    watch = invariants.Watch(stand, canary_directory=invariants.make_canaries(scratch.directory("canary")), settle_s=SETTLE_S)
    equal(watch.check(result()), {}, "before it is broken")
    mend = break_it(stand, watch)
    try:
        equal(sorted(watch.check(check.pop("result", result()), **check)), [name] if name else [], "invariants that failed")
    finally:
        if mend:
            mend()


def spawn(body, uid=None):
    """A child that runs body, then waits for ever; returned when body is done."""
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        body()
        if uid is not None:
            os.setresuid(uid, uid, uid)
        os.write(done, b"x")
        while True:
            signal.pause()
    os.close(done)
    os.read(ready, 1)
    os.close(ready)
    return pid


def end(pid):
    def mend():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return mend


@suite.case("an untouched host breaks nothing")
def _():
    breaks(None, lambda stand, watch: None)


@suite.case("I1: a process left behind as our child")
def _():
    breaks("I1", lambda stand, watch: end(spawn(lambda: None)))


@suite.case("I1: a process with a guest's uid that is nobody's child of ours")
def _():
    def break_it(_stand, watch):
        pid = spawn(lambda: None, GUEST_UID)
        watch.children_before.add(pid)
        return end(pid)
    breaks("I1", break_it)


@suite.case("I1: a zombie")
def _():
    def break_it(_stand, _watch):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    breaks("I1", break_it)


def cgroup_of_boundary():
    point = proc.cgroup_mounts()[-1]
    path = os.path.join(point, BOUNDARY)
    os.mkdir(path)
    return path


@suite.case("I1: a cgroup directory named by the boundary")
def _():
    def break_it(_stand, _watch):
        path = cgroup_of_boundary()
        return lambda: os.rmdir(path)
    breaks("I1", break_it)


@suite.case("I1: a process in the boundary's cgroup, whatever its uid and parent")
def _():
    def break_it(_stand, watch):
        path = cgroup_of_boundary()
        pid = spawn(lambda: None)
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))
        watch.children_before.add(pid)

        def mend():
            end(pid)()
            harness.wait_until(lambda: not proc.read(os.path.join(path, "cgroup.procs")), 5, "the cgroup is empty")
            os.rmdir(path)
        return mend
    breaks("I1", break_it)


@suite.case("I2: a mount left behind")
def _():
    def break_it(_stand, _watch):
        point = scratch.directory("mount")
        subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
        return lambda: subprocess.run(["umount", point], check=True)
    breaks("I2", break_it)


@suite.case("I2: a mount that vanished")
def _():
    point = scratch.directory("mount")
    subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
    breaks("I2", lambda stand, watch: subprocess.run(["umount", point], check=True) and None)


def break_canary(change):
    def break_it(_stand, watch):
        change(watch.canary_directory)
    return break_it


CANARY_CHANGES = {
    "bytes": lambda d: open(os.path.join(d, "plain"), "ab").write(b"x"),
    "mode": lambda d: os.chmod(os.path.join(d, "secret"), 0o644),
    "owner": lambda d: os.chown(os.path.join(d, "directory"), 1, 1),
    "xattr": lambda d: os.setxattr(os.path.join(d, "plain"), "user.canary", b"other"),
    "link": lambda d: (os.unlink(os.path.join(d, "link")), os.symlink("secret", os.path.join(d, "link"))),
    "removal": lambda d: os.unlink(os.path.join(d, "setuid")),
}
for what, change_it in CANARY_CHANGES.items():
    suite.add(f"I3: a canary's {what}", lambda c=change_it: breaks("I3", break_canary(c)))


@suite.case("I3: a device node's mode")
def _():
    private_dev()
    os.mknod("/dev/caisson-selftest", 0o020600, os.makedev(1, 3))
    breaks("I3", lambda stand, watch: os.chmod("/dev/caisson-selftest", 0o666))


@suite.case("I3: a device node that appeared")
def _():
    private_dev()
    breaks("I3", lambda stand, watch: os.mknod("/dev/caisson-appeared", 0o020600, os.makedev(1, 3)))


def private_dev():
    """A /dev of our own (a tmpfs over it, in our mount namespace), once."""
    if not os.path.exists("/dev/.private"):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/dev"], check=True)
        os.mknod("/dev/null", 0o020666, os.makedev(1, 3))
        os.mkdir("/dev/shm")
        with open("/dev/.private", "w", encoding="ascii"):
            pass


@suite.case("I4: a staging file in the ledger's directory")
def _():
    def break_it(stand, _watch):
        os.makedirs(os.path.join(stand.ledger, "store", "tmp"))
        with open(os.path.join(stand.ledger, "store", "tmp", "half"), "wb"):
            pass
    breaks("I4", break_it)


@suite.case("I4: a directory named by the boundary in /tmp")
def _():
    def break_it(_stand, _watch):
        path = os.path.join("/tmp", BOUNDARY)
        os.mkdir(path)
        return lambda: os.rmdir(path)
    breaks("I4", break_it)


@suite.case("I5: a SysV shared memory segment")
def _():
    def break_it(_stand, _watch):
        identity = libc.shmget(0, 4096, 0o1600)
        holds(identity >= 0, "shmget")
        return lambda: libc.shmctl(identity, 0, None)
    breaks("I5", break_it)


@suite.case("I5: a SysV semaphore set")
def _():
    def break_it(_stand, _watch):
        identity = libc.semget(0, 1, 0o1600)
        holds(identity >= 0, "semget")
        return lambda: libc.semctl(identity, 0, 0)
    breaks("I5", break_it)


@suite.case("I5: a POSIX shared memory object")
def _():
    def break_it(_stand, _watch):
        with open("/dev/shm/caisson-selftest", "wb"):
            os.chown("/dev/shm/caisson-selftest", GUEST_UID, GUEST_UID)
        return lambda: os.unlink("/dev/shm/caisson-selftest")
    breaks("I5", break_it)


def listener(make):
    def break_it(_stand, watch):
        made = make()
        watch.own_fds += 1
        return made.close
    return break_it


def abstract_listener():
    made = socket.socket(socket.AF_UNIX)
    made.bind(f"\0caisson-selftest-{os.getpid()}")
    made.listen(1)
    return made


def path_listener():
    made = socket.socket(socket.AF_UNIX)
    made.bind(os.path.join(scratch.directory("listener"), "socket"))
    made.listen(1)
    return made


def tcp_listener():
    return socket.create_server(("127.0.0.1", 0))


for what, make_it in {"TCP": tcp_listener, "abstract": abstract_listener, "path": path_listener}.items():
    suite.add(f"I5: a listener on {what}", lambda m=make_it: breaks("I5", listener(m)))


@suite.case("I5: a key that a guest left")
def _():
    def break_it(_stand, _watch):
        serial = libc.syscall(248, b"user", b"caisson-selftest", b"x", 1, -4)  # add_key, user keyring
        if serial < 0:
            raise harness.Skip("this kernel has no keyrings")
        return lambda: libc.syscall(250, 21, serial, 0)  # KEYCTL_INVALIDATE
    breaks("I5", break_it)


@suite.case("I6: a descriptor left open")
def _():
    def break_it(_stand, _watch):
        fd = os.open("/", os.O_RDONLY)
        return lambda: os.close(fd)
    breaks("I6", break_it)


@suite.case("I6: a supervisor that grew")
def _():
    breaks("I6", lambda stand, watch: None, supervisor_rss=invariants.SUPERVISOR_RSS_MAX + 1)


@suite.case("I7: an attempt that is not sealed")
def _():
    breaks("I7", lambda stand, watch: stand.execute("UPDATE attempt SET state = 'running'"))


@suite.case("I7: a run without a terminal row")
def _():
    breaks("I7", lambda stand, watch: stand.execute("DELETE FROM seal"))


@suite.case("I7: a run with two terminal rows")
def _():
    breaks("I7", lambda stand, watch: stand.execute("INSERT INTO seal VALUES ('att-1', 'run-1')"))


@suite.case("I8: verdicts that differ")
def _():
    stand = Stand()
    equal(invariants.repeat_same(stand.run, 5), [])
    stand.words = ["succeeded", "succeeded", "boundary_error", "succeeded"]
    equal(len(invariants.repeat_same(stand.run, 5)), 1)


@suite.case("I9: an answer that came late")
def _():
    breaks("I9", lambda stand, watch: None, result=result(seconds=60))


@suite.case("I10: a control run that does not succeed")
def _():
    def break_it(stand, _watch):
        stand.control = "boundary_error"
    breaks("I10", break_it)


if __name__ == "__main__":
    if os.environ.get("CAISSON_SELFTEST_PRIVATE") != "1":
        # Mounts and device nodes are broken in a mount namespace of our own.
        os.environ["CAISSON_SELFTEST_PRIVATE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    proc.become_subreaper()
    sys.exit(suite.main())
