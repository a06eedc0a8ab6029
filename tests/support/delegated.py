"""delegated.py - an ordinary user with a cgroup of his own, as an administrator would give it, to run Caisson as.

    CAISSON_TEST_AS=54322 tests/system/test_cli.py      a whole suite as him

What is made here is the test's own: groups named after this process, which it joins and leaves again at its end; and, in a mount
namespace that only this process and its children are in, an /etc that knows the user and his range of subordinate ids. The range lies
where guests' uids are looked for (proc.GUEST_UID_FIRST).
"""

import atexit
import ctypes
import functools
import os
import shutil
import tempfile

from support import proc

NAME = "caisson-tester"
RANGE_FIRST, RANGE_COUNT = 0x7fff0000, 65536
LEAF = "callers"
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def _mount(source, target, flags):
    _checked(_libc.mount(source.encode(), target.encode(), None, ctypes.c_ulong(flags), None), f"mount on {target}")


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def hierarchies():
    """(mount point, is it the unified one) of each hierarchy that Caisson uses."""
    found = []
    for line in proc.read("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and set(options.split(",")) & {"memory", "pids", "cpu", "cpuacct", "cpuset"}):
            found.append((left.split(" ")[4], kind == "cgroup2"))
    return found


def own_unified_group():
    """Path of our group in the unified hierarchy, or None."""
    for line in proc.read("/proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def move_to(group):
    _write(os.path.join(group, "cgroup.procs"), "0")


class User:
    """uid: numbers that nobody else on this machine has. ranges: does he have subordinate ids?"""

    def __init__(self, uid, ranges=True):
        self.uid, self.ranges = uid, ranges
        self.owner = os.getpid()
        self.home = tempfile.mkdtemp(prefix="caisson-user.", dir="/tmp")
        os.chmod(self.home, 0o755)
        os.mkdir(self.path("run"), 0o700)
        for path in (self.home, self.path("run")):
            os.chown(path, uid, uid)
        self.parent = f"caisson-test-{os.getpid()}"
        self.came_from = None
        self.programs = {}
        atexit.register(self.remove)
        self._make_etc()

    def path(self, name):
        return os.path.join(self.home, name)

    def _make_etc(self):
        _checked(_libc.unshare(CLONE_NEWNS), "unshare")
        _mount("none", "/", MS_REC | MS_PRIVATE)
        own = {"passwd": f"{NAME}:x:{self.uid}:{self.uid}::{self.home}:/bin/sh\n", "group": f"{NAME}:x:{self.uid}:\n"}
        own["subuid"] = own["subgid"] = f"{NAME}:{RANGE_FIRST}:{RANGE_COUNT}\n" if self.ranges else ""
        os.mkdir(self.path("etc"), 0o755)
        for name, line in own.items():
            text = proc.read(f"/etc/{name}") if name in ("passwd", "group") else ""
            _write(self.path("etc/" + name), text + line)
            if not os.path.exists(f"/etc/{name}"):
                _write(f"/etc/{name}", "")
            _mount(self.path("etc/" + name), f"/etc/{name}", MS_BIND)

    def delegate(self, parent=None):
        """What a refusal advises (src/boundary/linux/place.c); this process then is in the leaf."""
        parent = parent or self.parent
        for mount, unified in hierarchies():
            group = os.path.join(mount, parent)
            os.mkdir(group)
            files = ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads") if unified else ("cgroup.procs", "tasks")
            files += tuple(name for name in ("cpuset.cpus", "cpuset.mems") if not unified and os.path.exists(os.path.join(group, name)))
            for name in (".", *files):
                os.chown(os.path.join(group, name), self.uid, self.uid)
            if unified:
                os.mkdir(os.path.join(group, LEAF))
                self.came_from = os.path.join(mount, own_unified_group().lstrip("/"), "cgroup.procs")
                move_to(os.path.join(group, LEAF))

    def program(self, binary):
        """The same program where he may read it, with those that it starts beside it."""
        if binary not in self.programs:
            folder = tempfile.mkdtemp(prefix="bin.", dir=self.home)
            os.chmod(folder, 0o755)
            others = (os.path.join(os.path.dirname(binary), name) for name in ("caisson-init", "caisson-front", "caisson-client"))
            for path in (binary, *filter(os.path.exists, others)):
                shutil.copy(os.path.realpath(path), os.path.join(folder, os.path.basename(path)))
            self.programs[binary] = os.path.join(folder, os.path.basename(binary))
        return self.programs[binary]

    def directory(self, name):
        path = tempfile.mkdtemp(prefix=name + ".", dir=self.home)
        os.chown(path, self.uid, self.uid)
        return path

    def command(self, *argv, groups=()):
        """argv, as the user. It replaces the process that it is started in."""
        further = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
        return ["/usr/bin/setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), *further, "--", *argv]

    def environment(self):
        return {"HOME": self.home, "XDG_RUNTIME_DIR": self.path("run")}

    def processes(self):
        """His, and those of his range."""
        def his(uid):
            return uid == self.uid or RANGE_FIRST <= uid < RANGE_FIRST + RANGE_COUNT
        return [process for process in proc.processes() if any(his(uid) for uid in process.uids)]

    def remove(self):
        if os.getpid() != self.owner:
            return
        if self.came_from:
            _write(self.came_from, "0")
        for mount, _ in hierarchies():
            for group in (f"{self.parent}/{LEAF}", self.parent):
                try:
                    os.rmdir(os.path.join(mount, group))
                except FileNotFoundError:
                    pass
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(f"/tmp/caisson-{self.uid}", ignore_errors=True)  # the locks of a run without XDG_RUNTIME_DIR


@functools.cache
def from_environment():
    """The user that CAISSON_TEST_AS asks for, placed in a group of his own; None when it does not."""
    uid = os.environ.get("CAISSON_TEST_AS")
    if not uid:
        return None
    user = User(int(uid))
    user.delegate()
    return user
