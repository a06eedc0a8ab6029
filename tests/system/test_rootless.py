#!/usr/bin/python3
"""test_rootless.py - Caisson run by an ordinary user: refused without a cgroup of his own, by the commands that make one; with it every
verdict and limit, death and recovery, and nothing left; with ids of his range, and as himself.

Needs root, to make what an administrator would (support/delegated.py). What else he can do is shown by other suites, run as him
(tests/run)."""

import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import delegated, harness, proc, scratch, supervisor  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.invariants import Watch  # noqa: E402
from support.supervisor import Supervisor  # noqa: E402

UID = 54323
OTHER_GROUP = 54399

suite = harness.Suite("rootless")
if os.geteuid() == 0:
    user = delegated.User(UID, ranges=False)
    outside = delegated.own_unified_group()

PATIENT = ("--wall", f"{harness.patience(20)}s")  # an interpreter starts slowly in an emulated machine

RANGE = f"{delegated.NAME}:{delegated.RANGE_FIRST}:{delegated.RANGE_COUNT}\n"


def group_of(parent):
    """The unified group of this name."""
    return os.path.join(next(mount for mount, unified in delegated.hierarchies() if unified), parent)


def shell(script, *words):
    """A shell of root's, outside of every delegated group, which may place itself and become the user. $AS is how."""
    come = f"echo $$ >{group_of(outside.lstrip('/'))}/cgroup.procs; "
    environment = {**Caisson(user=user).environment(), "AS": " ".join(user.command())}
    return subprocess.run(["/bin/sh", "-c", come + script, "sh", *words], env=environment, capture_output=True, text=True, check=False)


def give_range(text):
    for name in ("subuid", "subgid"):
        with open(user.path("etc/" + name), "w", encoding="ascii") as file:
            file.write(text)


def evidence(result):
    return {line["name"]: line["detail"] for line in result.receipt["boundary"]["evidence"]}


def nothing_left():
    """Of the user's processes, zombies included; orphans of a kill came to us."""
    supervisor.reap_orphans()
    equal([str(process) for process in user.processes()], [], "processes of the user")


# ---- without a group of his own ----

PLACED = """
caisson=$1 ledger=$2
$AS $caisson run --ledger $ledger -- true 2>refusal; echo $? >status
sed 's/.*as root: //' refusal >commands
. ./commands
$AS $caisson run --ledger $ledger -- echo it runs
"""


@suite.case("without a delegated cgroup a run is refused in one line, and the commands in it are the ones that help")
def _():
    caisson = Caisson(user=user)
    home = user.directory("refused")
    done = shell(f"cd {home}\n{PLACED}", caisson.binary, caisson.ledger)
    with open(home + "/refusal", encoding="utf-8") as file:
        refusal = file.read()
    with open(home + "/status", encoding="utf-8") as file:
        equal(file.read(), "125\n", refusal)
    equal(refusal.count("\n"), 1, refusal)
    holds(refusal.startswith(f"caisson: run: no cgroup is delegated to uid {UID}: "), refusal)
    equal((done.stdout, done.stderr, done.returncode), ("it runs\n", "", 0))
    equal([row["verdict"] for row in caisson.list()], ["succeeded"], "the refusal left no row")
    for mount, unified in delegated.hierarchies():
        for name in (f"caisson-{UID}/callers", f"caisson-{UID}")[0 if unified else 1:]:
            os.rmdir(os.path.join(mount, name))
    nothing_left()


@suite.case("doctor names the missing cgroup, with the same commands, and says that no run is possible")
def _():
    caisson = Caisson(user=user)
    done = shell("$AS $1 doctor --ledger $2", caisson.binary, caisson.ledger)
    equal(done.returncode, 1, done.stdout)
    holds(re.search(r"missing +cgroup\.parent +no cgroup is delegated", done.stdout), done.stdout)
    holds(re.search(rf"remedy: .*as root: .*mkdir -p \$d.*chown {UID} \$d", done.stdout), done.stdout)
    holds("NOT possible" in done.stdout, done.stdout)


@suite.case("a group that was given but is not his own, or that he is not within, is refused by name")
def _():
    caisson = Caisson(user=user)
    done = shell("$AS $1 run --ledger $2 --cgroup-parent nosuch/group -- true", caisson.binary, caisson.ledger)
    equal(done.returncode, 125)
    holds("nosuch/group is not its own" in done.stderr, done.stderr)
    done = shell("CAISSON_CGROUP_PARENT=$3 $AS $1 run --ledger $2 -- true", caisson.binary, caisson.ledger, "/absolute")
    equal(done.returncode, 125)
    holds("/absolute: must be a relative path" in done.stderr, done.stderr)
    user.delegate()
    done = shell("$AS $1 run --ledger $2 --cgroup-parent $3 -- true", caisson.binary, caisson.ledger, user.parent)
    equal(done.returncode, 125)
    holds(f"is not within {group_of(user.parent)}" in done.stderr, done.stderr)


