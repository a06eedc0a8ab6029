#!/usr/bin/python3
"""test_scratch.py - a work space on disk: as large as was asked for, no more, private to its run, and gone with it however that ends."""

import fcntl
import os
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as program, harness, proc, scratch, supervisor  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds, is_in  # noqa: E402
from support.invariants import Watch, loop_devices  # noqa: E402

suite = harness.Suite("scratch")

MIB = 1 << 20
DISK = ("--scratch", "disk", "--wall", "120s")
# The steps of making it; the worker dies there.
POINTS = ("scratch.image", "scratch.formatted", "scratch.attached", "scratch.mounted")
GUEST_DEAD_S = 5


def run(*argv, options=(), **keywords):
    return Caisson().run(*argv, options=(*DISK, *options), **keywords)


def evidence(result, name):
    return next((line["detail"] for line in result.receipt["boundary"]["evidence"] if line["name"] == name), None)


@suite.case("one file system of exactly that size and number of inodes is at /box, /tmp and /dev/shm, and nothing is left of it")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    code = ("import os\nfor path in ('/box', '/tmp', '/dev/shm'):\n    s = os.statvfs(path)\n"
            "    print(os.stat(path).st_dev, s.f_blocks * s.f_frsize, s.f_files)")
    result = caisson.run("python3", "-c", code, options=(*DISK, "--work", "20M"))
    equal(result.word(), "OK", str(result))
    holds(len(set(result.text.splitlines())) == 1 and result.text.splitlines()[0].endswith(f" {20 * MIB} 4096"), str(result))
    equal(evidence(result, "limit.work"), f"image on disk, {20 * MIB} bytes, 4096 inodes")
    equal((result.receipt["limits"]["scratch"], result.receipt["limits"]["work_bytes"]), ("disk", 20 * MIB))
    watch.hold(result)


@suite.case("it is not memory: a guest of 64 MiB writes and reads 256 MiB; in memory that is too much")
def _():
    argv = ("sh", "-c", "head -c 268435456 /dev/zero > a && head -c 268435456 /dev/zero | cmp - a && rm a")
    result = run(*argv, options=("--memory", "64M", "--work", "300M"))
    equal(result.word(), "OK", str(result))
    equal(result.receipt["space_full"], False, str(result))
    equal(Caisson().run(*argv, options=("--memory", "64M", "--work", "300M", "--wall", "120s")).word(), "MLE", "in memory")


@suite.case("a full space is ENOSPC for the guest and a recorded fact; so is the last inode")
def _():
    code = ("import errno, os\nwritten = 0\n"
            "try:\n    with open('/tmp/full', 'wb', 0) as file:\n        while True:\n            written += file.write(bytes(65536))\n"
            "except OSError as error:\n    print(errno.errorcode[error.errno], written)")
    result = run("python3", "-c", code, options=("--work", "8M"))
    word, written = result.text.split()
    equal((result.word(), word), ("OK", "ENOSPC"), str(result))
    holds(6 * MIB < int(written) <= 8 * MIB, f"{written} bytes of 8 MiB")
    equal(result.receipt["space_full"], True, str(result))
    files = run("python3", "-c", "import errno\nmade = 0\ntry:\n    while True:\n        open(f'/box/{made}', 'x').close()\n        made += 1\n"
                "except OSError as error:\n    print(errno.errorcode[error.errno], made)")
    word, made = files.text.split()
    equal((files.word(), word), ("OK", "ENOSPC"), str(files))
    holds(4000 < int(made) <= 4096, f"{made} files of 4096 inodes")
    equal(files.receipt["space_full"], True, str(files))


@suite.case("nosuid and nodev hold on it, and the guest sees no device of it")
def _():
    code = ("import os, stat\nfor line in open('/proc/self/mountinfo'):\n    if line.split()[4] in ('/box', '/tmp', '/dev/shm'):\n"
            "        print(line.split()[5][:16])\nprint([name for name in os.listdir('/dev') if name.startswith('loop')])\n"
            "try:\n    os.mknod('/box/n', stat.S_IFBLK | 0o600, os.makedev(7, 0))\nexcept PermissionError:\n    print('EPERM')")
    result = run("python3", "-c", code)
    equal(result.text, 3 * "rw,nosuid,nodev,\n" + "[]\nEPERM\n", str(result))


@suite.case("inputs are in it and outputs beside it, as with memory")
def _():
    source = scratch.file("in.txt", b"sealed\n")
    caisson = Caisson()
    result = caisson.run("sh", "-c", "cat in/in.txt > /out/copy && cat /box/text", options=(
        *DISK, "--input", f"{os.path.dirname(source)}:/box/in", "--input", f"{source}:/box/text", "--require-output", "copy"))
    equal((result.word(), result.text), ("OK", "sealed\n"), str(result))
    equal(caisson.call("cat", "latest", "copy").stdout, b"sealed\n")


