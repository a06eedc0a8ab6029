"""cases.py - the hostile corpus as data: which program, under which limits, which verdict, and what else must hold.

An id may have several cases (one for each way of doing it); test_hostile.py runs them all and test_corpus.py compares the ids with
the list that must be covered. `expect` is a set of verdict words (support/caisson.py). `control` runs the same program *without*
the boundary first, to show that what is asserted is the boundary's doing; only for what is harmless outside.
"""

import dataclasses
import re

from support import guests
from support.harness import equal, holds, is_in, patience

REFUSED = {"EPERM", "EACCES", "ENOSYS"}
ABSENT = {"ENOENT", "EROFS", "ENOTDIR"}
MIB = 1 << 20

BOX = "/box/prog"


@dataclasses.dataclass(frozen=True)
class Case:
    id: str
    program: str                     # a file of guests/, compiled when it is C; "" when a driver does everything
    expect: frozenset = frozenset()
    arguments: tuple = ()
    options: tuple = ()              # of caisson run
    title: str = ""
    static: bool = False
    check: object = None             # check(result) raises AssertionError
    control: object = None           # control(path of the program) runs it bare and asserts what it can do there
    repeat: bool = True              # I8 applies (a deterministic verdict)
    drive: str = ""                  # name of a function of drivers.py that runs it instead
    watch_rss: bool = False          # I6: the supervisor's memory stays flat

    @property
    def name(self):
        return f"{self.id} {self.title or ' '.join((self.program, *self.arguments))}"


def lines(result_or_text):
    """`name=value` lines of a guest as a dict."""
    text = result_or_text if isinstance(result_or_text, str) else result_or_text.text
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def all_refused(result, allowed, *prefixes, at_least=1):
    """Every line (of these prefixes) is one of the allowed errnos, and there are as many as the program tries."""
    seen = {k: v for k, v in lines(result).items() if not prefixes or k.startswith(prefixes)}
    holds(len(seen) >= at_least, f"{len(seen)} lines, expected at least {at_least}")
    for name, value in seen.items():
        is_in(value, allowed, name)


def usage(result):
    return result.receipt["usage"]


def cpu_ms(result):
    return usage(result)["cpu_user_ms"] + usage(result)["cpu_system_ms"]


# --- checks ---------------------------------------------------------------------------------------------------------------------

def check_pids_capped(cap):
    def check(result):
        peak = usage(result)["pids_peak"]
        holds(peak is None or 1 <= peak <= cap, f"pids_peak {peak}, cap {cap}")
    return check


def check_survivors(number):
    def check(result):
        equal(result.receipt["boundary"]["survivors_killed"], number, "survivors_killed")
        holds(result.receipt["boundary"]["verified_empty"], "verified_empty")
        equal(result.text, "main\n", "main's own output")
    return check


def check_retained(result):
    check_survivors(1)(result)
    limits, times = result.receipt["limits"], result.receipt["times"]
    holds(times["drain_ms"] <= limits["drain_ms"] + 1000, f"drained for {times['drain_ms']} ms")


def check_kill_own(result):
    equal(lines(result), {"kill.all": "0", "killed": "3"})


def check_kill_init(result):
    all_refused(result, REFUSED | {"ESRCH"}, "kill.i", "kill.p", "stop.", "tgkill.", "sigqueue.", "pidfd.", "ptrace.", at_least=7)
    equal(lines(result)["killed.visible"], "0")


def check_threads(result):
    seen = lines(result)
    equal(seen["refused"], "EAGAIN")
    equal(int(seen["threads"]), 63, "threads besides the first under a cap of 64")
    equal(usage(result)["pids_peak"], 64, "pids_peak")


def check_zombies(result):
    seen = {name: int(value) for name, value in lines(result).items()}
    equal(seen["made"] + seen["refused"], 5000)
    is_in(seen["made"], range(1, 64), "children under a cap of 64")


def check_setuid(result):
    seen = lines(result)
    holds(seen["found"].startswith("/"), "a setuid program is there to be tried")
    wanted = {"UID": "1000", "EUID": "1000", "SECURE": "0", "no_new_privs": "1"}
    equal({name: seen.get(name) for name in wanted}, wanted)