@suite.case("root in a unit that was delegated in the unified hierarchy alone goes on in /caisson, where every limit can be set")
def _():
    marked = f"caisson-marked-{os.getpid()}"
    os.mkdir(group_of(marked))
    os.setxattr(group_of(marked), "user.delegate", b"1")
    come_from = delegated.own_unified_group().lstrip("/")
    delegated.move_to(group_of(marked))
    try:
        run = Supervisor.start(Caisson(), "sleep", "600", options=("--wall", "600s"))
        groups = {line.split(":")[1]: line.split(":")[2] for line in proc.Process(run.wait_guest("sleep")[0]).cgroup.splitlines()}
        run.stop()
    finally:
        delegated.move_to(group_of(come_from))
        for name in (marked + "/callers", marked):
            if os.path.isdir(group_of(name)):
                os.rmdir(group_of(name))
    place = f"/{marked}/" if "memory" not in ",".join(groups) else "/caisson/"
    equal([group for name, group in groups.items() if name in ("", "memory", "pids") and not group.startswith(place)], [])


@suite.case("root refuses to place guests below a group of a user, who could move them away from their limits")
def _():
    foreign = f"caisson-foreign-{os.getpid()}"
    for mount, _unified in delegated.hierarchies():
        top = os.path.join(mount, foreign)
        os.makedirs(top + "/deeper")
        os.chown(top, UID, UID)
        try:
            done = Caisson().run_plain("true", options=("--cgroup-parent", foreign + "/deeper"))
        finally:
            os.rmdir(top + "/deeper")
            os.rmdir(top)
        equal(done.status, 125, str(done))
        holds(f"{top} is open to others than root" in done.stderr.decode(), str(done))


@suite.case("groups of a user, however deep and whatever their names, do not come into root's recovery and sweep")
def _():
    caisson = Caisson()
    equal(caisson.run_plain("true").status, 0)
    top = group_of(f"caisson-deep-{os.getpid()}")
    levels = [top + "/d" * depth for depth in range(41)]
    os.mkdir(top)
    os.chown(top, UID, UID)
    try:
        os.makedirs(levels[-1])
        for command in ("recover", "sweep"):
            done = caisson.call(command)
            equal((done.status, done.stderr), (0, b""), command)
    finally:
        for level in reversed(levels):
            os.rmdir(level)


# ---- as himself: the case above delegated a group, in which we are from now on ----

VERDICTS = (
    ("OK", 0, ("true",), ()),
    ("NZ(3)", 3, ("sh", "-c", "exit 3"), ()),
    ("SIG(9)", 137, ("sh", "-c", "kill -9 $$"), ()),
    ("EXEC", 127, ("/nosuch",), ()),
    ("TLE_WALL", 124, ("sleep", "60"), ("--wall", "300ms")),
    ("TLE_CPU", 124, ("sh", "-c", "while :; do :; done"), ("--cpu", "200ms")),
    ("MLE", 137, ("python3", "-c", "x = bytearray(200 << 20)"), ("--memory", "48M", *PATIENT)),
    ("OLE", 137, ("sh", "-c", "while :; do echo xxxxxxxxxxxxxxxx; done"), ("--output", "64K")),
    ("RETAINED", 125, ("sh", "-c", "sleep 60 & exit 0"), ()),
)


@suite.case("every verdict is told apart, and nothing is left behind")
def _():
    caisson = Caisson(user=user)
    for word, status, argv, options in VERDICTS:
        watch = Watch(caisson)
        result = caisson.run(*argv, options=options)
        equal((result.word(), result.status), (word, status), str(result))
        watch.hold(result, control=False)
        nothing_left()
    equal(caisson.verify().status, 0)


@suite.case("limits are set and read back; without a range the receipt says whose uid the guest is")
def _():
    caisson = Caisson(user=user)
    options = ("--memory", "64M", "--pids", "5", "--cpus", "0.5", "--pin", "1", *PATIENT)
    result = caisson.run("python3", "-c", "import os; print(os.sched_getaffinity(0), os.getuid(), os.getgroups())", options=options)
    equal((result.word(), result.text), ("OK", "{1} 1000 []\n"), str(result))
    lines = evidence(result)
    equal([name for name in ("limit.memory", "limit.swap", "limit.pids", "limit.cpus", "limit.pin") if name not in lines], [])
    equal(lines["ids.guest"], f"uid {UID} and gid {UID} of the host")
    equal(lines["ids.shared"], f"guest, init and caller are one user of the kernel, uid {UID}")
    holds("rootless" in result.receipt["boundary"]["layers"], result.receipt["boundary"]["layers"])
    forks = caisson.run("sh", "-c", "sleep 1 & sleep 1 & sleep 1 & sleep 1 & sleep 1 &", options=("--pids", "3"))
    holds("fork" in forks.guest_stderr.decode(), str(forks))
    refused = caisson.run("true", options=("--require", "ids.separate"))
    equal((refused.verdict, refused.reason), ("not_launched", "limit_unenforceable"), str(refused))


