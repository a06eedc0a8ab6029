"""least.py - the least that each step of a cold run can take in the order that the contract asks for, measured by bare programs.

A run is accepted before anything of it exists on the host; main is verified at the gate before its launch intent is written; the intent
is durable before the gate opens; the receipt is written when nothing is left. So these steps cannot overlap, whoever performs them:

    start-up   a program that only says its version, spawned and reaped                 breakdown.py
    accept     SQLite opens the ledger and writes a run's first rows                    transactions.c
    create     groups, limits, a child in new namespaces with a root, at the gate       floor.c, without its network namespace
    enroll     every property verified from outside: as Caisson takes it                breakdown.py
    launch     SQLite makes the intent durable                                          transactions.c
    guest      the gate opened, the program executed and reaped                         floor.c
    cleanup    groups removed                                                           floor.c
    seal       SQLite makes the receipt durable                                         transactions.c

The rows are those of a run that is in the ledger already, written once more under other names; the transactions are in a copy of it that
another connection holds open, with a log written back before each: no recovery, no growth. Everything else is left out: no second
process, no JSON, no digest of a record, no signature, no filter, no Landlock, no limit of a file system, no output.
"""

import os
import random
import sqlite3
import statistics
import subprocess

import breakdown

STEPS = ("start-up", "accept", "create", "launch", "guest", "cleanup", "seal")
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
PART_END = "\n--\n"
ACCEPTED, INTENDED = 3, 7  # so many records are written when the run is accepted, and when its launch is intended


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


class Rows:
    """What the newest run left in each table, to be written again."""

    def __init__(self, db):
        def rows(table, column, value):
            return db.execute(f"SELECT * FROM {table} WHERE {column} = ?", (value,)).fetchall()

        self.run = rows("run", "rowid", db.execute("SELECT max(rowid) FROM run").fetchone()[0])[0]
        self.attempt = rows("attempt", "run_id", self.run[0])[0]
        self.lease = rows("lease", "attempt_id", self.attempt[0])[0]
        self.owner = rows("owner", "owner_id", self.lease[2])[0]
        self.records = sorted(rows("record", "attempt_id", self.attempt[0]), key=lambda row: row[1])
        self.streams = rows("stream", "attempt_id", self.attempt[0])
        self.intent = rows("launch_intent", "run_id", self.run[0])[0]
        self.seal = rows("seal", "run_id", self.run[0])[0]
        self.seals = db.execute("SELECT max(seal_seq) FROM seal").fetchone()[0]

    def transactions(self):
        """The three transactions of the next run."""
        self.seals += 1
        names = {old: old[:4] + "".join(random.choices(ALPHABET, k=16))
                 for old in (self.run[0], self.attempt[0], self.attempt[3], self.owner[0])}

        def renamed(value):
            if isinstance(value, str):
                for old, new in names.items():
                    value = value.replace(old, new)
            return value

        def insert(table, row):
            return f"INSERT INTO {table} VALUES ({', '.join(literal(renamed(value)) for value in row)});"

        def state(value):
            return f"UPDATE attempt SET state = '{value}' WHERE attempt_id = '{names[self.attempt[0]]}';"

        records = [insert("record", row) for row in self.records]
        accept = ["SELECT slot FROM attempt WHERE profile = 'linux' AND state <> 'sealed' AND state <> 'abandoned' ORDER BY slot;"
                  "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE;", insert("owner", self.owner), insert("run", self.run),
                  insert("attempt", (*self.attempt[:-1], "queued")), insert("lease", self.lease), *records[:ACCEPTED]]
        launch = ["PRAGMA synchronous = FULL; BEGIN IMMEDIATE;", *records[ACCEPTED:INTENDED], insert("launch_intent", self.intent),
                  state("enrolled")]
        seal = ["BEGIN IMMEDIATE;", *records[INTENDED:], *(insert("stream", row) for row in self.streams), state("sealed"),
                insert("seal", (self.seal[0], self.seals, *self.seal[2:]))]
        return "".join("".join(part) + "COMMIT;" + PART_END for part in (accept, launch, seal))


def printed(words, text=""):
    done = subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True, env={"PATH": os.environ["PATH"]})
    return [int(word) / 1e6 for word in done.stdout.split()]


def wall_ms(words):
    before, _, after, _ = breakdown.spawn(words)
    return (after - before) / 1e6


def measure(work, commands, program, rounds):
    """(step -> milliseconds, command -> milliseconds), medians of so many rounds, each of which measures all once; work holds the
    ledger and the compiled programs"""
    copy = os.path.join(work, "least.db")
    with sqlite3.connect(os.path.join(work, "ledger", "ledger.db")) as ledger:
        ledger.execute("VACUUM INTO ?", (copy,))
    holder = sqlite3.connect(copy, isolation_level=None)
    holder.execute("PRAGMA journal_mode = WAL")
    rows = Rows(holder)
    steps = {name: [] for name in STEPS}
    walls = {name: [] for name in commands}
    for _ in range(rounds + 1):
        holder.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        accept, launch, seal = printed([os.path.join(work, "transactions"), copy], rows.transactions())
        groups, child, guest, removed = printed([os.path.join(work, "floor"), work, program, "steps"])
        startup = wall_ms([commands["caisson"][0], "version"])
        for name, value in zip(STEPS, (startup, accept, groups + child, launch, guest, removed, seal)):
            steps[name].append(value)
        for name, words in commands.items():
            walls[name].append(wall_ms(words))
    holder.close()
    return tuple({name: statistics.median(values[1:]) for name, values in figures.items()} for figures in (steps, walls))


def report(steps, walls, ours, goals):
    """ours: the medians of breakdown.py"""
    own = {"start-up": ours["start-up"], "accept": ours["ledger"], "create": ours["prepare"] + ours["create"], "enroll": ours["enroll"],
           "launch": ours["launch"], "guest": ours["guest"], "cleanup": ours["cleanup"], "seal": ours["seal"]}
    least = {name: min(value, steps.get(name, value)) for name, value in own.items()}
    total = sum(least.values())
    print("the least of each step in the contract's order, by bare programs or by Caisson, whichever is faster; ms, medians")
    print(", ".join(f"{name} {value:.2f}" for name, value in least.items()))
    shares = ", ".join(f"{total / walls[other]:.2f} x {other} (goal {goal})" for other, goal in goals.items())
    print(f"together {total:.2f}: {shares}; Caisson in the same rounds {walls['caisson']:.2f}")
