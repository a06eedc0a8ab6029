"""more_cases.py - the rest of the corpus for the Linux boundary, in the form of cases.py; and which rows are shown elsewhere.

`OWN_MACHINE` are cases that would endanger a host (its clock, its swap, its numbers of processes): they run in tests/vm only.
"""

import more_drivers
from cases import ABSENT, MEMORY_64M, MIB, REFUSED, WALL_1S, all_refused, case, check_oom, cpu_ms, driven, lines, usage
from support import guests
from support.harness import env_int, equal, holds, is_in

DISK = ("--scratch", "disk")
DISK_MIB = env_int("CAISSON_TEST_DISK_MIB", 1024)
SHORT_ONES = env_int("CAISSON_TEST_SHORT_ONES", 1000)


# --- checks ---------------------------------------------------------------------------------------------------------------------

def check_sibling(result):
    equal(lines(result), {"clone.parent": "0"})


def check_short_ones(result):
    said_ms = int(lines(result)["used_us"]) / 1000
    holds(said_ms >= SHORT_ONES, f"{SHORT_ONES} children of a millisecond used {said_ms} ms")
    holds(abs(cpu_ms(result) - said_ms) <= max(said_ms * 0.02, 2), f"charged {cpu_ms(result)} ms, used {said_ms} ms")


def check_priority(result):
    seen = lines(result)
    equal(seen.pop("affinity"), "kept")
    for name, value in seen.items():
        is_in(value, {"EPERM", "EACCES"}, name)
    equal(len(seen), 4)


def control_priority(path):
    equal(lines(guests.bare(path))["nice"], "0", "a bare run of root gets ahead of others")


def check_stopped_by(errors, *names):
    """What was gathered ended at one of these errors, and below the number that was wanted."""
    def check(result):
        if result.word() == "MLE":
            check_oom(result)
            return
        seen = lines(result)
        for name in names:
            is_in(seen[name], errors, name)
            is_in(int(seen[name + ".got"]), range(1, 256), name)
    return check


def control_flight(path):
    equal(lines(guests.bare(path, "flight"))["flight"], "0", "a bare run of root has as many in flight as it wants")


def check_whole(result):
    equal(lines(result), {"blocks": str(DISK_MIB), "wrong": "0"})
    peak = usage(result)["memory_peak_bytes"]
    holds(peak is None or peak <= 256 * MIB < DISK_MIB * MIB, f"peak {peak} of 256 MiB")
    holds(not result.receipt["space_full"], str(result))


def check_small_group(result):
    check_oom(result)
    receipt = result.receipt
    equal((receipt["exit_code"], receipt["signal"]), (None, "SIGKILL"), "how main ended: init has lived to tell")
    holds("exited_at" in receipt["times"] and usage(result)["wall_ms"] < 5000, f"{receipt['times']}")


def check_impatient(result):
    seen = lines(result.guest_stderr.decode())
    equal(seen, {"nonblock": "0", "seek": "ESPIPE", "truncate": "EINVAL"})
    equal(result.guest_stdout, b"y\n" * 150000)


def check_closed(result):
    seen = lines(result)
    for name in ("immutable", "append_only"):
        is_in(seen.pop(name), REFUSED | {"ENOTTY", "EOPNOTSUPP"}, name)
    equal(set(seen.values()), {"0"}, f"its own modes are its own: {seen}")
    equal(result.receipt["artifacts"], [])


def check_own_places(result):
    all_refused(result, REFUSED | {"EINVAL"}, at_least=9)


def check_mapped(result):
    kept = result.receipt["artifacts"]
    equal([(a["path"], a["size_bytes"]) for a in kept], [("mapped", MIB)])
    equal(result.receipt["boundary"]["survivors_killed"], 1)


def check_freeze(result):
    all_refused(result, REFUSED | ABSENT, at_least=12)


def check_secrets(result):
    all_refused(result, REFUSED | ABSENT, at_least=22)


def control_secrets(path):
    seen = lines(guests.bare(path, "secrets"))
    for name in ("/proc/cmdline", "/proc/interrupts", "/proc/meminfo", "/root"):
        equal(seen[name], "0", f"a bare run reads {name}")


# --- the corpus -----------------------------------------------------------------------------------------------------------------

def driven_by(identity, title, function, program=""):
    return driven(identity, title, function.__name__, program)