@suite.case("a guest of the same uid as its init cannot signal, trace, limit or see it, nor its caller")
def _():
    script = """
import os, resource, signal
try:
    os.kill(1, signal.SIGKILL)  # Landlock refuses it where it knows of signals; elsewhere pid 1 is deaf to it
except PermissionError:
    pass
for number in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_CORE):
    try:
        print("limited", resource.prlimit(1, number, (0, 0)))
    except PermissionError:
        pass
import ctypes
print(ctypes.CDLL(None).ptrace(16, 1, 0, 0), sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
"""
    result = Caisson(user=user).run("python3", "-c", script, options=PATIENT)
    equal((result.word(), result.text), ("OK", "-1 [2]\n"), str(result))


@suite.case("whoever is in further groups is refused by name, as a guest could not be kept from them")
def _():
    caisson = Caisson(user=user)
    argv = user.command(caisson.binary, "run", "--ledger", caisson.ledger, "--", "true", groups=(UID, OTHER_GROUP))
    done = subprocess.run(argv, env=caisson.environment(), capture_output=True, text=True, check=False)
    equal(done.returncode, 125, done.stderr)
    holds(f"ids.groups: uid {UID} is in group {OTHER_GROUP} besides its own" in done.stderr, done.stderr)
    argv = user.command(caisson.binary, "run", "--ledger", caisson.ledger, "--", "id", "-G", groups=(UID,))
    done = subprocess.run(argv, env=caisson.environment(), capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout), (0, "1000\n"), done.stderr)


@suite.case("inputs and outputs: what is handed in is read-only, and what the guest made for itself alone is collected")
def _():
    caisson = Caisson(user=user)
    source = user.directory("source")
    with open(source + "/text", "w", encoding="ascii") as file:
        file.write("handed in\n")
    script = "cat /box/in/text >/out/copy; chmod 600 /out/copy; ! echo x >>/box/in/text; rm /box/in/text; exit 0"
    result = caisson.run("sh", "-c", script, options=("--input", f"{source}:/box/in", "--require-output", "copy"))
    equal(result.word(), "OK", str(result))
    run = result.receipt["run"]
    equal(caisson.call("cat", run, "copy").stdout, b"handed in\n")
    equal((caisson.verify().status, caisson.call("fsck").status), (0, 0))


@suite.case("a guest of the same uid as the owner of its sealed stdin can neither write to it nor change what it is")
def _():
    caisson = Caisson(user=user)
    script = """
import os
def attempt(name, call):
    try:
        print(name, call())
    except OSError as error:
        print(name, error.strerror)
print(os.read(0, 100))
attempt("mode", lambda: os.fchmod(0, 0o666))
attempt("times", lambda: os.utime(0))
attempt("name", lambda: os.setxattr(0, "user.x", b"x"))
attempt("write", lambda: os.write(os.open("/proc/self/fd/0", os.O_RDWR), b"forged"))
"""
    result = caisson.run("python3", "-c", script, options=("--stdin", "-"), data=b"as it was sealed")
    equal(result.word(), "OK", str(result))
    holds(result.text.startswith("b'as it was sealed'\n"), result.text)
    equal([line.split(" ", 1)[1] for line in result.text.splitlines()[1:4]], ["Read-only file system"] * 3, result.text)
    holds(result.text.splitlines()[4] in ("write Read-only file system", "write Permission denied"), result.text)
    equal(caisson.call("fsck").status, 0)


# ---- death ----

def kill_and_recover(caisson, target, **keywords):
    watch = Watch(caisson)
    run = Supervisor.start(caisson, "sh", "-c", "sleep 60 & exec sleep 60", options=("--wall", "60s"), **keywords)
    run.wait_guest("sleep", 2)
    run.signal(target, signal.SIGKILL)
    run.reap()
    supervisor.wait_dead(run.boundaries, 2)
    return watch


@suite.case("keeper, worker or both killed: the guest dies, and recover seals the run and leaves nothing")
def _():
    for target in ("keeper", "worker", "both"):
        caisson = Caisson(user=user)
        watch = kill_and_recover(caisson, target)
        equal(caisson.recover().status, 0)
        equal([row["verdict"] for row in caisson.list()], ["interrupted"], target)
        nothing_left()
        watch.hold()