@suite.case("what is left unwritten is not written for nobody: a guest that filled 200 MiB is cleaned up at once")
def _():
    result = run("sh", "-c", "head -c 200000000 /dev/zero > a", options=("--memory", "512M", "--work", "256M"))
    equal(result.word(), "OK", str(result))
    holds(result.receipt["times"]["cleanup_ms"] < harness.patience(2000), f"cleanup took {result.receipt['times']['cleanup_ms']} ms")


@suite.case("eight at once have eight of them")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    code = "echo mine > /tmp/mine && sleep 0.3 && test $(ls /tmp | wc -l) = 1 && cat /tmp/mine"
    runs = [subprocess.Popen(caisson.command("run", *DISK, "--", "sh", "-c", code), stdout=subprocess.PIPE,
                             env=caisson.environment()) for _ in range(8)]
    equal([(each.communicate()[0], each.returncode) for each in runs], [(b"mine\n", 0)] * 8)
    watch.hold()


def refused(result, word):
    equal((result.verdict, result.reason, result.status), ("not_launched", "limit_unenforceable", 125), str(result))
    holds(word in result.receipt["detail"], f"{word} in {result}")


@suite.case("a ledger in memory has no disk to give: refused by name")
def _():
    ledger = os.path.join("/dev/shm", os.path.basename(scratch.directory("ledger")))
    os.mkdir(ledger, 0o700)
    try:
        refused(Caisson(ledger=ledger).run("echo", "marker", options=DISK), "limit.work: the ledger's directory is in memory")
    finally:
        subprocess.run(["rm", "-r", ledger], check=True)


class Hidden(Caisson):
    """Runs where one file of the host is hidden behind another, in a mount namespace of its own."""

    def __init__(self, path, behind):
        super().__init__()
        self.words = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "-", behind, path]

    def command(self, verb, *words):
        return self.words + super().command(verb, *words)


@suite.case("without mkfs.ext4, and without loop devices: refused by name, and doctor says what to do")
def _():
    for path, word, advice in (("/usr/sbin/mkfs.ext4", "mkfs.ext4 (e2fsprogs)", b"e2fsprogs"),
                               ("/dev/loop-control", "no loop device", None)):
        hidden = Hidden(path, "/dev/null")
        refused(hidden.run("echo", "marker", options=DISK), word)
        equal(hidden.run("true").word(), "OK", "in memory it is none of its business")
        if advice:
            done = subprocess.run(hidden.words + [hidden.binary, "doctor"], capture_output=True, env=hidden.environment(), check=False)
            holds(b"scratch.disk" in done.stdout and advice in done.stdout, str(done.stdout))


@suite.case("a disk without room is refused by name, and takes nothing")
def _():
    stat = os.statvfs(scratch.root())
    room = stat.f_bavail * stat.f_frsize
    if room > 900 << 30:
        raise harness.Skip("this disk has more room than a work space may have")
    caisson = Caisson()
    refused(caisson.run("true", options=(*DISK, "--work", f"{(room >> 30) + 100}G")), "limit.work: no room for an image")
    equal(os.statvfs(scratch.root()).f_bavail * stat.f_frsize >= room - (1 << 30), True, "the room is there as before")


@suite.case("a size that was not set is found when it is read back")
def _():
    faulty = Caisson(program.need(program.FAULT_BIN))
    result = faulty.run("echo", "marker", options=DISK, env={"CAISSON_OMIT": "limit.work"})
    refused(result, f"limit.work: asked for {64 * MIB} bytes and 4096 inodes")
    equal(loop_devices(faulty.ledger), [])


def die_at(point):
    faulty = Caisson(program.need(program.FAULT_BIN))
    watch = Watch(faulty)
    result = faulty.run("echo", "marker", options=DISK, env={"CAISSON_FAULT": f"{point}:kill"})
    holds(result.verdict in ("not_launched", None) and b"marker" not in result.guest_stdout, str(result))
    equal(faulty.recover().status, 0)
    harness.wait_until(lambda: not loop_devices(faulty.ledger), GUEST_DEAD_S, "the loop device is gone")
    equal(faulty.verify().status, 0)
    supervisor.reap_orphans()
    watch.hold()


for entry in POINTS:
    suite.add(f"kill -9 of the worker at {entry}", lambda point=entry: die_at(point))


