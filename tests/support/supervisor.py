"""supervisor.py - a running `caisson run` seen from outside: its keeper, its worker, its guest's processes; ways to kill them."""

import os
import signal

from support import harness, proc


class Supervisor:
    """A `caisson run` that was started with Caisson.start()."""

    def __init__(self, caisson, popen):
        self.caisson, self.popen = caisson, popen
        self.boundaries_before = set()

    @classmethod
    def start(cls, caisson, *argv, **keywords):
        before = caisson.boundary_ids()
        supervisor = cls(caisson, caisson.start(*argv, **keywords))
        supervisor.boundaries_before = before
        return supervisor

    @property
    def keeper(self):
        return self.popen.pid

    def workers(self):
        """Children of the keeper that run outside the guest."""
        return [pid for pid in proc.children(self.keeper) if not proc.Process(pid).is_guest]

    def boundaries(self):
        return self.caisson.boundary_ids() - self.boundaries_before

    def members(self):
        return members(self.boundaries())

    def wait_guest(self, name, count=1, seconds=10):
        """Waits until `count` processes of this name are in the boundary; returns their pids on the host."""
        def found():
            pids = [p.pid for p in self.members() if p.name == name]
            if len(pids) < count and self.popen.poll() is not None:
                said = self.popen.stderr.read() if self.popen.stderr else b""
                raise AssertionError(f"it ended with {self.popen.returncode} before there were {count} processes {name}: {said[-400:]!r}")
            return pids if len(pids) >= count else None
        return harness.wait_until(found, seconds, f"{count} processes {name} in the boundary")

    def signal(self, target, number):
        """target: keeper, worker, group (all of the keeper's process group and session, workers included), or both."""
        workers = self.workers()
        everyone = [self.keeper, *workers]
        pids = {"keeper": [self.keeper], "worker": workers, "both": everyone, "group": everyone}[target]
        if target == "group":
            _send_group(self.keeper, number)
        for pid in pids:
            _send(pid, number)

    def reap(self, seconds=30):
        """Waits for the keeper; gives its exit status. Closes its pipes."""
        status = self.popen.wait(seconds)
        for stream in (self.popen.stdout, self.popen.stderr, self.popen.stdin):
            if stream:
                stream.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Waits for its end; after a failure it is ended, so that the failure is what is reported."""
        if kind:
            self.stop()
        else:
            self.reap()

    def stop(self):
        """Ends it as a user would who has no patience: two INTs."""
        _send(self.keeper, signal.SIGINT)
        _send(self.keeper, signal.SIGINT)
        return self.reap()


def members(boundaries):
    """Live processes, zombies included, in cgroups of these boundaries."""
    return [p for p in proc.processes() if p.boundaries() & boundaries]


def reap_orphans(known=()):
    """Zombies that came to us as the subreaper: a killed keeper's worker. Living ones stay."""
    for pid in proc.children(os.getpid()) - set(known):
        if proc.Process(pid).state == "Z":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def wait_dead(boundaries, seconds, known=()):
    """Every process of these boundaries ended within `seconds`. Orphaned zombies are reaped by us; others are dead too."""
    def empty():
        reap_orphans(known)
        return not [p for p in members(boundaries() if callable(boundaries) else boundaries) if p.state != "Z"]
    harness.wait_until(empty, seconds, "every process of the boundary is gone")


def _send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _send_group(pid, number):
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass
