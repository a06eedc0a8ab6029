"""matrix.py - one round of the crash matrix: a run meets its fault, whoever is left recovers, and an oracle judges what there is.

A mode is how runs are made: Run is `caisson run`, where keeper and worker live for one run. A program is what the guest does.
"""

import dataclasses
import http.client
import json
import os
import signal
import statistics
import subprocess
import threading
import time

from support import caisson as product
from support import harness, proc, scratch, server, supervisor
from support.invariants import Watch

from fault import points
from fault.points import NATURAL, NO_RUN

GUEST_DEAD_S = 2.0
FIRES_S = 20
ENDS_S = 60
WORD = {"quick": "OK", "long": "TLE_WALL", "fork": "OK", "input": "OK", "tree": "OK", "loud": "OK", "cancel": "CANCELLED"}

FORK = """for i in 1 2 3; do sh -c 'exec >/dev/null 2>&1; : >/tmp/$0; exec sleep 60' $i & done
while ! [ -e /tmp/1 -a -e /tmp/2 -a -e /tmp/3 ]; do sleep 0.01; done
yes $1 | head -c 40000; yes $1.out | head -c 200000 >/out/big; echo $1 >/out/small"""


@dataclasses.dataclass(frozen=True)
class Program:
    argv: tuple
    options: tuple = ()


def program(name, nonce, endless):
    """nonce makes what is stored new each time. endless: the guest must not end by itself, for it is to be found alive."""
    if name == "long":
        return Program(("sleep", "60"), ("--wall", "60s" if endless else "300ms"))
    if name == "cancel":
        return Program(("sleep", "60"), ("--wall", "60s", "--grace", "0s"))
    if name == "fork":
        return Program(("sh", "-c", FORK, "sh", nonce))
    if name == "loud":
        return Program(("sh", "-c", "yes $1 | head -c 200000", "sh", nonce))
    if name == "input":
        return Program(("cmp", "/box/in", "/box/in"), ("--input", scratch.file("in", (nonce + "\n").encode() * 20000) + ":/box/in"))
    if name == "tree":
        folder = scratch.directory("tree")
        for number in range(3):
            with open(os.path.join(folder, f"{number}"), "w", encoding="ascii") as file:
                file.write(nonce * (number + 1))
        return Program(("test", "-s", "/box/in/2"), ("--input", folder + ":/box/in"))
    return Program(("true",))


class Run:
    """`caisson run`: the keeper is the process that was started, and who killed it recovers."""

    name = "run"

    def __init__(self):
        self.caisson = product.Caisson(product.FAULT_BIN)
        harness.equal(self.caisson.run("true").word(), "OK")  # so that a round has no ledger to make

    def start(self, guest, fault):
        return supervisor.Supervisor.start(self.caisson, *guest.argv, options=guest.options, env=fault, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)

    def cancel(self, run):
        os.kill(run.keeper, signal.SIGINT)

    def end(self, run, keeper_died):
        """Waits until the caller has his answer. keeper_died: called when it did, before anybody takes its place."""
        run.reap(ENDS_S)
        keeper_died()


class Served:
    """A run that was submitted to `caisson serve`, and whose caller waits."""

    def __init__(self, caisson, guest, fault):
        self.caisson, self.boundaries_before = caisson, caisson.boundary_ids()
        self.cancelling = self.answer = None
        gate = os.path.join(scratch.directory("gate"), "open")
        self.server = server.Server(caisson, "--drain", "5s", env={**fault, "CAISSON_FAULT_GATE": gate}, workers=1)
        try:
            harness.wait_until(lambda: self.server.worker_states()[0]["state"] == "available", FIRES_S, "the worker is verified")
        except AssertionError as error:
            self.server.popen.kill()
            raise AssertionError(f"{error}: {self.server.log}") from error
        self.first_keeper = self.server.popen
        with open(gate, "w", encoding="ascii"):
            pass
        words = caisson.command("submit", "--socket", self.server.socket, "--wait", "--quiet", "--key", os.urandom(6).hex(), *guest.options,
                                "--", *guest.argv)
        self.popen = subprocess.Popen(words, env=caisson.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)

    def cancel(self, path):
        """The fault may come before the answer: then the front says that its keeper is gone, or is gone too, or both are stopped."""
        try:
            self.answer = self.server.request("POST", path, {}).status
        except (OSError, http.client.HTTPException):
            pass

    @property
    def keeper(self):
        return self.server.popen.pid

    def boundaries(self):
        return self.caisson.boundary_ids() - self.boundaries_before

    def wait_guest(self, name):
        return harness.wait_until(lambda: [p for p in supervisor.members(self.boundaries()) if p.name == name], FIRES_S, "the guest runs")

    def signal(self, _target, number):
        """Everybody but the caller."""
        for pid in [self.keeper, *proc.descendants(self.keeper)]:
            if not proc.Process(pid).is_guest:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass

    def reap(self):
        self.popen.kill()
        self.popen.wait()
        self.server.stop()


