"""processor.py - the processor time that a command costs the whole machine: its processes', and what the kernel's own threads do for it.

By /proc/stat (proc_stat(5)), whose unit is a tick of 10 ms: many runs in a row, then a while in which the kernel takes namespaces apart,
less what the machine uses when nothing is run. Nothing else should run: whatever does is counted.
"""

import os
import statistics
import time

import breakdown

ROUNDS = 5
RUNS = 60
SETTLE_S = 0.2  # teardown of namespaces goes on behind the command
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def busy_ms():
    """of all processors, since the start; guest time is in user time already"""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) * TICK_MS


def spent_ms(words, runs):
    """(busy time, elapsed time) of so many runs and the settling"""
    began_ms, began = busy_ms(), time.monotonic()
    for _ in range(runs):
        breakdown.spawn(words)
    time.sleep(SETTLE_S)
    return busy_ms() - began_ms, (time.monotonic() - began) * 1000


def measure(commands):
    """name -> [milliseconds of processor time a run], by rounds; what spawning costs this process is in all of them"""
    began_ms = busy_ms()
    time.sleep(2)
    idle = (busy_ms() - began_ms) / 2000  # of a processor
    figures = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, words in commands.items():
            busy, elapsed = spent_ms(words, RUNS)
            figures[name].append(max(0.0, busy - idle * elapsed) / RUNS)
    return {name: statistics.median(values) for name, values in figures.items()}, figures


def report(figures, spread, wall_ms, goals):
    """What the machine's processors could do in the goal's time, beside what its two halves alone cost."""
    print(f"processor time a run, all processors, the kernel's threads included; ms, medians of {ROUNDS} rounds of {RUNS}")
    for name, value in figures.items():
        print(f"{name:10} {value:6.2f}   (min {min(spread[name]):.2f}, max {max(spread[name]):.2f})")
    halves = figures["recording"] + figures["floor"] - figures["bare"]
    print(f"recording + floor - bare: {halves:.2f}: ledger, records and seal without a boundary, and a boundary's bare calls")
    for other, goal in goals.items():
        goal_ms = goal * wall_ms[other]
        print(f"{goal} x {other} is {goal_ms:.2f} ms: at most {goal_ms * os.cpu_count():.2f} ms of {os.cpu_count()} processors")
