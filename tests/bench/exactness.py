#!/usr/bin/env python3
"""exactness.py - how exact Caisson's figures and limits are, against what the guest and the kernel say themselves.

Four questions, each answered with the number of runs and the spread: does a receipt's CPU time agree with the guest's own
getrusage; how long after a limit does the guest still run, by its own clock, and how long under a bare timer; is a program that
ends about at its limit ever called `succeeded` with a figure above it; is set-up charged to an empty program. Writes nothing but
below build/.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SOURCES = os.path.join(TOP, "tests", "bench")
WORK = os.path.join(TOP, "build", "exactness")
LEDGER = os.path.join(WORK, "ledger")
CFLAGS = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread"]
EMPTY = "/bin/true"

BUSY_MS = [100, 1000, 3000]
SHAPES = {"one": "one process", "threads": "4 threads", "children": "2,000 children"}
KILL_MS = 100
EDGE_MS = 100       # the limit, and how far around it the programs end
EDGE_AROUND_US = 5000

BUSY_MAX_PERCENT = 2.0
LATE_MEDIAN_MS, LATE_WORST_MS, LATE_BEHIND_TIMER_MS = 5, 50, 10
EMPTY_CPU_MS, EMPTY_MEMORY_BYTES = 1, 1 << 20


def program(name):
    return os.path.join(WORK, name)


def prepare():
    os.umask(0o022)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    os.mkdir(LEDGER, 0o700)
    for name in ("guest", "deadline", "join"):
        subprocess.run(["cc", *CFLAGS, os.path.join(SOURCES, name + ".c"), "-o", program(name)], check=True)


class Caisson:
    def __init__(self, binary):
        self.binary = binary

    def run(self, argv, **limits):
        """(receipt, what the guest wrote)"""
        manifest = {"version": "caisson.manifest/v1", "command": {"argv": argv}, "limits": limits}
        if argv[0] == "/box/guest":
            manifest["inputs"] = [{"source": program("guest"), "target": "/box/guest", "mode": "0555"}]
        done = subprocess.run([self.binary, "run", "--ledger", LEDGER, "--json", "--manifest", "-"], input=json.dumps(manifest),
                              capture_output=True, text=True, check=False)
        if not done.stdout:
            sys.exit(f"exactness: no receipt: {done.stderr}")
        receipt = json.loads(done.stdout)
        logs = subprocess.run([self.binary, "logs", "--ledger", LEDGER, receipt["run"], "--stdout"], capture_output=True, text=True,
                              check=True)
        return receipt, logs.stdout


def cpu_ms(receipt):
    return receipt["usage"]["cpu_user_ms"] + receipt["usage"]["cpu_system_ms"]


def need(receipt, verdict, reason):
    if (receipt["verdict"], receipt["reason"]) != (verdict, reason):
        sys.exit(f"exactness: expected {verdict} {reason}, got {receipt['verdict']} {receipt['reason']}: {receipt['detail']}")


def head(*names):
    print(f"{'':28} {'n':>4}" + "".join(f" {name:>11}" for name in names))


def row(name, count, *figures):
    words = [figure if isinstance(figure, str) else f"{figure:.2f}" for figure in figures]
    print(f"{name:28} {count:4}" + "".join(f" {word:>11}" for word in words))


def say(met, goal):
    print(f"  {'met' if met else 'MISSED'}: {goal}\n")
    return met


def busy(caisson, count):
    print("CPU time: the receipt against the guest's own getrusage, itself and children")
    head("guest ms", "receipt ms", "median %", "worst %")
    worst = 0.0
    for amount in BUSY_MS:
        for shape, words in SHAPES.items():
            own, charged = [], []
            for _ in range(count):
                receipt, text = caisson.run(["/box/guest", "busy", shape, str(amount)], wall_ms=60000, cpu_ms=60000)
                need(receipt, "succeeded", "")
                own.append(sum(map(int, text.split())) / 1e6)
                charged.append(cpu_ms(receipt))
            percents = [100 * (theirs - ours) / ours for ours, theirs in zip(own, charged)]
            furthest = max(percents, key=abs)
            worst = max(worst, abs(furthest))
            row(f"{amount / 1000:g} s, {words}", count, statistics.median(own), statistics.median(charged),
                statistics.median(percents), furthest)
    return say(worst <= BUSY_MAX_PERCENT, f"every difference <= {BUSY_MAX_PERCENT:g} %")


def last_stamp_ms(text):
    """The last sign of life that is whole: (wall, CPU)."""
    wall_ns, cpu_ns = map(int, text[:text.rindex("\n")].split("\n")[-1].split())
    return wall_ns / 1e6, cpu_ns / 1e6


def spread(late):
    tenths = statistics.quantiles(late, n=10)
    return statistics.median(late), tenths[0], tenths[-1], max(late)


def kills(caisson, count):
    """The three ways are interleaved: what else the machine does meets all of them."""
    guest = ["forever", "wall", str(KILL_MS * 1000)]
    by_guest = {"bare timer": [], "wall limit": [], "CPU limit": []}
    by_receipt = {"wall limit": [], "CPU limit": []}
    bare_timer = [program("deadline"), str(KILL_MS), program("guest"), *guest]
    for _ in range(count):
        timer = subprocess.run(bare_timer, capture_output=True, text=True, check=True)
        receipt, text = caisson.run(["/box/guest", *guest], wall_ms=KILL_MS)
        need(receipt, "timed_out", "wall_limit")
        # The bare timer starts a little before main(), and so does Caisson's: a guest killed in time has made no stamp at all.
        by_guest["bare timer"].append(last_stamp_ms(timer.stdout)[0] - KILL_MS if timer.stdout else 0)
        by_guest["wall limit"].append(last_stamp_ms(text)[0] - KILL_MS if text else 0)
        by_receipt["wall limit"].append(receipt["usage"]["wall_ms"] - KILL_MS)
        receipt, text = caisson.run(["/box/guest", "forever", "cpu", str(KILL_MS * 1000)], cpu_ms=KILL_MS)
        need(receipt, "timed_out", "cpu_limit")
        by_guest["CPU limit"].append(last_stamp_ms(text)[1] - KILL_MS if text else 0)
        by_receipt["CPU limit"].append(cpu_ms(receipt) - KILL_MS)
    print(f"Lateness of a kill at {KILL_MS} ms, by the guest's own clock and by the receipt: ms after the limit")
    head("median", "p10", "p90", "worst")
    for name, late in by_guest.items():
        row(f"{name}, guest", count, *spread(late))
    met = True
    for name, late in by_receipt.items():
        row(f"{name}, receipt", count, *spread(late))
        worst = max(late + by_guest[name])
        met = (met and max(statistics.median(late), statistics.median(by_guest[name])) <= LATE_MEDIAN_MS
               and worst <= max(LATE_WORST_MS, max(by_guest["bare timer"]) + LATE_BEHIND_TIMER_MS))
    return say(met, f"median <= {LATE_MEDIAN_MS} ms; worst <= {LATE_WORST_MS} ms, or <= the timer's + {LATE_BEHIND_TIMER_MS} ms")


def edge(caisson, clock, count):
    """Programs that end within 5 ms of their limit. Returns how many were judged wrongly."""
    succeeded, stopped, above, below = 0, 0, 0, 0
    for i in range(count):
        end_us = EDGE_MS * 1000 - EDGE_AROUND_US + 2 * EDGE_AROUND_US * i // (count - 1)
        limits = {"wall_ms": EDGE_MS} if clock == "wall" else {"cpu_ms": EDGE_MS}
        receipt, text = caisson.run(["/box/guest", "until", clock, str(end_us)], **limits)
        figure = receipt["usage"]["wall_ms"] if clock == "wall" else cpu_ms(receipt)
        if receipt["verdict"] == "succeeded":
            succeeded += 1
            own = last_stamp_ms(text)[0 if clock == "wall" else 1]
            above += figure > EDGE_MS or own > EDGE_MS
        else:
            need(receipt, "timed_out", f"{clock}_limit")
            stopped += 1
            below += figure < EDGE_MS
    row(f"{clock} limit of {EDGE_MS} ms", count, *map(str, (succeeded, stopped, above, below)))
    return above + below


def edges(caisson, count):
    print(f"Programs that end within {EDGE_AROUND_US / 1000:g} ms of a limit, by their own clock and by the receipt")
    head("succeeded", "timed_out", "ok above", "out below")
    wrong = sum(edge(caisson, clock, count) for clock in ("wall", "cpu"))
    return say(wrong == 0, "no `succeeded` with a figure above the limit, no `timed_out` with one below it")


def group_places():
    """Where the test makes its own groups: (directories, files of CPU ns and of the memory peak)."""
    v1, v2 = {}, None
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, tail = (part.split() for part in line.split(" - ", 1))
            if tail[0] == "cgroup":
                v1.update({name: fields[4] for name in tail[2].split(",")})
            elif tail[0] == "cgroup2":
                v2 = fields[4]
    name = f"caisson-exactness-{os.getpid()}"
    if "cpuacct" in v1 and "memory" in v1:
        cpu, memory = (os.path.join(v1[controller], name) for controller in ("cpuacct", "memory"))
        return [cpu, memory], f"{cpu}/cpuacct.usage", f"{memory}/memory.max_usage_in_bytes"
    group = os.path.join(v2, name)
    return [group], f"{group}/cpu.stat", f"{group}/memory.peak"


def first_number(path):
    with open(path, encoding="utf-8") as file:
        words = file.read().split()
    return int(words[1]) * 1000 if words[0] == "usage_usec" else int(words[0])


def bare():
    """(CPU ms, peak bytes) of the empty program in a group that this test made."""
    groups, cpu, memory = group_places()
    for group in groups:
        os.mkdir(group)
    try:
        subprocess.run([program("join"), *(f"{group}/cgroup.procs" for group in groups), "--", EMPTY], check=True)
        return first_number(cpu) / 1e6, first_number(memory)
    finally:
        for group in groups:
            os.rmdir(group)


def empty(caisson, count):
    figures = {"bare cgroup": [], "receipt": []}
    for _ in range(count):
        receipt, _ = caisson.run([EMPTY])
        need(receipt, "succeeded", "")
        figures["receipt"].append((cpu_ms(receipt), receipt["usage"]["memory_peak_bytes"]))
        figures["bare cgroup"].append(bare())
    print(f"{EMPTY}: the receipt against the same program in a bare cgroup of this test")
    head("CPU ms", "worst", "peak KiB", "worst")
    medians = []
    for name, values in figures.items():
        cpu, memory = zip(*values)
        medians.append((statistics.median(cpu), statistics.median(memory)))
        row(name, count, medians[-1][0], float(max(cpu)), f"{medians[-1][1] / 1024:.0f}", f"{max(memory) / 1024:.0f}")
    (bare_cpu, bare_memory), (cpu, memory) = medians
    return say(abs(cpu - bare_cpu) <= EMPTY_CPU_MS and abs(memory - bare_memory) <= EMPTY_MEMORY_BYTES,
               f"medians within {EMPTY_CPU_MS} ms of CPU and {EMPTY_MEMORY_BYTES >> 20} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.path.join(TOP, "build", "caisson"), help="the program to measure")
    parser.add_argument("--runs", type=int, default=50, help="kills of each kind, and empty programs")
    parser.add_argument("--busy", type=int, default=5, help="busy loops of each kind")
    parser.add_argument("--edges", type=int, default=200, help="programs that end about at each limit")
    options = parser.parse_args()
    if min(options.runs, options.edges) < 2 or options.busy < 1:
        parser.error("too few runs")
    prepare()
    print(f"Exactness on {platform.release()}, {os.cpu_count()} CPUs\n")
    caisson = Caisson(os.path.abspath(options.binary))
    met = [busy(caisson, options.busy), kills(caisson, options.runs), edges(caisson, options.edges), empty(caisson, options.runs)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
