"""more_drivers.py - drivers (see drivers.py) of the rows in more_cases.py: clocks, budgets that all runs share, forged
names, many runs at once; and of those that only a machine of the test's own may suffer.
"""

import concurrent.futures
import ctypes
import os
import re
import shutil
import subprocess
import time

import cases
from drivers import expect, run_guest, start_guest, with_program
from support import guests, harness, proc, scratch, supervisor
from support.caisson import Caisson
from support.invariants import SHARED_MACHINE
from support.harness import equal, holds, is_in

EDGE_RUNS = harness.env_int("CAISSON_TEST_EDGE_RUNS", 40)
DYING_RUNS = harness.env_int("CAISSON_TEST_DYING_RUNS", 100)
AT_ONCE = harness.env_int("CAISSON_TEST_AT_ONCE", 16)

EDGE_MS = 100
LOOKS = 50  # at the members of a group, before each try to get a number that one of them had
EDGE_WIDTH_MS = 5
NR_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_VERSION = 1
KERNEL_LOG_LINES = 500  # what one killed group may cost: the report of the OOM killer names every task of it
PROFLIGATE = ("inotify", "queues", "signals", "timers", "pipes", "hold")


# H12
def drive_traced_kills(caisson, path):
    """Every signal that Caisson sends goes to a pidfd: to none of a list of numbers."""
    if not shutil.which("strace"):
        raise harness.Skip("strace is not installed")
    log = scratch.file("kills")
    words = caisson.command("run", "--quiet", *with_program(path, ("--wall", "500ms", "--pids", "16")), "--", cases.BOX, "pids")
    calls = "trace=kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal"
    # A sanitizer build cannot look for leaks while it is traced.
    environment = caisson.environment({"ASAN_OPTIONS": "detect_leaks=0"})
    done = subprocess.run(["strace", "-f", "-qq", "-e", calls, "-e", "signal=none", "-o", log, *words], env=environment,
                          capture_output=True, check=False)
    equal(done.returncode, 124, done.stderr)
    sent = [line for line in proc.read(log).splitlines() if re.search(r"(kill|queueinfo|pidfd_send_signal)\(", line)]
    holds(sent, "the end of a run is a signal")
    for line in sent:
        holds(re.search(r"pidfd_send_signal\(\d+, SIGKILL, NULL, 0\)", line), f"a signal by number: {line}")
    return "TLE_WALL"


# H12, on a machine of its own
def drive_reused_number(caisson, path):
    """All numbers are used up and come round again: a process of the host that got one of the guest's lives on."""
    limit = "/proc/sys/kernel/pid_max"
    usual = proc.read(limit)
    canary = None
    try:
        _write(limit, "600")
        run = start_guest(caisson, path, "pids", options=("--wall", "120s", "--pids", "8"))
        run.wait_guest("prog")
        boundary, seen = run.boundaries().pop(), set()
        members = [group + "/cgroup.procs" for group in proc.cgroup_directories() if boundary in group]

        def take_over():
            for _ in range(LOOKS):
                seen.update(int(pid) for file in members for pid in proc.read(file).split())
            process = subprocess.Popen(["sleep", "1000"])
            if process.pid in seen:
                return process
            process.kill()
            process.wait()
            return None
        try:
            canary = harness.wait_until(take_over, 10, "a number of the guest's is given to another process")
        finally:
            run.stop()
        equal(canary.poll(), None, "the host's process")
    finally:
        _write(limit, usual)
        if canary:
            canary.kill()
            canary.wait()
    return "CANCELLED"


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


# H16
def drive_frozen(caisson, path):
    """Whoever freezes the guest's group: the limit holds, and all of it is gone."""
    run = start_guest(caisson, path, "sleep", options=("--wall", "1s"))
    run.wait_guest("prog")
    boundary = run.boundaries().pop()
    groups = [group for group in proc.cgroup_directories() if boundary in group and os.path.exists(group + "/cgroup.freeze")]
    for group in groups:
        _write(group + "/cgroup.freeze", "1")
    if not groups:
        print("# no version 2 hierarchy is mounted: nothing can be frozen")
    equal(run.reap(), 124)
    receipt = caisson.show("latest")
    equal((receipt["reason"], receipt["boundary"]["verified_empty"]), ("wall_limit", True))
    return "TLE_WALL"


