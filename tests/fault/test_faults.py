#!/usr/bin/python3
"""test_faults.py - the faults that no single point of the code stands for: every write of the ledger, a full disk, a recovery that dies at each of
its own steps, a stopped supervisor, a reused process number, the order of intent and effect.

CAISSON_TEST_COMMIT_KILLS (40): how often a run is killed somewhere inside of its commits. `make crash` has 1,000 and every write.
"""

import contextlib
import ctypes
import http.client
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fault import matrix, points  # noqa: E402
from support import caisson as product  # noqa: E402
from support import harness, proc, scratch, server, supervisor  # noqa: E402
from support.harness import equal, holds, is_in  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("faults")

COMMIT_KILLS = harness.env_int("CAISSON_TEST_COMMIT_KILLS", 40)
STRIDE = harness.env_int("CAISSON_TEST_WRITE_STRIDE", 5)  # every how-many-th write is met
WRITES_MAX = 400
CHECKPOINT_TRIES = 30
GUEST_DEAD_S = 5.0
NR_CLONE3 = 435
OLD_LEDGER = "led-aaaaaaaaaaaaaaaa"
APPLICATION_ID = 0x43616973


survivors = []


def faulty():
    return product.Caisson(product.FAULT_BIN)


def met(caisson, verb, *words, fault, **keywords):
    """Calls a subcommand under a fault; (its result, did the fault come to pass)."""
    mark = os.path.join(scratch.root(), "mark")
    if os.path.exists(mark):
        os.unlink(mark)
    result = caisson.call(verb, *words, env={"CAISSON_FAULT": fault, "CAISSON_FAULT_MARK": mark}, **keywords)
    return result, os.path.exists(mark)


def sound(caisson):
    """Nothing is left to do, every run has its one seal, and everything verifies. A recovery that was not needed changes nothing."""
    for _ in range(2):
        done = caisson.recover()
        equal(done.status, 0, str(done))
    supervisor.reap_orphans()
    equal(caisson.rows("PRAGMA integrity_check")[0]["integrity_check"], "ok")
    equal([row for row in caisson.attempts() if row["state"] not in ("sealed", "abandoned")], [])
    equal(caisson.rows("SELECT run_id FROM run WHERE (SELECT count(*) FROM seal WHERE seal.run_id = run.run_id) <> 1"), [])
    for verb in (("verify", "--all"), ("fsck",)):
        done = caisson.call(*verb)
        equal(done.status, 0, str(done))


def consistent(caisson, run, sealed, own):
    """What a run became follows from what was durable when its keeper died: sealed (then), or a launch intent, or neither."""
    intent = caisson.rows(f"SELECT run_id FROM launch_intent WHERE run_id = '{run}'")
    verdict = caisson.show(run)["verdict"]
    equal(verdict, own if sealed else "interrupted" if intent else "not_launched", f"verdict of {run}")


def run_ids(caisson):
    return {row["run_id"] for row in caisson.rows("SELECT run_id FROM run")}


def sealed_ids(caisson):
    return {row["run_id"] for row in caisson.rows("SELECT run_id FROM seal")}


def kill_at_write(caisson, number):
    """A run killed at its N-th write to the ledger. False when it has fewer."""
    before = run_ids(caisson)
    _, hit = met(caisson, "run", "--", "true", fault=f"ledger.write@{number}:kill")
    sealed = sealed_ids(caisson)
    equal(caisson.recover().status, 0)
    for run in run_ids(caisson) - before:
        consistent(caisson, run, run in sealed, "succeeded")
    return hit


@suite.case("FP27 killed at each write of a run to its ledger: all of a transaction or none", timeout=600)
def _():
    caisson = faulty()
    watch = Watch(caisson)
    equal(caisson.run("true").word(), "OK")
    number = 1
    while kill_at_write(caisson, number):
        number += STRIDE
        holds(number < WRITES_MAX, "a run ends")
    print(f"# killed at {number // STRIDE} of {number} writes")
    holds(number > 20, "a run writes")
    sound(caisson)
    watch.hold()