def control_setuid(path):
    # As nobody, who gains by it: then the loader keeps silent. The script comes on stdin: nobody may not read our directory.
    with open(path, "rb") as script:
        seen = lines(guests.bare("/bin/sh", "-s", stdin=script, user=65534, group=65534, cwd="/"))
    holds(seen["found"].startswith("/") and "EUID" not in seen, f"a bare run gains privileges: {seen}")


def check_cpu_between(low_ms, high_ms):
    def check(result):
        is_in(cpu_ms(result), range(low_ms, high_ms + 1), "CPU time used, in ms")
    return check


def check_mostly_system(result):
    holds(usage(result)["cpu_system_ms"] * 2 > cpu_ms(result), f"system time counted: {usage(result)}")
    check_cpu_between(950, 1400)(result)


def check_wall_only(result):
    holds(cpu_ms(result) < 200, f"no CPU time: {usage(result)}")
    is_in(usage(result)["wall_ms"], range(1000, 1500), "wall_ms")


def check_empty_program(result):
    holds(cpu_ms(result) <= patience(10), f"an empty program is charged {cpu_ms(result)} ms")


def check_oom(result):
    holds(usage(result)["oom_kills"] >= 1, f"oom_kills: {usage(result)}")


def check_fill(result):
    seen = lines(result)
    equal((seen["tmp"], seen["shm"]), ("ENOSPC", "ENOSPC"))
    total = int(seen["tmp.bytes"]) + int(seen["shm.bytes"])
    holds(32 * MIB <= total <= 64 * MIB, f"{total} bytes fitted into 64 MiB")
    holds('"space_full":true' in str(result.receipt).replace("'", '"').replace(": True", ":true"), "space_full is recorded")


def check_nothing_found(result):
    equal(result.text, "")


def check_pinned(result):
    if result.word() == "MLE":
        return
    seen = lines(result)
    is_in(seen["userfaultfd"], REFUSED)
    is_in(seen["mlock"], {"EPERM", "ENOMEM", "EAGAIN"}, "mlock of more than the memory limit")


def check_oom_adjust(result):
    seen = lines(result)
    is_in(seen["adjust.-1000"], {"EACCES", "EPERM", "EROFS"})
    is_in(seen["adjust.-1"], {"EACCES", "EPERM", "EROFS"})
    check_oom(result)


def stream(result, name):
    return result.receipt[name]


def check_overflow(name, cap):
    def check(result):
        seen = stream(result, name)
        kept = result.guest_stdout if name == "stdout" else result.guest_stderr
        equal((seen["kept_bytes"], len(kept)), (cap, cap), f"{name} kept")
        holds(seen["bytes"] > cap, f"{name} had more: {seen}")
        equal(kept[:4], b"y\ny\n")
        equal(stream(result, "stderr" if name == "stdout" else "stdout")["dropped_bytes"], 0, "the other stream's dropped_bytes")
    return check


def check_drip(result):
    seen = stream(result, "stdout")
    holds(seen["bytes"] > 10, f"drops kept: {seen}")
    equal(result.guest_stdout, b"." * seen["bytes"])


def check_stderr_only(result):
    check_overflow("stderr", MIB)(result)
    equal(stream(result, "stdout")["bytes"], 0)


def check_truncated(result):
    seen = stream(result, "stderr")
    equal((seen["bytes"], seen["kept_bytes"], seen["dropped_bytes"]), (1024 * MIB, MIB, 1023 * MIB))
    equal(len(result.guest_stderr), MIB)
    holds(seen["drained"], "drained")


def check_awkward_bytes(result):
    expected = bytes(range(256)) + b"\0\0\xff\xfe caf\xc3"
    equal(result.guest_stdout, expected)
    equal(stream(result, "stdout")["bytes"], len(expected))


def check_reopen(result):
    seen = lines(result.guest_stderr.decode())
    for name in ("/proc/self/fd/1", "/dev/stdout", "/dev/fd/1"):
        is_in(seen[name], {"0", "EACCES", "EPERM", "ENXIO"}, name)
    equal(stream(result, "stdout")["kept_bytes"], MIB)


