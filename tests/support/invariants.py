"""invariants.py - I1 to I10 of the hostile corpus: one snapshot before a run, one check after it.

    watch = Watch(caisson)            # snapshot
    result = caisson.run(...)
    watch.hold(result)                # raises Broken, naming every invariant that does not hold

check() gives the findings as {"I1": ["…"], …}; an empty dict means that all hold. What others do on the same machine (a guest in
a foreign boundary, a listener of a process that is not ours) is no finding.
"""

import glob
import hashlib
import os
import stat
import time

from support import harness, proc, scratch

SETTLE_S = 1.0          # how long a difference that may be another program's has to last before it counts
ANSWER_SLACK_S = 2.0    # I9: on top of wall + grace + drain; a shared machine stalls
SUPERVISOR_RSS_MAX = 64 << 20

SHARED_MACHINE = os.environ.get("CAISSON_TEST_SHARED_MACHINE") == "1"

CANARY_NAMES = ("plain", "secret", "setuid", "directory", "link")
LEDGER_FILES = ("ledger.db", "key", "identity")
# On a shared machine others install packages.
SYSTEM_CANARIES = ("/etc/passwd", "/etc/shadow", "/etc/hosts") + (() if SHARED_MACHINE else ("/etc/ld.so.cache",))


class Broken(AssertionError):
    """One or more invariants do not hold."""

    def __init__(self, findings, result=None):
        self.findings = findings
        lines = [f"{name}: {text}" for name in sorted(findings, key=lambda n: int(n[1:])) for text in findings[name]]
        super().__init__("\n".join(lines + ([f"after {result}"] if result is not None else [])))


def make_canaries(directory):
    """Files that no run may change, of every kind whose loss would hurt."""
    files = (("plain", b"canary\n", 0o644), ("secret", b"top secret\n", 0o600), ("setuid", b"#!/bin/sh\n", 0o4755))
    for name, content, mode in files:
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        os.setxattr(path, "user.canary", name.encode())
    os.mkdir(os.path.join(directory, "directory"), 0o700)
    os.symlink("plain", os.path.join(directory, "link"))
    return directory


def _node(path, content):
    """All of a node that must not change. A device node's access is what counts, not its bytes or times."""
    info = os.lstat(path)
    facts = [oct(info.st_mode), info.st_uid, info.st_gid]
    if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
        return tuple(facts + [os.major(info.st_rdev), os.minor(info.st_rdev)])
    if stat.S_ISLNK(info.st_mode):
        return tuple(facts + [os.readlink(path)])
    facts += [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path))]
    if stat.S_ISREG(info.st_mode) and content:
        with open(path, "rb") as file:
            facts.append(hashlib.sha256(file.read()).hexdigest())
    return tuple(facts)


def _canaries(directory):
    nodes = {path: _node(path, True) for path in SYSTEM_CANARIES if os.path.exists(path)}
    for name in CANARY_NAMES:
        path = os.path.join(directory, name)
        nodes[path] = _node(path, True) if os.path.lexists(path) else None
    return nodes


def _devices():
    nodes = {}
    for path, directories, names in os.walk("/dev"):
        if path == "/dev":
            directories[:] = [d for d in directories if d not in ("pts", "shm", "mqueue", "hugepages")]
        for name in directories + names:
            node = os.path.join(path, name)
            try:
                nodes[node] = _node(node, False)
            except FileNotFoundError:
                pass
    return nodes


def _mounts():
    """The mount table without what the kernel may renumber."""
    return set(proc.read("/proc/self/mountinfo").splitlines())


def _sysv():
    objects = set()
    for kind in ("shm", "sem", "msg"):
        for line in proc.read(f"/proc/sysvipc/{kind}").splitlines()[1:]:
            objects.add((kind, *line.split()[:2]))
    return objects


def _posix():
    """Objects in the host's own places. On a shared machine only those of guests count: nothing else tells whose one is."""
    places = [place for place in ("/dev/shm", "/dev/mqueue") if os.path.isdir(place)]
    paths = [os.path.join(place, name) for place in places for name in os.listdir(place)]
    return {path for path in paths if not SHARED_MACHINE or _owner(path) >= proc.GUEST_UID_FIRST}


def _owner(path):
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:
        return -1


def _keys():
    """Keys and keyrings that a guest could own or leave: those of guest uids, and every user or logon key."""
    found = set()
    for line in proc.read("/proc/keys").splitlines():
        words = line.split()
        if len(words) >= 8 and (int(words[5]) >= proc.GUEST_UID_FIRST or words[7] in ("user", "logon", "big_key")):
            found.add((words[0], words[5], words[7], " ".join(words[8:])))
    return found


