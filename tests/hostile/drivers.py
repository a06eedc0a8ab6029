"""drivers.py - the rows of the corpus that need more than one program under one boundary: another run beside it, a listener of the
test's own, a terminal, a fault point, a killed supervisor.

A driver gets (caisson, path of the compiled guest or None) and returns the word to be shown in the table; invariants are asserted
by the driver's caller around it, and by the driver itself where a state in between matters.
"""

import os
import random
import signal
import socket
import struct
import subprocess
import time

import cases
from support import guests, harness, proc, scratch, supervisor
from support import caisson as product
from support.harness import equal, holds, is_in
from support.terminal import Terminal

EARLY_KILLS = harness.env_int("CAISSON_TEST_EARLY_KILLS", 300)
TAILS = harness.env_int("CAISSON_TEST_TAILS", 1000)
UNREAD_BYTES = harness.env_int("CAISSON_TEST_UNREAD_BYTES", 1 << 30)


def with_program(path, options=()):
    return (*options, "--input", f"{path}:{cases.BOX}")


def run_guest(caisson, path, *arguments, options=(), **keywords):
    return caisson.run(cases.BOX, *map(str, arguments), options=with_program(path, options), **keywords)


def start_guest(caisson, path, *arguments, options=(), **keywords):
    words = (cases.BOX, *map(str, arguments))
    return supervisor.Supervisor.start(caisson, *words, options=with_program(path, options), **keywords)


def expect(result, word):
    equal((result.word(), result.status), (word, product.exit_status_of(word)), str(result))
    return word


def fault_caisson(caisson):
    """The same ledger, driven by the build with fault points."""
    return product.Caisson(product.FAULT_BIN, caisson.ledger)


# H14
def drive_spy(caisson, path):
    target = subprocess.Popen(["sleep", "60"])
    try:
        seen = cases.lines(guests.bare(path, "only", str(target.pid)))
        is_in(seen["ptrace.other"], {"0"}, "a bare run may look into another process")
    finally:
        target.kill()
        target.wait()
    other = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"))
    try:
        sleeper = other.wait_guest("sleep")[0]
        result = run_guest(caisson, path, sleeper)
        expect(result, "OK")
        equal(cases.lines(result).pop("seen"), "0", "processes that could be looked into")
        allowed = cases.REFUSED | {"ESRCH", "ENOENT"}
        cases.all_refused(result, allowed, "ptrace.", "seize.", "readv.", "mem.", at_least=12)
        holds(not proc.Process(sleeper).gone, "the other run lives on")
    finally:
        other.stop()
    return "OK"


# H15
def drive_stuck_cleanup(caisson, _path):
    faulty = fault_caisson(caisson)
    stuck = faulty.run("true", env={"CAISSON_FAULT": "linux.cleanup:eio"})
    equal(stuck.status, 125, str(stuck))
    holds(stuck.provisional is not None, f"the result is said to be provisional: {stuck}")
    quarantined = [row for row in caisson.attempts() if row["state"] == "quarantined"]
    equal(len(quarantined), 1, "quarantined attempts")
    beside = caisson.run("true")
    expect(beside, "OK")
    equal([row["state"] for row in caisson.attempts() if row["attempt_id"] == quarantined[0]["attempt_id"]], ["quarantined"],
          "a later success lifts nothing")
    recovered = caisson.recover()
    equal(recovered.status, 0, str(recovered))
    receipt = caisson.show(quarantined[0]["run_id"])
    equal((receipt["verdict"], receipt["reason"]), ("boundary_error", "not_verified_empty"))
    supervisor.reap_orphans()
    return "SBX_ERR"


# H18
def drive_supervisor_killed(caisson, path):
    for target in ("keeper", "worker", "group"):
        run = start_guest(caisson, path, "stay", options=("--wall", "60s"))
        run.wait_guest("prog", 2)
        run.signal(target, signal.SIGKILL)
        supervisor.wait_dead(run.boundaries, 2.0, known=[run.keeper])
        status = run.reap()
        equal(status, 125 if target == "worker" else -signal.SIGKILL, f"exit status with {target} killed")
        recovered = caisson.recover()
        equal(recovered.status, 0, str(recovered))
        supervisor.reap_orphans()
    words = {(row["verdict"], row["reason"]) for row in caisson.list()[:3]}
    holds({verdict for verdict, _ in words} <= {"interrupted", "boundary_error"}, f"verdicts {words}")
    return "INTERRUPTED"


# H19
def drive_killed_early(caisson, path):
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    for number in range(EARLY_KILLS):
        run = start_guest(caisson, path, "sleep", options=("--wall", "60s"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.05))
        run.signal("keeper", signal.SIGKILL)
        run.reap()
        if number % 20 == 19 or number == EARLY_KILLS - 1:
            supervisor.wait_dead(caisson.boundary_ids, 2.0)
            harness.wait_until(lambda: not _orphans(), 2.0, f"no orphan is left (seed {seed}, kill {number})")
            equal(caisson.recover().status, 0, "recover")
    verified = caisson.verify()
    equal(verified.status, 0, str(verified))
    return "INTERRUPTED"


