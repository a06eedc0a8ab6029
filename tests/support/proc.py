"""proc.py - what the kernel says about processes and cgroups of this host, read from /proc."""

import contextlib
import ctypes
import os
import re

GUEST_UID_FIRST = 0x70000000  # host uids from here up belong to guests
BOUNDARY_ID = re.compile(r"bnd-[a-z2-7]{16}")
PR_SET_CHILD_SUBREAPER = 36
PR_CAPBSET_DROP = 24
NR_IOPRIO_SET, NR_IOPRIO_GET = 251, 252  # x86-64

_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper():
    """Orphans of what we start come to us and not to the host's pid 1, so that none can hide."""
    if _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def set_personality(persona):
    if _libc.personality(ctypes.c_ulong(persona)) == -1:
        raise OSError(ctypes.get_errno(), "personality")


def drop_from_bounds(capabilities):
    """What root executes then has none of these; a number that is no capability is skipped."""
    for number in capabilities:
        _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)


def set_real_time_io():
    who_process, class_real_time = 1, 1
    if _libc.syscall(NR_IOPRIO_SET, who_process, 0, class_real_time << 13 | 4) != 0:
        raise OSError(ctypes.get_errno(), "ioprio_set")


@contextlib.contextmanager
def files_of(uid):
    """Files that this thread opens or makes meanwhile are those of this user: what root made in his ledger, for a moment, he could not open."""
    _libc.setfsgid(uid)
    _libc.setfsuid(uid)
    try:
        yield
    finally:
        _libc.setfsuid(0)
        _libc.setfsgid(0)


def reap_orphans():
    """Those that came to us and are dead by now."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


class Process:
    """One process as /proc shows it at one moment; `gone` when it had ended before it was read."""

    def __init__(self, pid):
        self.pid = pid
        fields = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
        self.gone = not fields
        self.name = fields.get("Name", "").strip()
        self.state = fields.get("State", " ").strip()[:1]
        self.parent = int(fields.get("PPid", "0"))
        self.uids = [int(word) for word in fields.get("Uid", "").split()]
        self.cgroup = read(f"/proc/{pid}/cgroup")

    @property
    def is_guest(self):
        return any(uid >= GUEST_UID_FIRST for uid in self.uids)

    def boundaries(self):
        return set(BOUNDARY_ID.findall(self.cgroup))

    def __str__(self):
        return f"pid {self.pid} ({self.name}, state {self.state}, uid {self.uids[:1]}, parent {self.parent})"


def processes():
    found = (Process(pid) for pid in pids())
    return [process for process in found if not process.gone]


def children(pid):
    """Direct children, zombies included, of every thread of pid."""
    result = set()
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return result
    for task in tasks:
        result.update(int(word) for word in read(f"/proc/{pid}/task/{task}/children").split())
    return result


def sessions(pids):
    """The sessions that these processes are in; one that has ended meanwhile is in none."""
    found = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.add(os.getsid(pid))
    return found


def descendants(pid):
    result, todo = set(), [pid]
    while todo:
        for child in children(todo.pop()):
            if child not in result:
                result.add(child)
                todo.append(child)
    return result


def cgroup_mounts():
    """Mount points of every cgroup hierarchy, v1 and v2."""
    points = []
    for line in read("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        if right.split(" ")[0] in ("cgroup", "cgroup2"):
            points.append(left.split(" ")[4])
    return points


def cgroup_directories():
    """Every directory of every hierarchy, as a set of paths."""
    found = set()
    for point in cgroup_mounts():
        for path, names, _ in os.walk(point):
            found.update(os.path.join(path, name) for name in names)
    return found