def _listeners():
    """Listening sockets of this network namespace: {(kind, address): inode}."""
    found = {}
    for kind in ("tcp", "tcp6"):
        for line in proc.read(f"/proc/net/{kind}").splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                found[kind, words[1]] = words[9]
    for kind in ("udp", "udp6"):
        for line in proc.read(f"/proc/net/{kind}").splitlines()[1:]:
            words = line.split()
            found[kind, words[1]] = words[9]
    for line in proc.read("/proc/net/unix").splitlines()[1:]:
        words = line.split(None, 7)
        if int(words[3], 16) & 0x10000:
            found["unix", words[7] if len(words) > 7 else words[6]] = words[6]
    return found


def _owners_of_inode(inode):
    wanted, owners = f"socket:[{inode}]", []
    for pid in proc.pids():
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for name in names:
            try:
                if os.readlink(f"/proc/{pid}/fd/{name}") == wanted:
                    owners.append(pid)
                    break
            except OSError:
                pass
    return owners


def _staging(ledger):
    """What lies in the ledger's directory besides the ledger itself, its key, its store's objects and notes, and its owners' files."""
    found = set()
    for path, directories, names in os.walk(ledger):
        relative = os.path.relpath(path, ledger)
        directories[:] = [d for d in directories if d not in ("objects", "trees", "checked", "owners")]
        for name in names:
            if relative != "." or not name.startswith(LEDGER_FILES):
                found.add(os.path.normpath(os.path.join(relative, name)))
        if relative.count("/") >= 1 and relative != "store/tmp" or any(part.startswith("bnd-") for part in relative.split("/")):
            found.add(relative)
    return found


def loop_devices(ledger):
    """Loop devices that show an image of this ledger's. It has no name, but the directory that it is in has."""
    images = {}
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            images[path.split("/")[3]] = proc.read(path).strip()
        except OSError:
            pass
    return sorted(name for name, image in images.items() if image.startswith(os.path.realpath(ledger) + "/"))


def _strays_elsewhere(names):
    """Entries of the usual temporary places that carry one of these ids."""
    found = []
    for place in ("/tmp", "/var/tmp", "/run", "/dev/shm", "/run/caisson", "/var/lib/caisson"):
        if os.path.isdir(place):
            found += [os.path.join(place, entry) for entry in os.listdir(place) if any(name in entry for name in names)]
    return found