@suite.case("a recovery that is placed elsewhere finds the groups by their name, and those of another user are left alone")
def _():
    caisson = Caisson(user=user)
    kill_and_recover(caisson, "both")
    name = f"{caisson.rows('SELECT ledger_id FROM ledger')[0]['ledger_id']}.{next(iter(caisson.boundary_ids()))}"
    theirs = group_of(f"{user.parent}/{delegated.LEAF}/{name}")  # root's, and with the whole name
    os.mkdir(theirs)
    try:
        done = shell("$AS $1 recover --ledger $2", caisson.binary, caisson.ledger)
        equal((done.returncode, done.stderr), (0, ""), done.stdout)
        equal([path for path in proc.cgroup_directories() if path.endswith(name)], [theirs])
    finally:
        os.rmdir(theirs)
    equal([row["verdict"] for row in caisson.list()], ["interrupted"])
    nothing_left()


@suite.case("the ledger and the place of the locks are the user's own, or nothing is done")
def _():
    caisson = Caisson(user=user, ledger=scratch.directory("roots"))
    os.chmod(scratch.root(), 0o755)
    os.chmod(caisson.ledger, 0o755)
    done = caisson.run_plain("true")
    equal(done.status, 125, str(done))
    holds(f"belongs to uid 0, not to uid {UID}" in done.stderr.decode(), str(done))
    caisson = Caisson(user=user)
    done = subprocess.run(user.command(caisson.binary, "run", "--", "true"), env=caisson.environment(), capture_output=True, text=True,
                          check=False)
    place = os.lstat(user.path(".local/state/caisson"))
    equal((done.returncode, place.st_uid, oct(place.st_mode & 0o7777)), (0, UID, "0o700"), done.stderr)
    give_range(RANGE)
    theirs = user.directory("theirs")
    os.mkdir(theirs + "/caisson", 0o777)
    done = Caisson(user=user).run_plain("true", env={"XDG_RUNTIME_DIR": theirs})
    give_range("")
    equal(done.status, 125, str(done))
    holds(theirs in done.stderr.decode() and "must be ours and closed to others" in done.stderr.decode(), str(done))


# ---- with a range ----

def need_helpers():
    if not os.access("/usr/bin/newuidmap", os.X_OK):
        raise harness.Skip("newuidmap is not installed")


@suite.case("with a range in subuid and subgid, guest and init are users of their own, and further groups are given up")
def _():
    need_helpers()
    give_range(RANGE)
    caisson = Caisson(user=user)
    watch = Watch(caisson)
    runs, uids = [], set()
    for _ in range(2):
        runs.append(Supervisor.start(caisson, "sleep", "600", options=("--wall", "600s")))
        uids.update(proc.Process(runs[-1].wait_guest("sleep")[0]).uids)
    for run in runs:
        run.stop()
    inside = [uid for uid in uids if delegated.RANGE_FIRST <= uid < delegated.RANGE_FIRST + delegated.RANGE_COUNT]
    equal((len(uids), len(inside)), (2, 2), f"uids {uids}")
    result = caisson.run("sh", "-c", "echo secret >/out/a; chmod 600 /out/a; id -G", options=("--require", "ids.separate"))
    equal((result.word(), result.text), ("OK", "1000\n"), str(result))
    equal(caisson.call("cat", result.receipt["run"], "a").stdout, b"secret\n")
    lines = evidence(result)
    holds("ids.shared" not in lines and lines["ids.init"] != lines["ids.guest"], lines)
    argv = user.command(caisson.binary, "run", "--ledger", caisson.ledger, "--", "id", "-G", groups=(UID, OTHER_GROUP))
    done = subprocess.run(argv, env=caisson.environment(), capture_output=True, text=True, check=False)
    give_range("")
    equal((done.returncode, done.stdout), (0, "1000\n"), done.stderr)
    nothing_left()
    watch.hold()


@suite.case("a range that newuidmap may not map is no reason for a weaker run: it is refused with what newuidmap says")
def _():
    need_helpers()
    give_range(RANGE)
    caisson = Caisson(user=user)
    argv = ["/usr/bin/setpriv", "--no-new-privs", *caisson.command("run", "--", "true")]
    done = subprocess.run(argv, env=caisson.environment(), capture_output=True, text=True, check=False)
    give_range("")
    equal((done.returncode, done.stderr.count("\n")), (125, 1), done.stderr)
    holds("newuidmap and newgidmap did not map" in done.stderr and "newuidmap: " in done.stderr, done.stderr)
    equal([row["verdict"] for row in caisson.list()], ["not_launched"])
    nothing_left()


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("test_rootless: needs root")
    proc.become_subreaper()
    sys.exit(suite.main())