def both_die_at(point):
    faulty = Caisson(program.need(program.FAULT_BIN))
    watch = Watch(faulty)
    started = supervisor.Supervisor.start(faulty, "sleep", "60", options=DISK, env={"CAISSON_FAULT": f"{point}:stop"},
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    harness.wait_until(lambda: any(proc.Process(pid).state == "T" for pid in started.workers()), 10, f"the worker stops at {point}")
    started.signal("both", signal.SIGKILL)
    supervisor.wait_dead(started.boundaries, GUEST_DEAD_S, known=[started.keeper])
    started.reap()
    for _ in range(2):
        equal(faulty.recover().status, 0)
    equal(loop_devices(faulty.ledger), [])
    equal({row["verdict"] for row in faulty.list()}, {"not_launched"})
    equal(faulty.verify().status, 0)
    supervisor.reap_orphans()
    watch.hold()


for entry in POINTS:
    suite.add(f"kill -9 of keeper and worker at {entry}", lambda point=entry: both_die_at(point))


@suite.case("kill -9 while the guest writes to it: dead, gone, recovered")
def _():
    for target in ("worker", "both", "group"):
        caisson = Caisson()
        watch = Watch(caisson)
        started = supervisor.Supervisor.start(caisson, "sh", "-c", "while :; do head -c 8000000 /dev/zero > /tmp/a; done",
                                              options=DISK, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started.wait_guest("head")
        equal(len(loop_devices(caisson.ledger)), 1)
        started.signal(target, signal.SIGKILL)
        supervisor.wait_dead(started.boundaries, GUEST_DEAD_S, known=[started.keeper])
        started.reap()
        equal(caisson.recover().status, 0)
        equal(loop_devices(caisson.ledger), [])
        is_in(caisson.list()[0]["verdict"], {"interrupted", "boundary_error"}, target)
        supervisor.reap_orphans()
        watch.hold()


LOOP_CONFIGURE, LOOP_CTL_GET_FREE, LO_AUTOCLEAR = 0x4C0A, 0x4C82, 4
LOOP_INFO = struct.Struct("=5Q4I64s64s32s2Q")


def show_image(ledger, name):
    """A loop device as a boundary has it: of an unnamed image beside the ledger, with this name. The descriptor holds it."""
    image = os.open(os.path.join(ledger, "store"), os.O_TMPFILE | os.O_RDWR, 0o600)
    os.ftruncate(image, MIB)
    info = LOOP_INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, LO_AUTOCLEAR, name.encode(), b"", b"", 0, 0)
    with open("/dev/loop-control", "r+b", buffering=0) as control:
        device = os.open(f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}", os.O_RDWR)
    fcntl.ioctl(device, LOOP_CONFIGURE, struct.pack("=2I", image, 4096) + info + bytes(64))
    os.close(image)
    return device


@suite.case("a sweep finds a device of this ledger whose groups are gone, says so while it is held, and leaves others alone")
def _():
    caisson = Caisson()
    equal(caisson.run("true").word(), "OK")
    ledger_id = caisson.rows("SELECT ledger_id FROM ledger")[0]["ledger_id"]
    ours, foreign = f"{ledger_id}.bnd-aaaaaaaaaaaaaaaa", "led-bbbbbbbbbbbbbbbb.bnd-aaaaaaaaaaaaaaaa"
    held = [show_image(caisson.ledger, ours), show_image(caisson.ledger, foreign)]
    try:
        said = caisson.call("recover", "--dry-run").stdout.decode()
        holds("bnd-aaaaaaaaaaaaaaaa" in said and said.count("bnd-") == 1, said)
        busy = caisson.recover(timeout=60)
        holds(busy.status != 0 and b"loop device" in busy.stdout + busy.stderr, str(busy))
        equal(len(loop_devices(caisson.ledger)), 2)
        os.close(held.pop(0))
        equal(caisson.recover().status, 0)
        equal(len(loop_devices(caisson.ledger)), 1, "the foreign one")
    finally:
        for device in held:
            os.close(device)


@suite.case("a device whose name cannot be read is not taken for absent")
def _():
    caisson = Caisson()
    equal(caisson.run("true").word(), "OK")
    ledger_id = caisson.rows("SELECT ledger_id FROM ledger")[0]["ledger_id"]
    device = show_image(caisson.ledger, f"{ledger_id}.bnd-aaaaaaaaaaaaaaaa")
    try:
        path = os.readlink(f"/proc/self/fd/{device}")
        hide = ("unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', path)
        done = subprocess.run((*hide, *caisson.command("recover", "--dry-run")), env=caisson.environment(), capture_output=True, text=True,
                              check=False)
        holds(done.returncode != 0 and f"{path}: whose it is" in done.stdout + done.stderr, str(done))
    finally:
        os.close(device)


@suite.case("while something still holds it, recovery says so and seals nothing; afterwards it does")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    started = supervisor.Supervisor.start(caisson, "sleep", "60", options=DISK, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
    guest = started.wait_guest("sleep")[0]
    holder = os.open(f"/proc/{guest}/root/tmp", os.O_RDONLY | os.O_DIRECTORY)
    started.signal("group", signal.SIGKILL)
    supervisor.wait_dead(started.boundaries, GUEST_DEAD_S, known=[started.keeper])
    started.reap()
    busy = caisson.recover(timeout=60)
    holds(busy.status != 0 and len(loop_devices(caisson.ledger)) == 1, f"{busy}")
    equal(caisson.list()[0]["verdict"], "", "not sealed")
    os.close(holder)
    equal(caisson.recover().status, 0)
    equal((loop_devices(caisson.ledger), caisson.list()[0]["verdict"]), ([], "boundary_error"))
    supervisor.reap_orphans()
    watch.hold()


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