class Watch:
    """The state of the host before a run, and the check after it."""

    def __init__(self, caisson, canary_directory=None, settle_s=SETTLE_S):
        proc.become_subreaper()
        self.caisson, self.settle_s = caisson, settle_s
        self.canary_directory = canary_directory or _shared_canaries()
        self.ours_before = proc.descendants(os.getpid())
        self.children_before = proc.children(os.getpid())
        self.guests_before = {p.pid for p in proc.processes() if p.is_guest}
        self.mounts = _mounts()
        self.canaries, self.devices = _canaries(self.canary_directory), _devices()
        self.staging = _staging(caisson.ledger)
        self.sysv, self.posix, self.keys, self.listeners = _sysv(), _posix(), _keys(), _listeners()
        self.own_fds = len(os.listdir("/proc/self/fd"))

    def hold(self, result=None, **keywords):
        findings = self.check(result, **keywords)
        if findings:
            raise Broken(findings, result)

    def check(self, result=None, control=True, sealed=True, supervisor_rss=None):
        """{"I1": [text, …], …}. sealed=False: the attempt may be quarantined (then I7 and I10 wait for the recovery)."""
        findings = {}
        checks = [("I1", self._nothing_alive), ("I2", self._mounts_same), ("I3", self._canaries_same), ("I4", self._no_staging),
                  ("I5", self._ipc_same), ("I6", lambda: self._supervisor_flat(supervisor_rss)),
                  ("I9", lambda: self._answered_in_time(result))]
        if sealed:
            checks.append(("I7", self._one_terminal_row))
        for name, check in checks:
            texts = check()
            if texts:
                findings[name] = texts
        if control and sealed:
            texts = self._control_run()
            if texts:
                findings["I10"] = texts
        return findings

    def _lasting(self, difference):
        """A difference that another program may have made for a moment counts only when it lasts."""
        deadline = time.monotonic() + self.settle_s
        found = difference()
        while found and time.monotonic() < deadline:
            time.sleep(0.02)
            found = difference()
        return found

    # I1
    def _nothing_alive(self):
        ours = self.caisson.boundary_ids()
        texts = [f"cgroup directory left: {path}" for path in sorted(proc.cgroup_directories())
                 if any(name in path for name in ours) or os.path.basename(self.caisson.ledger) in path]
        texts += [f"process of the boundary alive: {p}" for p in proc.processes() if p.boundaries() & ours]
        texts += [f"guest process outside every boundary: {p}" for p in self._lasting(self._unplaced_guests)]
        for pid in sorted(proc.children(os.getpid()) - self.children_before):
            process = proc.Process(pid)
            texts.append(f"{'zombie' if process.state == 'Z' else 'orphan'} left behind: {process}")
            if process.state == "Z":
                os.waitpid(pid, os.WNOHANG)
        return texts

    def _unplaced_guests(self):
        return [p for p in proc.processes()
                if p.is_guest and p.pid not in self.guests_before and not p.boundaries() and p.pid not in self.ours_before
                and not (p.pid in proc.children(os.getpid()) and p.state == "Z")]

    # I2
    def _mounts_same(self):
        texts = [f"mount appeared: {line}" for line in self._lasting(lambda: sorted(_mounts() - self.mounts))]
        return texts + [f"mount vanished: {line}" for line in self._lasting(lambda: sorted(self.mounts - _mounts()))]

    # I3
    def _canaries_same(self):
        texts = _changes("canary", self.canaries, _canaries(self.canary_directory))
        return texts + _changes("device node", self.devices, _devices())

    # I4
    def _no_staging(self):
        texts = [f"left in the ledger's directory: {name}" for name in sorted(_staging(self.caisson.ledger) - self.staging)]
        texts += [f"loop device left: {name}" for name in loop_devices(self.caisson.ledger)]
        return texts + [f"left behind: {path}" for path in _strays_elsewhere(self.caisson.boundary_ids())]

    # I5
    def _ipc_same(self):
        texts = []
        kinds = (("SysV object", self.sysv, _sysv), ("POSIX object", self.posix, _posix), ("key", self.keys, _keys))
        for what, before, now in kinds:
            texts += [f"{what} appeared: {entry}" for entry in self._lasting(lambda b=before, n=now: sorted(n() - b, key=str))]
        return texts + self._lasting(self._new_listeners)

    def _new_listeners(self):
        texts = []
        for key, inode in _listeners().items():
            if self.listeners.get(key) == inode or key in self.listeners:
                continue
            owners = _owners_of_inode(inode)
            ours = proc.descendants(os.getpid()) | {os.getpid()}
            if not owners or any(pid in ours or proc.Process(pid).is_guest for pid in owners):
                texts.append(f"listener appeared: {key} of {owners or 'no process'}")
        return texts

    # I6
    def _supervisor_flat(self, rss):
        texts = [f"supervisor's peak memory is {rss} bytes"] if rss is not None and rss > SUPERVISOR_RSS_MAX else []
        now = len(os.listdir("/proc/self/fd"))
        return texts + ([f"the caller has {now} descriptors, had {self.own_fds}"] if now > self.own_fds else [])

    # I7
    def _one_terminal_row(self):
        texts = []
        for row in self.caisson.attempts():
            if row["state"] not in ("sealed", "abandoned"):
                texts.append(f"attempt {row['attempt_id']} is {row['state']}")
        for row in self.caisson.rows("SELECT run.run_id AS run_id, count(seal.attempt_id) AS seals FROM run "
                                     "LEFT JOIN seal ON seal.run_id = run.run_id GROUP BY run.run_id HAVING seals <> 1"):
            texts.append(f"run {row['run_id']} has {row['seals']} terminal rows")
        return texts

    # I9
    @staticmethod
    def _answered_in_time(result):
        if result is None or result.receipt is None or not result.receipt.get("limits"):
            return []
        limits, times = result.receipt["limits"], result.receipt["times"]
        bound = sum(limits.get(key) or 0 for key in ("wall_ms", "cancel_grace_ms", "on_limit_grace_ms", "drain_ms")) / 1000
        bound += (times.get("cleanup_ms") or 0) / 1000 + harness.patience(ANSWER_SLACK_S)
        return [f"answered after {result.seconds:.2f} s, bound {bound:.2f} s"] if result.seconds > bound else []

    # I10
    def _control_run(self):
        result = self.caisson.run("true")
        return [] if result.word() == "OK" and result.status == 0 else [f"control run: {result}"]


def repeat_same(run, times):
    """I8: the verdict word of each of `times` repeats of run() is the same; returns the findings."""
    words = [run().word() for _ in range(times)]
    return [f"verdicts differ over {times} repeats: {words}"] if len(set(words)) > 1 else []


def _changes(what, before, now):
    texts = [f"{what} changed: {path}: {before[path]} → {now.get(path)}" for path in before if now.get(path) != before[path]]
    return texts + [f"{what} appeared: {path}" for path in now if path not in before]


_CANARIES = []


def _shared_canaries():
    if not _CANARIES:
        _CANARIES.append(make_canaries(scratch.directory("canaries")))
    return _CANARIES[0]