@suite.case("FP27 killed at each write of a new ledger: the next run makes it, and takes up no half of it", timeout=600)
def _():
    number = 1
    while True:
        caisson = faulty()
        _, hit = met(caisson, "run", "--", "true", fault=f"ledger.write@{number}:kill")
        equal(caisson.run("true").word(), "OK", f"behind write {number}")
        sound(caisson)
        if not hit:
            break
        number += 2 * STRIDE
        holds(number < WRITES_MAX, "a ledger is made")
    holds(number > 30, "a new ledger is written")


def make_version_1(ledger):
    """A ledger as the first schema has it, with its genesis and nothing else."""
    with open(os.path.join(product.TOP, "src/ledger/schema/0001.sql"), encoding="utf-8") as file:
        schema = "\n".join(line.strip() for line in file if not line.startswith("--"))  # as tools/embed_sql.py has it
    path = os.path.join(ledger, "ledger.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript("BEGIN;" + schema + f"INSERT INTO ledger VALUES ('{OLD_LEDGER}', 1); PRAGMA user_version = 1; "
                                 f"PRAGMA application_id = {APPLICATION_ID}; COMMIT")
    os.chmod(path, 0o600)
    inode, birth = subprocess.run(["stat", "-c", "%i %w", path], capture_output=True, text=True, check=True).stdout.split(" ", 1)
    seconds = subprocess.run(["date", "-d", birth.strip(), "+%s.%N"], capture_output=True, text=True, check=True).stdout.strip()
    with open(os.path.join(ledger, "identity"), "w", encoding="ascii") as file:
        file.write(f"caisson.identity/v1 {OLD_LEDGER} {inode} {seconds}")


def schema_of(caisson):
    version = caisson.rows("PRAGMA user_version")[0]["user_version"]
    return version, caisson.rows("SELECT type, name, sql FROM sqlite_schema ORDER BY name")


@suite.case("FP30 killed at each write of a migration: the old version with the old schema, or the new one", timeout=600)
def _():
    number, seen = 1, set()
    while True:
        caisson = faulty()
        make_version_1(caisson.ledger)
        old = schema_of(caisson)
        _, hit = met(caisson, "recover", fault=f"ledger.write@{number}:kill" if number > 1 else "ledger.migrating:kill")
        equal(caisson.rows("PRAGMA integrity_check")[0]["integrity_check"], "ok")
        now = schema_of(caisson)
        holds(now == old or now[0] > 1, f"write {number}: version {now[0]}")
        seen.add(now[0])
        equal(caisson.run("true").word(), "OK")
        equal(caisson.rows("SELECT ledger_id FROM ledger")[0]["ledger_id"], OLD_LEDGER)
        sound(caisson)
        if not hit:
            break
        number += STRIDE
        holds(number < WRITES_MAX, "a migration ends")
    equal(len(seen), 2, f"versions that a kill left: {seen}")


@suite.case("FP30 a ledger of a newer schema is refused, and left as it is")
def _():
    caisson = product.Caisson()
    equal(caisson.run("true").word(), "OK")
    with contextlib.closing(sqlite3.connect(caisson.database())) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = schema_of(caisson)
    result = caisson.run("true")
    equal(result.status, 125)
    holds(b"newer" in result.stderr, str(result))
    equal(schema_of(caisson), before)
    equal(len(caisson.rows("SELECT run_id FROM run")), 1)


@suite.case("FP29 killed within a checkpoint: the next opening goes on", timeout=600)
def _():
    caisson = faulty()
    equal(caisson.run("true").word(), "OK")
    usual = 1
    while met(caisson, "run", "--", "true", fault=f"ledger.write@{usual}:delay_0")[1]:
        usual += 1
        holds(usual < WRITES_MAX, "a run ends")
    for into in range(1, 60, 4 * STRIDE):  # pages written back before it dies
        for _ in range(CHECKPOINT_TRIES):  # until a run in which the log is long enough
            written = os.stat(caisson.database()).st_mtime_ns
            _, hit = met(caisson, "run", "--", "true", fault=f"ledger.write@{usual + into}:kill")
            if hit and os.stat(caisson.database()).st_mtime_ns != written:
                break
        else:
            raise AssertionError(f"no checkpoint was met behind {into} of its writes")
        equal(caisson.run("true").word(), "OK")
    sound(caisson)