# H30
def drive_edges(caisson, path):
    """Programs that end within a few milliseconds of their limit."""
    counted = {"OK": 0, "TLE_CPU": 0, "TLE_WALL": 0}
    for number in range(EDGE_RUNS):
        how = ("cpu", "wall")[number % 2]
        ends_ms = EDGE_MS - EDGE_WIDTH_MS + number * 2 * EDGE_WIDTH_MS // max(1, EDGE_RUNS - 1)
        result = run_guest(caisson, path, how, ends_ms, options=(f"--{how}", f"{EDGE_MS}ms"))
        is_in(result.word(), {"OK", f"TLE_{how.upper()}"}, str(result))
        counted[result.word()] += 1
        used = cases.cpu_ms(result) if how == "cpu" else cases.usage(result)["wall_ms"]
        holds(result.word() != "OK" or used <= EDGE_MS, f"succeeded with {used} ms of {EDGE_MS}: {result}")
    print(f"# ends near the limit: {counted}")
    return "OK"


# H31, on a machine of its own
def drive_stepped_clock(caisson, path):
    real, started = time.time(), time.monotonic()
    try:
        for step_s in (3600, -7200, 3600):
            run = start_guest(caisson, path, "sleep", options=("--wall", "3s"))
            run.wait_guest("prog")
            time.clock_settime(time.CLOCK_REALTIME, time.time() + step_s)
            equal(run.reap(120), 124)
            receipt = caisson.show("latest")
            is_in(receipt["usage"]["wall_ms"], range(3000, 3500), f"wall_ms with a step of {step_s} s")
            holds(0 <= receipt["times"]["cleanup_ms"] < 15000, f"cleanup_ms with a step of {step_s} s: {receipt['times']}")
        natural = start_guest(caisson, path, "sleep", options=("--wall", "60s"))
        natural.wait_guest("prog")
        time.clock_settime(time.CLOCK_REALTIME, time.time() + 3600)
        holds(natural.popen.poll() is None, "an hour of the wall clock ends no run")
        natural.stop()
        equal(caisson.verify().status, 0, "verify --all")
    finally:
        time.clock_settime(time.CLOCK_REALTIME, real + time.monotonic() - started)
    return "TLE_WALL"


# H43, H101
def drive_budgets(caisson, path):
    """A run that takes all it gets of what the kernel counts per user takes nothing from the host's root or from another run."""
    before = cases.lines(guests.bare(path, "one"))
    for name in ("inotify", "queue", "signal", "timer", "pipe"):
        equal(before[name], "0", f"{name} of the host's root")
    run = start_guest(caisson, path, *PROFLIGATE, options=("--wall", "60s", "--open-files", "4096", "--memory", "1G"))
    try:
        said = _read_until(run.popen.stdout, "holding")
        got = {name: int(said[name + ".got"]) for name in ("inotify", "queues", "signals", "timers")}
        equal((said["inotify"], said["signals"]), ("EMFILE", "EAGAIN"))
        holds(got["inotify"] <= 8 and got["queues"] == 0 and got["signals"] + got["timers"] <= 64, f"small numbers: {got}")
        equal(cases.lines(guests.bare(path, "one")), before, "what the host's root gets meanwhile")
        other = run_guest(caisson, path, "one")
        expect(other, "OK")
        seen = cases.lines(other)
        equal((seen.pop("queue"), seen.pop("pipe.bytes")), ("EMFILE", "65536"), "queue and size of a pipe of another run")
        equal(set(seen.values()), {"0"}, f"what another run gets meanwhile: {seen}")
    finally:
        run.stop()
    return "OK"


def _read_until(stream, last):
    """What a guest says up to and with a line, as lines() gives it."""
    text = []
    for line in iter(stream.readline, b""):
        text.append(line.decode())
        if line.strip() == last.encode():
            return cases.lines("".join(text))
    raise AssertionError(f"no line {last} in {''.join(text)!r}")


# H49, on a machine of its own
def drive_swap(caisson, path):
    file = "/var/lib/swap"
    with open(file, "wb") as out:
        out.write(bytes(96 << 20))
    os.chmod(file, 0o600)
    subprocess.run(["busybox", "mkswap", file], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["busybox", "swapon", file], check=True)
    try:
        bare = int(cases.lines(guests.bare(path, "pageout", "40"))["swapped_kib"])
        holds(bare > 0, "a bare run is swapped out")
        inside = run_guest(caisson, path, "pageout", 40)
        expect(inside, "OK")
        equal(cases.lines(inside), {"swapped_kib": "0"})
        expect(run_guest(caisson, path, "pageout", 100, options=("--memory", "64M")), "MLE")
    finally:
        subprocess.run(["busybox", "swapoff", file], check=True)
        os.unlink(file)
    return "MLE"