MORE_CASES = [
    case("H09", "vfork.c", "TLE_WALL", options=WALL_1S),
    case("H11", "shapes.c", "TLE_WALL", options=WALL_1S),
    driven_by("H12", "shapes.c pids: signals go by pidfd alone", more_drivers.drive_traced_kills, "shapes.c"),
    case("H16", "kernel_files.c", "OK", "freeze", check=check_freeze),
    driven_by("H16", "stubborn.c in a frozen group", more_drivers.drive_frozen, "stubborn.c"),
    case("H20", "sibling.c", "NZ(7)", check=check_sibling),
    case("H25", "clock.c", "OK", "short", SHORT_ONES, options=("--wall", "60s"), check=check_short_ones, repeat=False),
    case("H26", "clock.c", "TLE_WALL", "dodge", options=WALL_1S),
    case("H26", "clock.c", "TLE_CPU", "dodge", options=("--cpu", "300ms"), title="clock.c dodge, until its CPU limit"),
    driven_by("H30", "clock.c ends near its limits", more_drivers.drive_edges, "clock.c"),
    case("H32", "calls.c", "OK", "clocks", check=lambda result: all_refused(result, REFUSED | ABSENT, at_least=6)),
    case("H34", "priority.c", "OK", check=check_priority, control=control_priority),
    case("H43", "hoard.c", {"OK", "MLE"}, "pipes", check=check_stopped_by({"EMFILE"}, "pipes")),
    case("H43", "hoard.c", {"OK", "MLE"}, "sockets", check=check_stopped_by({"EMFILE"}, "sockets")),
    case("H43", "hoard.c", "MLE", "pipes", "sockets", options=("--open-files", "4096", *MEMORY_64M), check=check_oom,
         title="hoard.c pipes and sockets under 64 MiB"),
    case("H44", "hoard.c", "OK", "flight", check=check_stopped_by({"ETOOMANYREFS"}, "flight"), control=control_flight),
    case("H46", "disk.c", "OK", "whole", DISK_MIB, options=(*DISK, "--work", f"{DISK_MIB + 64}M", "--wall", "120s"), check=check_whole,
         repeat=False),
    driven_by("H47", "lookups.c", more_drivers.drive_lookups, "lookups.c"),
    case("H49", "memory.c", "MLE", "pageout", 200, options=MEMORY_64M, check=check_oom),
    case("H51", "memory.c", "MLE", "touch", 200, options=("--memory", "4M"), check=check_small_group, title="memory.c under 4 MiB"),
    driven_by("H52", "fill.c some, again and again", more_drivers.drive_dying_groups, "fill.c"),
    case("H59", "output.c", "OK", "nonblock", 300000, check=check_impatient),
    case("H73", "place.c", "OK", "closed", check=check_closed),
    case("H74", "place.c", "OK", "mounts", options=("--input", "/etc/hosts:/box/input"), check=check_own_places),
    case("H78", "place.c", "OK", "mapped", check=check_mapped),
    driven_by("H82", "place.c inputs", more_drivers.drive_inputs, "place.c"),
    driven_by("H83", "place.c quota", more_drivers.drive_quota, "place.c"),
    driven_by("H93", "a level of Landlock that is not there", more_drivers.drive_landlock_levels),
    driven_by("H99", "groups with half of an identity", more_drivers.drive_forged_names, "stubborn.c"),
    driven_by("H100", "alone.c, many at once", more_drivers.drive_many_at_once, "alone.c"),
    driven_by("H101", "hoard.c beside others", more_drivers.drive_budgets, "hoard.c"),
    driven_by("H102", "calls.c flood", more_drivers.drive_kernel_log, "calls.c"),
    case("H103", "kernel_files.c", "OK", "secrets", check=check_secrets, control=control_secrets),
    driven_by("H104", "disk.c mapped, again and again", more_drivers.drive_mapped_groups, "disk.c"),
]

OWN_MACHINE = [
    driven_by("H12", "shapes.c pids: a number of the guest's goes to another", more_drivers.drive_reused_number, "shapes.c"),
    driven_by("H31", "stubborn.c, and the wall clock is stepped", more_drivers.drive_stepped_clock, "stubborn.c"),
    driven_by("H49", "memory.c pageout, with swap", more_drivers.drive_swap, "memory.c"),
]

# Rows that are shown by another suite: the file below tests/, and what it says there.
ELSEWHERE = {
    "H65": ("system/test_artifacts.py", "H65, H66"),
    "H66": ("system/test_artifacts.py", "H65, H66"),
    "H67": ("unit/artifact/test_collect.c", "RENAME_EXCHANGE"),
    "H68": ("system/test_artifacts.py", "H68"),
    "H69": ("system/test_artifacts.py", "H69"),
    "H70": ("system/test_artifacts.py", "H70"),
    "H71": ("system/test_artifacts.py", "H71"),
    "H72": ("system/test_artifacts.py", "H72"),
    "H75": ("system/test_artifacts.py", "H75"),
    "H76": ("system/test_artifacts.py", "H73, H76"),
    "H77": ("system/test_artifacts.py", "H77"),
    "H79": ("system/test_artifacts.py", "H79, H80"),
    "H80": ("system/test_artifacts.py", "H79, H80"),
    "H81": ("system/test_artifacts.py", "H81"),
}

LEFT_OUT = {
    "H97": "an image of a container engine; there is no such boundary in this version",
    "H98": "a tag of a container engine; there is no such boundary in this version",
}

ROWS = 104


def complete_ids():
    return [f"H{number:02d}" for number in range(1, ROWS + 1)]
