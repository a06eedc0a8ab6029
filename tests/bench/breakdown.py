"""breakdown.py - where the time of a cold run goes, by the moments that its own records hold.

The records of an attempt say on CLOCK_MONOTONIC when each step was done; this process knows on the same clock when it spawned the
program, got the receipt, and reaped it. The start-up is taken from a program that does nothing else: `caisson version`.
"""

import json
import os
import sqlite3
import statistics
import sys
import time

# What ends each step, in its order: (name, what it is, the record whose moment it is, and which of its members).
STEPS = [
    ("ledger", "fork the worker, open the ledger, accept", "prepared", "from_ns"),
    ("prepare", "base view, limits set and read back", "prepared", "at_ns"),
    ("create", "namespaces, init, main at the gate", "suspended", "at_ns"),
    ("enroll", "every property verified from outside", "enrolled", "at_ns"),
    ("launch", "intent made durable, gate opened", "launched", "at_ns"),
    ("guest", "until main has exited", "main_exited", "at_ns"),
    ("cleanup", "drain, kill, remove the groups", "cleaned", "at_ns"),
    ("verify", "no member, no name left", "verified_empty", "at_ns"),
]


def spawn(words):
    """(when it was spawned, when its first byte of output came, when it was reaped, its output)"""
    reader, writer = os.pipe()
    before = time.monotonic_ns()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_CLOSE, reader)]
    pid = os.posix_spawn(words[0], words, {"PATH": os.environ["PATH"]}, file_actions=actions)
    os.close(writer)
    output = os.read(reader, 1 << 16)
    first = time.monotonic_ns()
    while more := os.read(reader, 1 << 16):
        output += more
    _, status = os.waitpid(pid, 0)
    after = time.monotonic_ns()
    os.close(reader)
    if status != 0:
        sys.exit(f"bench: {' '.join(words)} failed with wait status {status}")
    return before, first, after, output


def records_of(ledger, run):
    rows = ledger.execute("SELECT kind, body FROM record JOIN attempt USING (attempt_id) WHERE run_id = ?", (run,))
    return {kind: json.loads(body) for kind, body in rows}


def measure(caisson, ledger_dir, program, runs):
    """step -> [milliseconds]; the first run is not counted."""
    times = {name: [] for name in ["start-up", *(step[0] for step in STEPS), "seal", "exit", "all of it"]}
    taken = []
    for _ in range(runs + 1):
        began, _, ended, _ = spawn([caisson, "version"])
        taken.append((ended - began, spawn([caisson, "run", "--json", "--ledger", ledger_dir, "--", program])))
    ledger = sqlite3.connect(f"file:{ledger_dir}/ledger.db?mode=ro", uri=True)
    for startup, (before, first, after, output) in taken[1:]:
        records = records_of(ledger, json.loads(output)["run"])
        times["start-up"].append(startup / 1e6)
        last = before + startup
        for name, _, kind, member in STEPS:
            times[name].append((records[kind][member] - last) / 1e6)
            last = records[kind][member]
        times["seal"].append((first - last) / 1e6)
        times["exit"].append((after - first) / 1e6)
        times["all of it"].append((after - before) / 1e6)
    ledger.close()
    return times


def report(times):
    what = {"start-up": "a program that only says its version, spawned and reaped", "seal": "collect, sign, commit, write the receipt",
            "exit": "until it is reaped", "all of it": "spawned until reaped", **{name: text for name, text, _, _ in STEPS}}
    print("where the time goes, by the records of the run; ms, medians")
    for name, values in times.items():
        tenths = statistics.quantiles(values, n=10)
        print(f"{name:10} {statistics.median(values):6.2f}   (p10 {tenths[0]:.2f}, p90 {tenths[-1]:.2f})   {what[name]}")