# H47
def drive_lookups(caisson, path):
    before = _slab_kib()
    result = run_guest(caisson, path, 300000, options=("--memory", "16M", "--wall", "60s"))
    # The kernel gives names up again, but frees them a grace period later: who asks faster than that is out of memory, his own.
    is_in(result.word(), {"OK", "MLE"}, str(result))
    if result.word() == "MLE":
        cases.check_oom(result)
    equal(cases.lines(result), {"missing": "300000"} if result.word() == "OK" else {})
    peak, grown = cases.usage(result)["memory_peak_bytes"], _slab_kib() - before
    holds(peak is None or 8 * cases.MIB <= peak <= 16 * cases.MIB, f"charged to the run: peak {peak}")
    # 300,000 names are 55 MiB when nobody is charged for them.
    holds(SHARED_MACHINE or grown < 40 << 10, f"the kernel's caches have grown by {grown} KiB")
    return result.word()


def _slab_kib():
    return next(int(line.split()[1]) for line in proc.read("/proc/meminfo").splitlines() if line.startswith("Slab:"))


# H52
def drive_dying_groups(caisson, path):
    """What a guest leaves charged does not keep its group alive after it is removed."""
    return _leave_charged(caisson, path, "some")


# H104
def drive_mapped_groups(caisson, path):
    """Nor does a file on disk that a descendant has mapped, dirty, when it is killed."""
    result = run_guest(caisson, path, "mapped", options=("--scratch", "disk"))
    equal((result.word(), cases.lines(result), result.receipt["boundary"]["survivors_killed"]), ("OK", {"mapped": "1"}, 1), str(result))
    return _leave_charged(caisson, path, "mapped", "--scratch", "disk")


def _leave_charged(caisson, path, how, *options):
    for _ in range(3):
        expect(run_guest(caisson, path, how, options=options), "OK")
    before = _dying_memory_groups()
    for _ in range(DYING_RUNS):
        done = caisson.run_plain(cases.BOX, how, options=(*with_program(path), *options))
        equal(done.status, 0, str(done))

    allowed = DYING_RUNS // (2 if SHARED_MACHINE else 10)

    def settled():
        return _dying_memory_groups() - before <= allowed
    harness.wait_until(settled, 5, f"no more than {allowed} of {DYING_RUNS} groups are kept by what was left in them", 0.1)
    return "OK"


def _dying_memory_groups():
    """Memory groups that are removed and still there; version 1 tells only how many there are in all."""
    for point in proc.cgroup_mounts():
        stat = proc.read(point + "/cgroup.stat")
        if "memory" in proc.read(point + "/cgroup.controllers").split():
            lines = dict(line.split() for line in stat.splitlines())
            return int(lines.get("nr_dying_subsys_memory", lines["nr_dying_descendants"]))
    in_all = next(int(line.split()[2]) for line in proc.read("/proc/cgroups").splitlines() if line.startswith("memory\t"))
    point = next(p for p in proc.cgroup_mounts() if os.path.exists(p + "/memory.limit_in_bytes"))
    return in_all - sum(1 for _ in os.walk(point))


# H82
def drive_inputs(caisson, path):
    source = scratch.file("input", b"as it was\n")
    result = run_guest(caisson, path, "inputs", options=("--input", f"{source}:/box/input"))
    expect(result, "OK")
    cases.all_refused(result, {"EROFS", "EPERM", "EACCES", "EBUSY", "EXDEV"}, at_least=14)
    equal(open(source, "rb").read(), b"as it was\n", "the caller's file")
    again = caisson.run("cat", "/box/input", options=("--input", f"{source}:/box/input"))
    equal((again.word(), again.guest_stdout, caisson.call("fsck").status), ("OK", b"as it was\n", 0), "the next run with it")
    return "OK"


# H83
def drive_quota(caisson, path):
    run = start_guest(caisson, path, "quota", "stay", options=("--wall", "60s", "--memory", "512M"))
    try:
        said = _read_until(run.popen.stdout, "full")
        equal(set(said.values()), {"ENOSPC"}, f"{said}")
        beside = caisson.run("sh", "-c", "echo fits >/out/file")
        equal((beside.word(), len(beside.receipt["artifacts"])), ("OK", 1), str(beside))
    finally:
        run.stop()
    equal(caisson.verify().status, 0, "verify --all")
    return "CANCELLED"