class Serve(Run):
    """`caisson serve` with one worker, started for each round; another keeper takes its place when it dies."""

    name = "serve"

    def start(self, guest, fault):
        return Served(self.caisson, guest, fault)

    def cancel(self, run):
        run_id = max(self.caisson.rows("SELECT rowid, run_id FROM run"), key=lambda row: row["rowid"])["run_id"]
        run.cancelling = threading.Thread(target=run.cancel, args=(f"/v1/runs/{run_id}/cancel",))
        run.cancelling.start()

    def end(self, run, keeper_died):
        deadline = time.monotonic() + ENDS_S
        while run.popen.poll() is None:
            if run.server.popen.poll() is not None and run.server.popen is run.first_keeper:
                run.server.reader.join(10)
                keeper_died()
                run.server.env = None
                run.server.start()
            harness.holds(time.monotonic() < deadline, f"the caller gets an answer: {run.server.log}")
            time.sleep(0.005)
        if run.cancelling:
            run.cancelling.join()
            harness.is_in(run.answer, {202, 503, None}, "the cancellation's answer")
        run.server.stop()


MODES = {"run": Run, "serve": Serve}


@dataclasses.dataclass
class Verdict:
    """What the oracle says about a round."""
    duplicates: list = dataclasses.field(default_factory=list)
    lost: list = dataclasses.field(default_factory=list)
    orphans: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def troubles(self):
        return [f"{kind}: {text}" for kind in ("duplicates", "lost", "orphans", "wrong") for text in getattr(self, kind)]