@suite.case("FP27 S24 killed somewhere inside of its commits, many times on one ledger", timeout=1800)
def _():
    seed = random.randrange(1 << 32)
    dice, caisson, kills = random.Random(seed), faulty(), 0
    watch = Watch(caisson)
    equal(caisson.run("true").word(), "OK")
    for number in range(1, COMMIT_KILLS + 1):
        kills += met(caisson, "run", "--", "true", fault=f"ledger.write@{dice.randrange(1, 90)}:kill")[1]
        if number % 50 == 0:
            sound(caisson)
    print(f"# seed {seed}: {kills} of {COMMIT_KILLS} runs were killed while they wrote")
    sound(caisson)
    is_in(True, [kills >= COMMIT_KILLS // 2], f"{kills} kills")
    verdicts = {row["verdict"] for row in caisson.list()}
    holds(verdicts <= {"succeeded", "interrupted", "not_launched"}, f"{verdicts}")
    watch.hold()


SUBMITTED = 4  # runs of a round, which share commits


def submit_all(keeper, keys):
    """What a caller does who gets no answer: he asks again, under the same keys. {key: run}."""
    return {key: keeper.submit("sh", "-c", "echo $0", key, key=key) for key in keys}


def kill_keeper_at_write(caisson, number, name):
    """A keeper of many runs killed at its N-th write, and another one in its place: True when the first met its fault."""
    keys = [f"{name}-{index}" for index in range(SUBMITTED)]
    gate = os.path.join(scratch.directory("gate"), "open")
    fault = {"CAISSON_FAULT": f"ledger.write@{number}:kill", "CAISSON_FAULT_GATE": gate}
    with server.Server(caisson, "--drain", "5s", workers=2, env=fault) as first:
        with open(gate, "w", encoding="ascii"):
            pass
        try:
            for run in submit_all(first, keys).values():
                first.wait(run)
        except (OSError, http.client.HTTPException, AssertionError):
            equal(first.popen.wait(10), -signal.SIGKILL)
    with server.Server(caisson, "--drain", "5s", workers=2) as second:
        runs = submit_all(second, keys)
        receipts = [second.wait(run) for run in runs.values()]
    equal(len(set(runs.values())), SUBMITTED)
    holds({receipt["verdict"] for receipt in receipts} <= {"succeeded", "interrupted"}, f"{receipts}")
    return first.popen.returncode == -signal.SIGKILL


@suite.case("FP27 S24 serve killed within commits that runs share: each key one run, each run one seal", timeout=1800)
def _():
    seed = random.randrange(1 << 32)
    dice, caisson, rounds = random.Random(seed), faulty(), max(1, COMMIT_KILLS // 10)
    watch = Watch(caisson)
    equal(caisson.run("true").word(), "OK")
    kills = sum(kill_keeper_at_write(caisson, dice.randrange(1, 160), f"round-{number}") for number in range(rounds))
    print(f"# seed {seed}: {kills} of {rounds} keepers were killed while they wrote")
    holds(kills > 0, "a keeper was killed")
    equal(len(run_ids(caisson)), rounds * SUBMITTED + 1)
    sound(caisson)
    watch.hold()


def fail_each(point, action, first=1):
    """Every N-th passage of a point fails, until there is none: the run may fail for it, and is never told otherwise than it was."""
    caisson, number = faulty(), first
    equal(caisson.run("true").word(), "OK")
    watch = Watch(caisson)
    while True:
        guest = matrix.program("fork", os.urandom(6).hex(), False)
        before = run_ids(caisson)
        result, hit = met(caisson, "run", "--json", *guest.options, "--", *guest.argv, fault=f"{point}@{number}:{action}", timeout=60)
        sealed = sealed_ids(caisson)
        equal(caisson.recover().status, 0)
        for run in run_ids(caisson) - before:
            verdict = caisson.show(run)["verdict"]
            holds(verdict != "succeeded" or result.status == 0 or run in sealed, f"{point}@{number}:{action}: succeeded, exit {result.status}")
            is_in(verdict, {"succeeded", "boundary_error", "not_launched", "interrupted"}, f"{point}@{number}:{action}")
            holds(result.status != 0 or verdict == "succeeded", f"{point}@{number}:{action}: exit 0 for {verdict}")
        if not hit:
            break
        number += STRIDE if point == "ledger.write" else 1
        holds(number < WRITES_MAX, "a run ends")
    holds(number > first, f"{point} is passed")
    sound(caisson)
    watch.hold()


for _point in ("ledger.write", "fd.write", "capture.write", "store.copying"):
    for _action in ("enospc", "eio"):
        suite.add(f"FP47 each {_point} fails with {_action}: a failure of ours, no verdict on the guest, and the next run works",
                  lambda point=_point, action=_action: fail_each(point, action), timeout=600)


@suite.case("FP47 a disk that is full, wherever that is met; with space again everything works", timeout=300)
def _():
    if not shutil.which("unshare"):
        raise harness.Skip("unshare is not installed")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "full_disk.py")
    done = subprocess.run(["unshare", "-m", "--propagation", "private", sys.executable, script], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stdout + done.stderr)
    words = set(re.findall(r"KiB: (\S+)", done.stdout))
    equal(words, {"OK", "SBX_ERR", "REJECTED"}, "every outcome was met")


def abandoned(caisson):
    """A run whose keeper and worker are dead, and a process in its groups that their death did not end."""
    run = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"))
    run.wait_guest("sleep")
    run.signal("keeper", signal.SIGSTOP)  # neither sees the other one die, and cleans up
    run.signal("worker", signal.SIGKILL)
    run.signal("keeper", signal.SIGKILL)
    run.reap()
    supervisor.wait_dead(run.boundaries, GUEST_DEAD_S)
    boundary = run.boundaries().pop()
    groups = [group for group in proc.cgroup_directories() if boundary in group and not os.path.isdir(group + "/guest") and
              not group.endswith("/init")]
    holds(groups, "the groups are left")
    survivor = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    survivors.append(survivor)
    for group in groups:
        with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(survivor.pid))
    return survivor


RECOVERY_STEPS = ("ledger_commit@1", "ledger_committed@1", "linux.recover", "recover.started", "linux.group_killed", "linux.group_emptied@1",
                  "linux.group_emptied@2", "linux.group_emptied@3", "recover.cleaned", "run.seal", "ledger_commit@2", "ledger_commit@3",
                  "ledger_committed@3", "run.sealed")


@suite.case("FP50 a recovery killed at each of its steps, one after the other: the last one reaches the same state")
def _():
    caisson = faulty()
    watch = Watch(caisson)
    survivor = abandoned(caisson)
    killed = 0
    for step in RECOVERY_STEPS:
        result, hit = met(caisson, "recover", fault=f"{step}:kill")
        equal(result.status, -signal.SIGKILL if hit else 0, f"{step}: {result}")
        killed += hit
        if caisson.list()[0]["verdict"] == "interrupted":
            break
    print(f"# {killed} recoveries were killed before one was through")
    equal(survivor.wait(GUEST_DEAD_S), -signal.SIGKILL)
    sound(caisson)
    equal([row["verdict"] for row in caisson.list()], ["interrupted"])
    equal([caisson.show(row["run"])["boundary"]["verified_empty"] for row in caisson.list()], [True])
    watch.hold()


def recover_from(step, action):
    caisson = faulty()
    watch = Watch(caisson)
    survivor = abandoned(caisson)
    _, hit = met(caisson, "recover", fault=f"{step}:{action}")
    holds(hit, f"{step} is a step of a recovery")
    equal(caisson.recover().status, 0)
    equal(survivor.wait(GUEST_DEAD_S), -signal.SIGKILL)
    sound(caisson)
    equal([row["verdict"] for row in caisson.list()], ["interrupted" if action == "kill" else caisson.list()[0]["verdict"]])
    is_in(caisson.list()[0]["verdict"], {"interrupted", "boundary_error"})
    watch.hold()


for _step in RECOVERY_STEPS:
    suite.add(f"FP50 a recovery killed at {_step}, and another one behind it", lambda step=_step: recover_from(step, "kill"))
for _step in ("ledger_commit@1", "linux.recover", "recover.cleaned", "run.seal", "ledger_commit@3"):
    suite.add(f"FP50 a recovery that fails at {_step} with eio, and another one behind it", lambda step=_step: recover_from(step, "eio"))


@suite.case("FP34 a cancellation behind the result's commit changes nothing")
def _():
    caisson = faulty()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sh", "-c", "exit 3", env={"CAISSON_FAULT": "run.sealed:stop"}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
    harness.wait_until(lambda: proc.Process(run.keeper).state == "T", 20, "the result is committed")
    os.kill(run.keeper, signal.SIGINT)
    os.kill(run.keeper, signal.SIGCONT)
    run.reap()
    equal([(row["verdict"], row["reason"]) for row in caisson.list()], [("failed", "exit_code")])
    equal(caisson.rows("SELECT * FROM cancellation"), [])
    sound(caisson)
    watch.hold()


@suite.case("FP32 a second keeper beside one that is stopped: neither recovers nor sweeps what the other one owns")
def _():
    caisson = faulty()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.wait_guest("sleep")
    run.signal("both", signal.SIGSTOP)
    done = caisson.recover()
    equal(done.status, 0, str(done))
    holds(b"1 of living keepers left alone" in done.stdout, str(done))
    equal(caisson.run("true").word(), "OK")
    holds(run.wait_guest("sleep"), "the guest lives")
    run.signal("both", signal.SIGCONT)
    run.stop()
    equal(sorted(row["verdict"] for row in caisson.list()), ["cancelled", "succeeded"])
    sound(caisson)
    watch.hold()


@suite.case("a verification that fails once is tried again; the runs wait, and are driven by a worker that was verified")
def _():
    caisson = faulty()
    watch = Watch(caisson)
    with server.Server(caisson, workers=1, env={"CAISSON_FAULT": "serve.verified:eio"}) as keeper:
        equal(keeper.wait(keeper.submit("true"))["verdict"], "succeeded")
    sound(caisson)
    watch.hold()


class CloneArgs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls",
                                                     "set_tid", "set_tid_size", "cgroup")]