# H93
def drive_landlock_levels(caisson, _path):
    """The receipt states the level that is there; one that is not there refuses the run by name."""
    attributes = (NR_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION)
    level = max(0, ctypes.CDLL(None).syscall(*attributes))
    result = caisson.run("true", options=("--require", f"landlock>={level}") if level else ())
    expect(result, "OK")
    stated = [line["detail"] for line in result.receipt["boundary"]["evidence"] if line["name"] == "landlock"]
    equal(stated, [f"ABI {level}"] if level else [], "what the receipt states")
    refused = caisson.run("true", options=("--require", f"landlock>={level + 1}"))
    expect(refused, "REJECTED")
    equal(refused.reason, "limit_unenforceable", str(refused))
    holds(f"landlock>={level + 1}" in refused.receipt["detail"], str(refused))
    return "REJECTED"


# H99
def drive_forged_names(caisson, path):
    """Groups that carry half of a dead run's identity, and a living run of another ledger: recovery leaves them alone."""
    neighbour = start_guest(Caisson(), path, "sleep", options=("--wall", "60s"))
    dead = start_guest(caisson, path, "sleep", options=("--wall", "60s"))
    made, canaries = [], []
    try:
        living = neighbour.wait_guest("prog")[0]
        dead.wait_guest("prog")
        boundary = dead.boundaries().pop()
        group = min((path for path in proc.cgroup_directories() if boundary in path), key=len)
        ledger = os.path.basename(group).split(".")[0]
        for name in (f"led-aaaaaaaaaaaaaaaa.{boundary}", f"{ledger}.", ledger, f"{ledger}.{boundary}x", f"{ledger}.bnd-short"):
            made.append(os.path.join(os.path.dirname(group), name))
            os.mkdir(made[-1])
            canaries.append(subprocess.Popen(["sleep", "60"]))
            _write(made[-1] + "/cgroup.procs", str(canaries[-1].pid))
        dead.signal("group", 9)
        dead.reap()
        equal(caisson.recover().status, 0, "recover")
        holds(not os.path.exists(group), "the dead run's own group is gone")
        equal([canary.poll() for canary in canaries], [None] * len(made), f"a process in each of {made}")
        holds(not proc.Process(living).gone, "the neighbour's run lives")
    finally:
        for canary in canaries:
            canary.kill()
            canary.wait()
        for path_made in made:
            _remove_group(path_made)
        neighbour.stop()
        supervisor.reap_orphans()
    return "INTERRUPTED"


def _remove_group(path):
    if os.path.isdir(path):
        harness.wait_until(lambda: not proc.read(path + "/cgroup.procs"), 5, f"{path} is empty")
        os.rmdir(path)


# H100
def drive_many_at_once(caisson, path):
    def run(number):
        result = run_guest(caisson, path, f"mark-{number}", options=("--wall", "60s"))
        expect(result, "OK")
        return number, result

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, result in pool.map(run, range(AT_ONCE)):
            seen = cases.lines(result)
            equal(int(seen.pop("processes")), 1, "processes that it sees")
            is_in(int(seen.pop("pid")), range(2, 5), "its own pid")
            for name, value in seen.items():
                equal(value, "yes" if name.endswith(".own") else "0", f"{name} of run {number}")
            equal([a["path"] for a in result.receipt["artifacts"]], ["mark"])
            kept = caisson.call("cat", result.receipt["run"], "mark")
            equal(kept.stdout, f"mark-{number}".encode(), "its artifact")
    return "OK"


# H102
def drive_kernel_log(caisson, path):
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.lseek(log, 0, os.SEEK_END)
        result = run_guest(caisson, path, "flood")
        expect(result, "OK")
        equal(cases.lines(result), {"refused": "200000"})
        holds(_records_naming(log, "prog") == 0 or SHARED_MACHINE, "the kernel's log says nothing about refused calls")
        expect(run_guest(caisson, guests.program("memory.c"), "child", 200, options=cases.MEMORY_64M), "MLE")
        added = _records_naming(log, "")
        holds(added < KERNEL_LOG_LINES or SHARED_MACHINE, f"{added} records of the kernel's log about a killed group")
    finally:
        os.close(log)
    return "OK"


def _records_naming(log, name):
    """The number of records since the last call that hold a name."""
    count = 0
    while True:
        try:
            count += name.encode() in os.read(log, 8192)
        except BlockingIOError:
            return count
        except BrokenPipeError:  # overwritten before they were read
            count += 1