class Round:
    """One run, one fault, one recovery."""

    def __init__(self, mode, point, action, program_name):
        self.mode, self.point, self.action, self.program_name = mode, point, action, program_name
        self.caisson = mode.caisson
        self.verdict = Verdict()

    def __str__(self):
        return f"{self.mode.name} {self.point.name}:{self.action} {self.program_name}"

    def play(self):
        self.watch = Watch(self.caisson, settle_s=0.3)
        self.runs_before = self.run_ids()
        self.mark = os.path.join(scratch.root(), "mark")
        if os.path.exists(self.mark):
            os.unlink(self.mark)
        nonce = os.urandom(6).hex()
        stops = self.action in ("stop", "group")
        endless = self.program_name == "long" and self.point.before_end and self.action in ("kill", "group")
        endless = endless and NATURAL not in self.expected()
        guest = program(self.program_name, nonce, endless)
        fault = {"CAISSON_FAULT": f"{self.point.name}:{'stop' if stops else self.action}", "CAISSON_FAULT_MARK": self.mark}
        self.run = self.mode.start(guest, fault)
        try:
            if self.program_name == "cancel":
                self.run.wait_guest("sleep")
                self.mode.cancel(self.run)
            if stops:
                self.while_stopped()
            self.end()
        except BaseException:
            self.run.signal("group", signal.SIGKILL)
            self.run.reap()
            self.recover()
            raise
        self.converge()
        self.judge()
        return self.verdict

    def run_ids(self):
        return {row["run_id"] for row in self.caisson.rows("SELECT run_id FROM run")}

    def fired(self):
        """The process that met the point, once it has."""
        words = proc.read(self.mark).split()
        return int(words[0]) if words else None

    def while_stopped(self):
        """Others leave alone what a living keeper owns; then it goes on, or all of it is killed at once."""
        pid = harness.wait_until(self.fired, FIRES_S, f"{self}: the point is passed")
        harness.wait_until(lambda: proc.Process(pid).state == "T", FIRES_S, f"{self}: {pid} stops")
        if self.action == "group":
            self.run.signal("group", signal.SIGKILL)
            return
        owned = self.owned()
        harness.equal(self.caisson.recover().status, 0)
        if self.owned() != owned:
            self.verdict.duplicates.append(f"a living keeper's attempts were {owned}, are {self.owned()}")
        if self.caisson.run("true", options=("--label", "control=yes")).word() != "OK":
            self.verdict.wrong.append("no other run while one is stopped")
        os.kill(pid, signal.SIGCONT)

    def owned(self):
        """The unfinished attempts, and the generation of each one's lease."""
        return {row["attempt_id"]: row["generation"] for row in
                self.caisson.rows("SELECT attempt_id, max(generation) AS generation FROM lease JOIN attempt USING (attempt_id) "
                                  "WHERE state <> 'sealed' AND state <> 'abandoned' GROUP BY attempt_id")}

    def end(self):
        self.mode.end(self.run, self.keeper_died)
        if not self.fired():
            self.verdict.wrong.append("the point was never passed")

    def keeper_died(self):
        """Before anybody recovers."""
        if self.action in ("kill", "group"):
            try:
                supervisor.wait_dead(self.run.boundaries, GUEST_DEAD_S)
            except AssertionError as error:
                self.verdict.orphans.append(str(error))

    def converge(self):
        self.recover()
        self.verdict.seconds = time.time() - os.stat(self.mark).st_mtime if self.fired() else 0
        before = self.rows()
        self.recover()
        if self.rows() != before:
            self.verdict.wrong.append("a second recovery changed something")
        supervisor.reap_orphans()

    def recover(self):
        done = self.caisson.recover()
        if done.status != 0:
            self.verdict.wrong.append(f"recover: {done}")

    def rows(self):
        return self.caisson.rows("SELECT attempt.attempt_id, attempt.state, seal.receipt FROM attempt LEFT JOIN seal USING (attempt_id)")

    # The oracle.

    def judge(self):
        self.judge_rows()
        self.judge_outcome()
        self.judge_host()
        self.judge_evidence()

    def judge_rows(self):
        query = ("SELECT run.run_id, (SELECT count(*) FROM seal WHERE seal.run_id = run.run_id) AS seals, "
                 "(SELECT count(*) FROM launch_intent WHERE launch_intent.run_id = run.run_id) AS intents, "
                 "(SELECT count(*) FROM attempt WHERE attempt.run_id = run.run_id AND attempt.state NOT IN ('sealed', 'abandoned')) AS unsealed FROM run")
        for row in self.caisson.rows(query):
            if row["seals"] > 1 or row["intents"] > 1:
                self.verdict.duplicates.append(f"run {row['run_id']}: {row['seals']} seals, {row['intents']} launch intents")
            if row["seals"] == 0 or row["unsealed"]:
                self.verdict.lost.append(f"run {row['run_id']}: {row['seals']} seals, {row['unsealed']} attempts unsealed")
        if self.runs_before - self.run_ids():
            self.verdict.lost.append(f"runs are gone: {self.runs_before - self.run_ids()}")

    def outcome(self):
        """What became of the run of this round: (verdict, receipt)."""
        mine = [run for run in self.run_ids() - self.runs_before if self.is_mine(run)]
        if not mine:
            return NO_RUN, None
        if len(mine) > 1:
            self.verdict.duplicates.append(f"{len(mine)} runs of one submission")
        receipt = self.caisson.show(mine[0])
        if receipt is None or "verdict" not in receipt:
            return f"no receipt: {receipt}", None
        word = product.verdict_word(receipt, 0)
        return (NATURAL if word == WORD[self.program_name] else receipt["verdict"]), receipt

    def is_mine(self, run):
        """The control runs of a round are `true` with a label."""
        return b"control" not in self.caisson.rows(f"SELECT manifest FROM run WHERE run_id = '{run}'")[0]["manifest"]

    def expected(self):
        if self.action in ("kill", "group"):
            return points.kill_outcome(self.point, self.mode.name, self.action == "group")
        if self.action in ("eio", "enospc"):
            return points.failure_outcome(self.point)
        return {NATURAL}

    def judge_outcome(self):
        got, receipt = self.outcome()
        expected = self.expected()
        if got not in expected:
            reason = f" ({receipt['reason']}: {receipt['detail']})" if receipt else ""
            self.verdict.wrong.append(f"expected {' or '.join(sorted(expected))}, got {got}{reason}")
        if receipt and got == "interrupted" and self.action in ("kill", "group"):  # nobody is left who could know
            known = [name for name, value in receipt["usage"].items() if value is not None and name != "wall_ms"]
            if receipt["exit_code"] is not None or receipt["signal"] is not None or known:
                self.verdict.wrong.append(f"an interrupted run has an invented end: {receipt['exit_code']}, {receipt['usage']}")

    def judge_host(self):
        for name, texts in self.watch.check().items():
            kind = {"I7": "lost", "I10": "wrong"}.get(name, "orphans")
            getattr(self.verdict, kind).extend(f"{name}: {text}" for text in texts)

    def judge_evidence(self):
        """All verifies; and what no row names is taken by a sweep, so that then every object has its row."""
        for verb, words in (("verify", ("--all",)), ("fsck", ()), ("gc", ("--older", "0s"))):
            done = self.caisson.call(verb, *words)
            if done.status != 0:
                self.verdict.wrong.append(f"{verb}: {done}")
        store = json.loads(self.caisson.call("fsck", "--json").stdout)
        if store["unnamed"] or store["problems"]:
            self.verdict.wrong.append(f"the store behind a sweep: {store}")


class Totals:
    def __init__(self):
        self.rounds, self.sums, self.seconds, self.failed = 0, dict.fromkeys(("duplicates", "lost", "orphans", "wrong"), 0), [], []

    def add(self, played):
        verdict = played.verdict
        self.rounds += 1
        if played.action in ("kill", "group"):
            self.seconds.append(verdict.seconds)
        for kind in self.sums:
            self.sums[kind] += len(getattr(verdict, kind))
        if verdict.troubles():
            self.failed.append((str(played), verdict.troubles()))

    def __str__(self):
        median, worst = (statistics.median(self.seconds), max(self.seconds)) if self.seconds else (0, 0)
        return (f"{self.rounds} rounds, {self.sums['duplicates']} duplicates, {self.sums['lost']} lost, {self.sums['orphans']} orphans, "
                f"{self.sums['wrong']} wrong verdicts; time to converge {median * 1000:.0f} ms median, {worst * 1000:.0f} ms worst")