def sleep_as(pid):
    """A process of ours with this number, or None when somebody else has it. clone3's set_tid asks for it."""
    number = (ctypes.c_int * 1)(pid)
    arguments = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(number), set_tid_size=1)
    child = ctypes.CDLL(None, use_errno=True).syscall(NR_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
    if child == 0:
        os.execv("/bin/sleep", ["sleep", "1000"])
    return child if child > 0 else None


@suite.case("FP48 the numbers of a dead keeper, worker, init and guest belong to others by now: recovery signals none of them")
def _():
    caisson = faulty()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sleep", "60", options=("--wall", "60s"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.wait_guest("sleep")
    numbers = [run.keeper, *run.workers(), *(process.pid for process in run.members())]
    run.signal("group", signal.SIGKILL)
    run.reap()
    supervisor.wait_dead(run.boundaries, GUEST_DEAD_S)
    supervisor.reap_orphans()
    strangers = [pid for pid in map(sleep_as, numbers) if pid]
    try:
        holds(len(strangers) >= len(numbers) - 1 and len(numbers) >= 4, f"{strangers} of {numbers}")
        equal(caisson.recover().status, 0)
        equal([os.waitpid(pid, os.WNOHANG) for pid in strangers], [(0, 0)] * len(strangers))
    finally:
        for pid in strangers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    equal([row["verdict"] for row in caisson.list()], ["interrupted"])
    sound(caisson)
    watch.hold()


def stopped(target):
    caisson = product.Caisson()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, "sh", "-c", "sleep 60 & sleep 60", options=("--wall", "2s", "--grace", "0s"),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.wait_guest("sleep", 2)
    launched = time.monotonic()
    run.signal(target, signal.SIGSTOP)
    supervisor.wait_dead(run.boundaries, GUEST_DEAD_S, known=[run.keeper, *run.workers()])
    print(f"# {target}: dead {time.monotonic() - launched:.2f} s after its launch")
    run.signal(target, signal.SIGCONT)
    is_in(run.reap(), {124, 125}, "exit status")
    is_in(caisson.list()[0]["verdict"], {"timed_out", "boundary_error"})
    sound(caisson)
    watch.hold()


for _target in ("worker", "keeper", "both"):
    suite.add(f"SIGSTOP of {_target} during --wall 2s -- sleep 60: the guest is dead within 5 s", lambda target=_target: stopped(target))


def calls_of(log, pid):
    return [line.split(None, 1)[1] for line in proc.read(log).splitlines() if line.startswith(f"{pid} ")]


@suite.case("FP12 the gate is opened behind a durable intent, by the order of system calls")
def _():
    if not shutil.which("strace"):
        raise harness.Skip("strace is not installed")
    caisson, log = product.Caisson(), scratch.file("calls")
    equal(caisson.run("true").word(), "OK")
    trace = ["strace", "-f", "-y", "-qq", "-s", "400", "-e", "trace=fdatasync,fsync,pwrite64,sendmsg,sendto", "-e", "signal=none", "-o", log]
    done = subprocess.run([*trace, *caisson.command("run", "--", "true")], env=caisson.environment({"ASAN_OPTIONS": "detect_leaks=0"}),
                          capture_output=True, check=False)
    equal(done.returncode, 0, done.stderr)
    lines = proc.read(log).splitlines()
    keeper = next(line.split()[0] for line in lines if "ledger.db-wal" in line)
    calls = calls_of(log, keeper)
    launch = [at for at, call in enumerate(calls) if call.startswith("sendmsg(") and re.search(r'\\"launch\\"', call)]
    prepare = [at for at, call in enumerate(calls) if call.startswith("sendmsg(") and re.search(r'\\"prepare\\"', call)]
    equal((len(prepare), len(launch)), (1, 1), "\n".join(calls))
    between = calls[prepare[0]:launch[0]]
    written = [at for at, call in enumerate(between) if call.startswith("pwrite64(") and "-wal>" in call]
    synced = [at for at, call in enumerate(between) if re.match(r"f(data)?sync\(\d+<[^>]*-wal>\) += 0", call)]
    holds(written and synced and written[-1] < synced[-1], "the intent is written and synced before the launch is asked for:\n" +
          "\n".join(between))


def _trials():
    return {path for path in proc.cgroup_directories() if "led-doctordoctordoct" in path}


@suite.case("what a doctor that was killed left, the next one removes, and nothing of one that lives")
def _():
    caisson = faulty()

    def doctor(**env):
        return subprocess.Popen([caisson.binary, "doctor"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=caisson.environment(env))

    equal((_trials(), doctor(CAISSON_FAULT="linux.cloned:kill").wait(60)), (set(), -9))
    left = _trials()
    holds(left, "it left something")
    living = doctor(CAISSON_FAULT="linux.cloned:stop")
    try:
        holds(os.WIFSTOPPED(os.waitpid(living.pid, os.WUNTRACED)[1]), "it is stopped")
        made = _trials()
        holds(made and not made & left, f"the dead one's are gone: {made}")
        equal((doctor().wait(60), _trials()), (0, made), "beside a living one")
    finally:
        living.kill()
        living.wait()
    equal((doctor().wait(60), _trials()), (0, set()))


@suite.at_end
def end_survivors():
    for survivor in survivors:
        survivor.kill()
        survivor.wait()


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