def check_descriptors(result):
    seen = lines(result)
    equal(sorted(seen), ["fd.0", "fd.1", "fd.2"])
    holds(re.fullmatch(r"/dev/null|/null", seen["fd.0"]) or seen["fd.0"].endswith("/null"), f"fd 0 is {seen['fd.0']}")
    holds(seen["fd.1"].startswith("pipe:") and seen["fd.2"].startswith("pipe:"), f"outputs are pipes: {seen}")


def control_descriptors(path):
    holds({"fd.0", "fd.1", "fd.2"} <= set(lines(guests.bare(path, "fds"))), "a bare run sees its descriptors")


def check_environ(result):
    own = {line.split(".", 2)[2].split("=", 1)[0] for line in result.text.splitlines() if line.startswith("env.self.")}
    equal(own, {"PATH", "HOME", "LANG"})
    holds("hush" not in result.text, "the supervisor's secret is not to be read")
    for who in ("init", "parent"):
        if lines(result)[f"environ.{who}"] == "0":
            holds(f"env.{who}." not in result.text, f"environ of {who} is empty or closed")


def check_mounts(result):
    all_refused(result, REFUSED | {"EBADF"}, at_least=16)


def control_mounts(path):
    seen = lines(guests.bare(path, "mount", prefix=("unshare", "--mount", "--propagation", "private")))
    equal((seen["mount.tmpfs"], seen["fsopen"], seen["open_tree"]), ("0", "0", "0"), "a bare run mounts, in a namespace of its own")


def check_namespaces(result):
    all_refused(result, {"EPERM", "ENOSYS", "ENOSPC"}, "unshare.", "clone.", "setns.", at_least=18)
    equal(lines(result)["clone3.user"], "ENOSYS", "clone3, so that libc falls back")


def control_namespaces(path):
    seen = lines(guests.bare(path, "namespaces"))
    equal((seen["unshare.user"], seen["clone.user"], seen["unshare.net"]), ("0", "0", "0"), "a bare run makes namespaces")


def check_kernel_calls(result):
    seen = lines(result)
    equal((seen.pop("alive"), seen.pop("core.kept")), ("yes", "1"))
    for name, value in seen.items():
        is_in(value, REFUSED, name)
    holds(len(seen) >= 20, f"{len(seen)} calls were tried")


def control_kernel_calls(path):
    seen = lines(guests.bare(path, "harmless"))
    known = ("io_uring_setup", "bpf", "perf_event_open", "keyctl", "pidfd_getfd", "userfaultfd")
    holds(sum(seen[name] == "0" for name in known) >= 3, f"a bare run may make such calls: {seen}")


def check_foreign_calls(result):
    for name, value in lines(result).items():
        is_in(value, {"exit:1", "signal:31", "signal:11"}, name)
    equal(sorted(lines(result)), ["int80", "x32"])


def check_kernel_files(result):
    all_refused(result, REFUSED | ABSENT, at_least=16)


def check_cgroup_files(result):
    all_refused(result, REFUSED | ABSENT, at_least=12)


def check_brokers(result):
    seen = lines(result)
    equal((seen.pop("SSH_AUTH_SOCK"), seen.pop("DBUS_SESSION_BUS_ADDRESS")), ("unset", "unset"))
    for name, value in seen.items():
        # A refused connection would mean that a socket's name is there.
        is_in(value, {"ECONNREFUSED", "EPERM"} if name.startswith("@") else {"ENOENT", "EACCES", "ENOTDIR"}, name)


def check_own_loopback(result):
    equal(lines(result), {"own.connect": "0", "own.said": "hi"})


BIRTH = {
    "signals.blocked": "0", "signals.not_default": "0", "uid": "1000:1000:1000", "gid": "1000:1000:1000", "groups": "0",
    "umask": "022", "nice": "0", "scheduler": "0", "cwd": "/box", "hostname": "caisson", "session": "1", "no_new_privs": "1",
    "rlimit.nofile": "256:256", "rlimit.nice": "0:0", "rlimit.rtprio": "0:0", "rlimit.msgqueue": "0:0",
}


