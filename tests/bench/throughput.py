#!/usr/bin/env python3
"""throughput.py - a warm keeper: runs a second of a batch against bare processes, bubblewrap and firejail; latency against the floor.

Throughput: `caisson batch` of /bin/true over a keeper that serves, against the same number of spawns, as many at a time as the keeper has
workers, and of rounds of floor.c: its share of the bare rate is what the kernel leaves to anything that has a boundary. Latency: from the submission to the receipt, one at a time, over a connection that stays, against floor.c. Rounds are interleaved; each
figure comes with its number and its spread.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

import bench

TOP, WORK, PROGRAM = bench.TOP, bench.WORK, bench.PROGRAM
GOAL_THROUGHPUT, GOAL_LATENCY = 0.5, 1.5
MANIFEST = json.dumps({"version": "caisson.manifest/v1", "command": {"argv": [PROGRAM]}})


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.path.join(WORK, "ledger", "api.sock"))

    def ask(self, method, path, body=None):
        self.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        return json.loads(self.getresponse().read())


class Keeper:
    def __init__(self, workers):
        self.program = os.path.join(TOP, "build", "caisson")
        self.ledger = os.path.join(WORK, "ledger")
        self.popen = subprocess.Popen([self.program, "serve", "--ledger", self.ledger, "--workers", str(workers)],
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.popen.stderr:
            if '"event":"serving"' in line:
                return
        sys.exit("throughput: the keeper does not serve")

    def stop(self):
        self.popen.terminate()
        self.popen.stderr.read()
        self.popen.wait()

    def batch(self, path, count):
        """Nanoseconds from the start of the command to its end."""
        started = time.monotonic_ns()
        done = subprocess.run([self.program, "batch", "--ledger", self.ledger, path], stdout=subprocess.PIPE, check=True)
        took = time.monotonic_ns() - started
        good = sum(1 for line in done.stdout.splitlines() if json.loads(line)["receipt"]["verdict"] == "succeeded")
        if good != count:
            sys.exit(f"throughput: {good} of {count} runs succeeded")
        return took


def firejail():
    words = [shutil.which("firejail"), "--quiet", "--noprofile", "--net=none", "--private", "--private-dev", "--seccomp", "--caps.drop=all"]
    return words + ["--", PROGRAM] if words[0] else None


class Floor:
    """So many processes of floor.c, each of which does a round when it is asked."""

    def __init__(self, processes):
        words = [bench.compile_tool("floor"), os.path.join(WORK, "ledger"), PROGRAM]
        self.popens = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]

    def ask(self, count):
        """Of each of them."""
        for popen in self.popens:
            popen.stdin.write("\n" * count)
            popen.stdin.flush()

    def answer(self):
        """Nanoseconds of one round of each."""
        return [int(popen.stdout.readline()) for popen in self.popens]

    def rounds(self, count):
        """Nanoseconds for so many in all, shared out among them."""
        started, share = time.monotonic_ns(), count // len(self.popens)
        self.ask(share)
        for _ in range(share):
            self.answer()
        return (time.monotonic_ns() - started) * count // (share * len(self.popens))

    def stop(self):
        for popen in self.popens:
            popen.stdin.close()
            popen.wait()


def throughput(rounds, count, workers):
    """name -> [runs a second], of each round."""
    parallel = bench.compile_tool("parallel")
    path = os.path.join(WORK, "batch.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write((MANIFEST + "\n") * count)
    peers = {"bare": [PROGRAM], "bwrap": bench.bwrap(), "firejail": firejail()}
    peers = {name: words for name, words in peers.items() if words}
    rates = {name: [] for name in ("caisson", "floor", *peers)}
    keeper = Keeper(workers)
    floor = Floor(workers)
    try:
        for number in range(rounds + 1):
            took = {"caisson": keeper.batch(path, count), "floor": floor.rounds(count)}
            for name, words in peers.items():
                done = subprocess.run([parallel, str(count), str(workers), *words], stdout=subprocess.PIPE, check=True)
                took[name] = int(done.stdout)
            if number > 0:  # the first round warms up
                for name, ns in took.items():
                    rates[name].append(count / (ns / 1e9))
    finally:
        keeper.stop()
        floor.stop()
    return rates


def submit_and_wait(connection):
    started = time.monotonic_ns()
    run = connection.ask("POST", "/v1/runs", MANIFEST)["run"]
    while not connection.ask("GET", f"/v1/runs/{run}?wait_ms=10000").get("receipt"):
        pass
    return (time.monotonic_ns() - started) / 1e6


def latency(rounds):
    """name -> [milliseconds]"""
    parallel = bench.compile_tool("parallel")
    times = {"caisson": [], "floor": [], "bare": []}
    keeper = Keeper(1)
    floor = Floor(1)
    try:
        connection = Connection("localhost")
        for number in range(rounds + 1):
            took = {"caisson": submit_and_wait(connection)}
            floor.ask(1)
            took["floor"] = floor.answer()[0] / 1e6
            done = subprocess.run([parallel, "1", "1", PROGRAM], stdout=subprocess.PIPE, check=True)
            took["bare"] = int(done.stdout) / 1e6
            if number > 0:
                for name, ms in took.items():
                    times[name].append(ms)
    finally:
        keeper.stop()
        floor.stop()
    return times


def table(title, values):
    print(title)
    print(f"{'':9} {'n':>5} {'median':>8} {'p10':>8} {'p90':>8} {'min':>8} {'max':>8}")
    for name, numbers in values.items():
        tenths = statistics.quantiles(numbers, n=10)
        print(f"{name:9} {len(numbers):5} {statistics.median(numbers):8.2f} {tenths[0]:8.2f} {tenths[-1]:8.2f} {min(numbers):8.2f} "
              f"{max(numbers):8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=50, help="rounds (at least 50)")
    parser.add_argument("--count", type=int, default=60, help="runs of each batch")
    options = parser.parse_args()
    if options.pairs < 50:
        parser.error("fewer than 50 pairs say little")
    bench.prepare()
    workers = os.cpu_count()
    rates = throughput(options.pairs, options.count, workers)
    table(f"runs a second, {options.count} of {PROGRAM} a round, {workers} at a time", rates)
    ratios = {name: statistics.median(o / t for o, t in zip(rates["caisson"], theirs)) for name, theirs in rates.items() if name != "caisson"}
    met = ratios["bare"] >= GOAL_THROUGHPUT
    for name, ratio in ratios.items():
        goal = f" (goal >= {GOAL_THROUGHPUT}): {'met' if met else 'MISSED'}" if name == "bare" else ""
        print(f"caisson / {name}: {ratio:.2f}{goal}")
    print(f"floor / bare: {statistics.median(f / b for f, b in zip(rates['floor'], rates['bare'])):.2f}")
    times = latency(options.pairs)
    table("milliseconds from submission to receipt, one at a time", times)
    ratio = statistics.median(times["caisson"]) / statistics.median(times["floor"])
    print(f"caisson / floor: {ratio:.2f} (goal <= {GOAL_LATENCY}): {'met' if ratio <= GOAL_LATENCY else 'MISSED'}")
    print(f"caisson / bare: {statistics.median(times['caisson']) / statistics.median(times['bare']):.2f}")
    return 0 if met and ratio <= GOAL_LATENCY else 1


if __name__ == "__main__":
    sys.exit(main())