def _orphans():
    supervisor.reap_orphans()
    return [pid for pid in proc.children(os.getpid()) if not proc.Process(pid).gone]


# H33
def drive_slow_cleanup(caisson, _path):
    result = fault_caisson(caisson).run("true", options=("--wall", "2s"), env={"CAISSON_FAULT": "linux.cleanup:delay_10000"})
    expect(result, "OK")
    holds(result.receipt["times"]["cleanup_ms"] >= 10000, f"cleanup_ms: {result.receipt['times']}")
    holds(result.receipt["usage"]["wall_ms"] < 2000, f"wall_ms: {result.receipt['usage']}")
    return "OK"


# H42
def drive_ipc(caisson, path):
    before = _message_queues()
    for _ in range(2):
        result = run_guest(caisson, path)
        expect(result, "OK")
        seen = cases.lines(result)
        equal((seen["shm"], seen["sem"], seen["msg"], seen["posix"]), ("0", "0", "0", "0"), "objects made in the guest")
        is_in(seen["mqueue"], {"0", "EMFILE", "EPERM", "ENOSYS", "ENOSPC"})
    equal(_message_queues(), before, "POSIX message queues of the host")
    return "OK"


def _message_queues():
    """Looked at through a mount that only the asking process has."""
    done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t mqueue none /mnt && ls -A /mnt"], capture_output=True, check=True)
    return set(done.stdout.split())


# H56
def drive_tails(caisson, path):
    expected = guests.bare(path, "tail", "65537").encode()
    equal(len(expected), 65537)
    for number in range(TAILS):
        result = caisson.run_plain(cases.BOX, "tail", "65537", options=with_program(path))
        equal((result.status, len(result.stdout)), (0, len(expected)), f"status and length of output {number}: {result.stderr!r}")
        holds(result.stdout == expected, f"bytes of output {number}")
    return "OK"


# H58
def drive_escapes(caisson, path):
    words = (cases.BOX, "escapes")
    options = with_program(path)
    raw = caisson.run_plain(*words, options=options)
    holds(b"\033]52;c;aGk=\007" in raw.stdout and b"\x9b" in raw.stdout, f"piped output is the exact bytes: {raw.stdout!r}")
    terminal = Terminal(caisson.command("run", *options, "--", *words), caisson.environment({"TERM": "xterm"}))
    status, seen = terminal.finish()
    terminal.close()
    equal(status, 0)
    is_in(seen.count(b"\n"), {1, 2}, "lines")
    dangerous = [byte for byte in seen if (byte < 32 and byte not in (9, 10, 13)) or byte == 127 or 0x80 <= byte <= 0x9f]
    equal(dangerous, [], f"control bytes in {seen!r}")
    holds(b"\rover" not in seen, "a carriage return is escaped too")
    holds(b"^[" in seen and b"red" in seen, f"escaped and still to be read: {seen!r}")
    return "OK"


