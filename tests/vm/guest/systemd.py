#!/usr/bin/python3
"""systemd.py - a tree of cgroups as systemd lays it out, and settings that forbid user namespaces: `root` and `user` are the two points of
view. The machine is thrown away, so that settings of the whole kernel can be changed."""

import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import delegated, harness, proc  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.supervisor import Supervisor  # noqa: E402

TOP = "/sys/fs/cgroup"
SESSION = "user.slice/user-0.slice/session-1.scope"
USERS_SESSION = "user.slice/user-1001.slice/session-2.scope"
MANAGER = "user.slice/user-1001.slice/user@1001.service"
UID = 1001

suite = harness.Suite(f"systemd-{sys.argv[1] if len(sys.argv) > 1 else 'root'}")
AS_ROOT = suite.name == "systemd-root"
user = None if AS_ROOT else delegated.User(UID, ranges=False)


def case_of(who, name):
    def register(function):
        if (who == "root") == AS_ROOT:
            suite.add(name, function)
        return function
    return register


def move_to(group):
    with open(f"{TOP}/{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write("0")


@contextlib.contextmanager
def within(group, owner=None, mark=False):
    """A group, made for this one case, in which this process is meanwhile."""
    path = f"{TOP}/{group}"
    os.mkdir(path)
    for name in ("", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads") if owner else ():
        os.chown(path + name, owner, owner)
    if mark:
        os.setxattr(path, "user.delegate", b"1")
    move_to(group)
    try:
        yield
    finally:
        move_to(SESSION)
        for leaf in (path + "/callers", path):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(leaf)


@contextlib.contextmanager
def setting(name, value):
    path = "/proc/sys/" + name
    before = proc.read(path).strip()
    if not before:
        raise harness.Skip(f"this kernel has no {name}")
    with open(path, "w", encoding="ascii") as file:
        file.write(value)
    try:
        yield
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)


def where_it_runs(caisson):
    """The group of a guest's program, without the boundary's own part. Every limit holds there."""
    run = Supervisor.start(caisson, "sleep", "600", options=("--wall", "600s"))  # long enough to be seen on a busy machine
    group = proc.Process(run.wait_guest("sleep")[0]).cgroup.strip().removeprefix("0::/")
    run.stop()
    equal(caisson.run("python3", "-c", "x = bytearray(99 << 20)", options=("--memory", "32M", "--cpus", "1")).word(), "MLE")
    return group.rpartition("/")[0].rpartition("/")[0]


def told(caisson, verb, *words):
    done = caisson.call(verb, *words)
    return done.status, (done.stdout + done.stderr).decode()


def forbidden(name, value, reason):
    """With this setting a run is refused, and doctor says no; both name the setting."""
    with setting(name, value):
        name = name.replace("/", ".")
        for verb, words, expected in (("run", ("--", "true"), 125), ("doctor", (), 1)):
            status, text = told(Caisson(user=user), verb, *words)
            equal(status, expected, text)
            holds(f"sysctl -w {name}=" in text and reason in text, text)
    equal(Caisson(user=user).run("true").word(), "OK")


# ---- root ----

@case_of("root", "from a session, where no controller is enabled, root's runs have their groups in /caisson")
def _():
    equal(delegated.own_unified_group(), "/" + SESSION)
    equal(proc.read(f"{TOP}/{os.path.dirname(SESSION)}/cgroup.subtree_control"), "")
    equal(where_it_runs(Caisson()), "caisson")


@case_of("root", "a controller that is not enabled where the groups were to be is refused by name")
def _():
    result = Caisson().run("true", options=("--cgroup-parent", os.path.dirname(SESSION) + "/deeper"))
    equal((result.verdict, result.reason), ("not_launched", "limit_unenforceable"), str(result))
    holds("limit.memory: controller memory is not enabled in" in result.receipt["detail"], str(result))


@case_of("root", "in a unit that systemd delegated, its group is the place, and who is in it moves to a leaf")
def _():
    with within("system.slice/ci.service", mark=True):
        with open(f"{TOP}/system.slice/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+memory +pids +cpu")
        equal(where_it_runs(Caisson()), "system.slice/ci.service")
        equal(delegated.own_unified_group(), "/system.slice/ci.service/callers")


@case_of("root", "no user namespace may be made: the setting is named")
def _():
    forbidden("user/max_user_namespaces", "0", "user namespaces are switched off")


# ---- a user ----

@case_of("user", "in his session nothing is delegated to him: the refusal says what systemd-run, or root, would do")
def _():
    move_to(USERS_SESSION)
    status, text = told(Caisson(user=user), "run", "--", "true")
    move_to(SESSION)
    equal((status, text.count("\n")), (125, 1), text)
    for part in (f"/{USERS_SESSION}, where this process is, belongs to somebody else", "systemd-run --user --scope -p Delegate=yes caisson",
                 f"d={TOP}/caisson-{UID}; mkdir -p $d/callers; chown {UID} $d"):
        holds(part in text, text)


@case_of("user", "below his manager, the manager's group is the place")
def _():
    with within(MANAGER + "/app.slice/terminal.scope", owner=UID):
        equal(where_it_runs(Caisson(user=user)), MANAGER)


@case_of("user", "in a scope that was delegated, as systemd-run makes it, that is the place, and who is in it moves to a leaf")
def _():
    for group in (MANAGER, MANAGER + "/app.slice"):
        with open(f"{TOP}/{group}/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+memory +pids +cpu")
    scope = MANAGER + "/app.slice/run-1.scope"
    with within(scope, owner=UID, mark=True):
        equal(where_it_runs(Caisson(user=user)), scope)
        equal(delegated.own_unified_group(), f"/{scope}/callers")
        equal(where_it_runs(Caisson(user=user)), scope)


@case_of("user", "user namespaces are root's alone, or nobody's: the setting is named")
def _():
    with within(MANAGER + "/app.slice/terminal.scope", owner=UID):
        forbidden("kernel/unprivileged_userns_clone", "0", "user namespaces are root's alone")
        forbidden("user/max_user_namespaces", "0", "user namespaces are switched off")


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main([]))