def check_birth(result):
    seen = lines(result)
    equal({name: seen.get(name) for name in BIRTH}, BIRTH)
    holds(seen["tty"] != "0", "no controlling terminal")
    is_in(seen["rlimit.core"].split(":")[0], {"0", "1"}, "core limit")
    equal(seen["rlimit.stack"].split(":")[0], str(8 * MIB), "soft stack limit")
    is_in(int(seen["rlimit.sigpending"].split(":")[1]), range(1, 1025), "signals that may be pending")


def control_birth(path):
    holds(lines(guests.bare(path, "ids"))["no_new_privs"] == "0", "a bare run has no no_new_privs")


# --- the corpus -----------------------------------------------------------------------------------------------------------------

def case(identity, program, expect, *arguments, **more):
    expect = {expect} if isinstance(expect, str) else set(expect)
    return Case(identity, program, frozenset(expect), tuple(str(a) for a in arguments), **more)


def driven(identity, title, drive, program=""):
    return Case(identity, program, title=title, drive=drive, repeat=False)


WALL_1S = ("--wall", "1s", "--cpu", "60s")
MEMORY_64M = ("--memory", "64M")

CASES = [
    case("H01", "fork_bomb.c", {"TLE_WALL"}, options=(*WALL_1S, "--pids", "32"), check=check_pids_capped(32)),
    case("H02", "daemon.c", "OK", "closed", check=check_survivors(1)),
    case("H03", "daemon.c", "RETAINED", "open", check=check_retained),
    case("H04", "daemon.c", "RETAINED", "flight", check=check_retained),
    case("H04", "daemon.c", {"OK", "RETAINED"}, "cycle", repeat=False),
    case("H05", "stubborn.c", "TLE_WALL", "spin", options=WALL_1S),
    case("H06", "stubborn.c", "TLE_WALL", "stop", options=WALL_1S),
    case("H07", "kill_all.c", "OK", "self", check=check_kill_own),
    case("H08", "kill_all.c", "NZ(3)", "init", check=check_kill_init),
    case("H10", "threads.c", "OK", check=check_threads),
    case("H13", "zombies.c", "OK", check=check_zombies),
    driven("H14", "spy.c on parent, pid 1, and another run", "drive_spy", "spy.c"),
    driven("H15", "a process that will not die", "drive_stuck_cleanup"),
    case("H17", "setuid.sh", "OK", check=check_setuid, control=control_setuid),
    driven("H18", "daemon.c stay, supervisor killed", "drive_supervisor_killed", "daemon.c"),
    driven("H19", "supervisor killed 0 to 50 ms after its start", "drive_killed_early", "stubborn.c"),
    case("H21", "stubborn.c", "TLE_WALL", "sleep", options=("--wall", "1s"), check=check_wall_only),
    case("H22", "burn.c", "TLE_CPU", "child", options=("--cpu", "500ms"), check=check_cpu_between(450, 900)),
    case("H23", "burn.c", "TLE_CPU", "threads", options=("--cpu", "1s"), check=check_cpu_between(950, 1400)),
    case("H24", "burn.c", "TLE_CPU", "system", options=("--cpu", "1s"), check=check_mostly_system),
    case("H27", "stubborn.c", "TLE_CPU", "xcpu", options=("--cpu", "500ms")),
    *[case("H28", "ending.c", f"SIG({n})", "raise", n) for n in (9, 24, 25, 31)],
    *[case("H29", "ending.c", f"NZ({n})", "exit", n) for n in (124, 125, 126, 127, 137, 139, 152, 255)],
    driven("H33", "ends in time, cleanup takes 10 s", "drive_slow_cleanup"),
    case("H35", "ending.c", "OK", static=True, check=check_empty_program),
    case("H36", "memory.c", "MLE", "touch", 200, options=MEMORY_64M, check=check_oom),
    case("H37", "memory.c", "OK", "reserve"),
    case("H38", "big_array.c", "MLE", options=("--memory", "512M", "--wall", "20s"), check=check_oom),
    case("H39", "memory.c", "MLE", "child", 200, options=MEMORY_64M, check=check_oom),
    case("H40", "fill.c", "OK", check=check_fill),
    case("H40", "fill.c", "OK", "list", check=check_nothing_found, title="the next run starts empty"),
    case("H41", "memory.c", "MLE", "memfd", 200, options=MEMORY_64M, check=check_oom),
    driven("H42", "ipc.c leaves IPC objects behind", "drive_ipc", "ipc.c"),
    case("H45", "memory.c", {"OK", "MLE"}, "pinned", 200, options=MEMORY_64M, check=check_pinned),
    case("H48", "memory.c", "MLE", "adjust", 200, options=MEMORY_64M, check=check_oom_adjust),
    case("H50", "hello.c", {"OK", "MLE", "REJECTED"}, options=("--memory", "1M"), static=True, title="hello.c under 1 MiB"),
    case("H50", "hello.c", {"OK", "MLE", "REJECTED"}, options=("--memory", "4M"), static=True, title="hello.c under 4 MiB"),
    case("H53", "output.c", "OLE", "yes", check=check_overflow("stdout", MIB), watch_rss=True),
    case("H54", "output.c", "TLE_WALL", "drip", options=("--wall", "1s"), check=check_drip),
    case("H55", "output.c", "OLE", "stderr", 1024, check=check_stderr_only, watch_rss=True),
    case("H55", "output.c", "OK", "stderr", 1024, options=("--on-overflow", "truncate", "--wall", "60s"), check=check_truncated,
         title="1 GiB to stderr, truncated", repeat=False, watch_rss=True),
    driven("H56", "64 KiB + 1 without a newline, then exit", "drive_tails", "output.c"),
    case("H57", "output.c", "OK", "bytes", check=check_awkward_bytes),
    driven("H58", "terminal escapes on a terminal", "drive_escapes", "output.c"),
    case("H60", "output.c", "OLE", "reopen", check=check_reopen),
    driven("H61", "descriptors handed to the outside", "drive_pass_descriptors", "network.c"),
    driven("H62", "forge.c prints a perfect receipt", "drive_forged_receipt", "forge.c"),
    driven("H63", "1 GiB of stdin, never read", "drive_unread_input", "input.c"),
    driven("H64", "no stdin", "drive_no_input", "input.c"),
    case("H84", "identity.c", "OK", "fds", check=check_descriptors, control=control_descriptors),
    driven("H85", "environ of self, init, parent", "drive_environ", "identity.c"),
    case("H86", "kernel_files.c", "OK", check=check_kernel_files),
    case("H87", "calls.c", "OK", "mount", check=check_mounts, control=control_mounts),
    case("H88", "calls.c", "OK", "namespaces", check=check_namespaces, control=control_namespaces),
    case("H89", "calls.c", "OK", "kernel", check=check_kernel_calls, control=control_kernel_calls),
    case("H90", "foreign_calls.c", "OK", check=check_foreign_calls),
    driven("H91", "terminal.c injects input", "drive_terminal", "terminal.c"),
    case("H92", "network.c", "OK", "own", check=check_own_loopback),
    driven("H92", "network.c reaches out", "drive_network", "network.c"),
    case("H94", "kernel_files.c", "OK", "cgroup", check=check_cgroup_files),
    case("H95", "network.c", "OK", "brokers", check=check_brokers),
    case("H96", "identity.c", "OK", "ids", check=check_birth, control=control_birth),
]

# The rows that the first issue wants shown on the Linux boundary, as it writes them.
REQUIRED = ("H01-H08 H10 H13-H15 H17-H19 H21-H24 H27-H29 H33 H35-H42 H45 H48 H50 H53-H58 H60-H64 H84-H92 H94-H96")


def required_ids():
    ids = []
    for word in REQUIRED.split():
        first, _, last = word.partition("-")
        ids += [f"H{number:02d}" for number in range(int(first[1:]), int((last or first)[1:]) + 1)]
    return ids