# H61
def drive_pass_descriptors(caisson, path):
    with Listeners() as outside:
        # Not through pipes of ours: their write ends would wait in our own listeners.
        subprocess.run([path, "pass", outside.abstract, outside.path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       check=True)
        equal(outside.received(), 2, "a bare run hands its descriptors over")
        result = run_guest(caisson, path, "pass", outside.abstract, outside.path)
        expect(result, "OK")
        cases.all_refused(result, {"ECONNREFUSED", "ENOENT", "EPERM", "EACCES"}, at_least=2)
        equal(outside.received(), 0, "connections from the guest")
    return "OK"


# H62
def drive_forged_receipt(caisson, path):
    genuine = caisson.run("true")
    forged = scratch.file("receipt.json", genuine.stdout)
    result = run_guest(caisson, path, "/box/receipt.json", options=("--input", f"{forged}:/box/receipt.json"))
    expect(result, "NZ(3)")
    equal(result.guest_stdout, genuine.stdout, "the forgery is output and nothing else")
    equal(caisson.verify().status, 0, "verify --all")
    return "NZ(3)"


# H63
def drive_unread_input(caisson, path):
    huge = scratch.file("huge")
    os.truncate(huge, UNREAD_BYTES)
    expect(run_guest(caisson, path, "none", options=("--stdin", huge)), "NZ(5)")
    result = run_guest(caisson, path, "one", options=("--stdin", huge))
    equal(cases.lines(result), {"read": "1"})
    os.unlink(huge)
    return expect(result, "NZ(6)")


# H64
def drive_no_input(caisson, path):
    wanted = {"read": "0", "fd0": "char 1:3"}
    result = run_guest(caisson, path, "what")
    expect(result, "OK")
    equal(cases.lines(result), wanted)
    command = caisson.command("run", *with_program(path), "--", cases.BOX, "what")
    closed = subprocess.run(["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, check=False,
                            env=caisson.environment())
    equal((closed.returncode, cases.lines(closed.stdout.decode())), (0, wanted), f"with stdin closed: {closed.stderr!r}")
    return "OK"


# H85
def drive_environ(caisson, path):
    seen = guests.bare(path, "environ", env={"SERVER_SECRET": "hush"})
    holds("env.self.SERVER_SECRET=hush" in seen, "a bare run inherits the secret")
    result = run_guest(caisson, path, "environ", env={"SERVER_SECRET": "hush", "LD_PRELOAD": "", "SSH_AUTH_SOCK": "/tmp/hush"})
    expect(result, "OK")
    cases.check_environ(result)
    return "OK"


# H91
def drive_terminal(caisson, path):
    bare = Terminal([path])
    bare.finish()
    injected = bare.pending_input()
    bare.close()
    if proc.read("/proc/sys/dev/tty/legacy_tiocsti").strip() != "0":
        holds(b"X" in injected, "a bare run injects into its terminal")
    terminal = Terminal(caisson.command("run", *with_program(path), "--", cases.BOX), caisson.environment())
    status, seen = terminal.finish()
    injected = terminal.pending_input()
    terminal.close()
    equal((status, injected), (0, b""), "exit status, and bytes in the terminal's input")
    values = cases.lines(seen.decode().replace("\r", ""))
    holds(values.pop("tty") != "0", "no terminal can be opened")
    holds(len(values) >= 12, f"{len(values)} requests were tried")
    for name, value in values.items():
        is_in(value, {"EPERM", "EACCES"}, name)
    return "OK"


# H92
def drive_network(caisson, path):
    with Listeners() as outside:
        bare = cases.lines(guests.bare(path, "reach", str(outside.port), outside.abstract, outside.path))
        reached = {name: bare[name] for name in ("tcp.loopback", "unix.abstract", "unix.path")}
        equal(set(reached.values()), {"0"}, f"a bare run reaches the test's listeners: {reached}")
        outside.received()
        result = run_guest(caisson, path, "reach", outside.port, outside.abstract, outside.path, _own_address())
        expect(result, "OK")
        unreachable = {"ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "ENETDOWN", "EPERM", "EACCES", "ENOSYS",
                       "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENOENT"}
        cases.all_refused(result, unreachable, at_least=24)
        for name in ("raw", "packet", "netlink.route", "netlink.audit", "vsock", "alg", "xdp"):
            is_in(cases.lines(result)[name], {"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT"}, name)
        loading = {name: how for name, how in cases.lines(result).items() if name.startswith("module.")}
        equal((len(loading), set(loading.values())), (5, {"EPERM"}), f"the kernel is not asked to load anything: {loading}")
        equal(outside.received(), 0, "connections from the guest")
        server = start_guest(caisson, path, "serve", outside.port + 1 if outside.port < 65535 else 1024, options=("--wall", "60s"))
        try:
            server.wait_guest("prog")
            equal(server.popen.stdout.readline(), b"serving\n")
            other = run_guest(caisson, path, "reach", outside.port + 1, outside.abstract, outside.path)
            expect(other, "OK")
            is_in(cases.lines(other)["tcp.loopback"], unreachable, "the loopback of another run")
        finally:
            server.stop()
    return "OK"


def _own_address():
    """An address of this host that is not loopback, without sending anything."""
    previous = ""
    for line in proc.read("/proc/net/fib_trie").splitlines():
        if "/32 host LOCAL" in line and not previous.startswith("127."):
            return previous
        previous = line.strip().removeprefix("|-- ")
    return "10.0.0.1"


class Listeners:
    """The test's own listeners on loopback, an abstract name and a path; what is received by them is counted."""

    def __init__(self):
        self.tcp = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self.tcp.getsockname()[1]
        self.abstract = f"@caisson-test-{os.getpid()}-{random.randrange(1 << 32):x}"
        self.path = os.path.join(scratch.directory("listener"), "socket")
        self.sockets = [self.tcp]
        for name in ("\0" + self.abstract[1:], self.path):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(name)
            listener.listen(16)
            self.sockets.append(listener)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for listener in self.sockets:
            listener.close()
        os.unlink(self.path)

    def received(self):
        """Accepts what is waiting, closes it and every descriptor that came with it; returns the number of connections."""
        count = 0
        for listener in self.sockets:
            listener.settimeout(0.05)
            while True:
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    break
                count += 1
                _drop_descriptors(connection)
                connection.close()
        return count


def _drop_descriptors(connection):
    if connection.family != socket.AF_UNIX:
        return
    connection.settimeout(0.05)
    try:
        _, control, _, _ = connection.recvmsg(16, socket.CMSG_SPACE(64))
    except OSError:
        return
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            for fd in struct.unpack(f"{len(data) // 4}i", data[:len(data) // 4 * 4]):
                os.close(fd)
