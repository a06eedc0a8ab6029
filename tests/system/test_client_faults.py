#!/usr/bin/python3
"""test_client_faults.py - the subcommands that speak to a keeper, against one that can lose, cut, delay and refuse (support/fake_keeper.py)."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, scratch  # noqa: E402
from support.caisson import BIN, need  # noqa: E402
from support.fake_keeper import FakeKeeper, Fault, Run  # noqa: E402
from support.harness import equal, holds  # noqa: E402

suite = harness.Suite("client-faults")

ABSENT = "run-aaaaaaaaaaaaaaaa"


class Client:
    def __init__(self, keeper):
        self.keeper = keeper

    def command(self, verb, *words):
        return [need(BIN), verb, "--socket", self.keeper.path, *words]

    def call(self, verb, *words, timeout=60, **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL) if "input" not in keywords else None
        done = subprocess.run(self.command(verb, *words), capture_output=True, timeout=timeout, check=False, **keywords)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def start(self, verb, *words, **keywords):
        return subprocess.Popen(self.command(verb, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)

    def submit(self, *words):
        status, out, err = self.call("submit", *words)
        equal((status, err), (0, ""))
        return out.strip()


# ------------------------------------------------------------------ submit

@suite.case("submit prints the run's id, and the keeper has the manifest that the options describe")
def _():
    with FakeKeeper() as keeper:
        run = Client(keeper).submit("--wall", "3s", "--label", "a=b", "--", "true", "--flag")
        equal(keeper.runs[run].manifest, {"version": "caisson.manifest/v1", "command": {"argv": ["true", "--flag"]},
                                          "limits": {"wall_ms": 3000}, "labels": {"a": "b"}})


@suite.case("submit sends inputs first, and names them by their digests")
def _():
    source = scratch.file("main.c", b"int main;\n")
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--input", source + ":/box/main.c", "--stdin", source, "--", "cc")
        manifest = keeper.runs[run].manifest
        equal(keeper.objects[manifest["inputs"][0]["digest"]], b"int main;\n")
        equal(manifest["inputs"][0]["target"], "/box/main.c")
        equal(keeper.objects[manifest["stdin"]["digest"]], b"int main;\n")
        holds("source" not in json.dumps(manifest), manifest)


@suite.case("submit takes a stream of any length as stdin")
def _():
    data = os.urandom(3 << 20)
    with FakeKeeper() as keeper:
        status, out, err = Client(keeper).call("submit", "--stdin", "-", "--", "cat", input=data)
        equal((status, err), (0, ""))
        holds(keeper.objects[keeper.runs[out.strip()].manifest["stdin"]["digest"]] == data, "the bytes arrived")


def make_tree():
    """A directory with what a directory can have, and its files' contents."""
    directory = scratch.directory("tree")
    files = {b"a": b"first", b"d/b": b"second", b"d/e/again": b"first", b"d/e/odd \xff\n\"}": b"third", b"empty": b""}
    os.makedirs(os.path.join(directory, "d", "e"))
    os.mkdir(os.path.join(directory, "nothing"))
    os.symlink("../a", os.path.join(directory, "d", "link"))
    for name, content in files.items():
        with open(os.path.join(directory.encode(), name), "wb") as file:
            file.write(content)
    os.chmod(os.path.join(directory, "d", "b"), 0o755)
    return directory, set(files.values())


@suite.case("submit sends of a directory what the keeper has not, whatever is lost, and nothing twice")
def _():
    directory, contents = make_tree()
    with FakeKeeper() as keeper:
        keeper.missing_max = 2
        keeper.faults += [Fault("PUT", "/v1/trees", times=2, lose=True), Fault("PUT", "/v1/objects", times=2, lose=True)]
        run = Client(keeper).submit("--input", directory + ":/box/d", "--", "true")
        listing = keeper.trees[keeper.runs[run].manifest["inputs"][0]["digest"]]
        equal(set(keeper.objects.values()), contents)
        equal([(entry["kind"], entry["path"]) for entry in listing],
              [("file", "a"), ("dir", "d"), ("file", "d/b"), ("dir", "d/e"), ("file", "d/e/again"), ("file", "d/e/odd \\xff\\x0a\"}"),
               ("link", "d/link"), ("file", "empty"), ("dir", "nothing")])
        equal([entry["mode"] for entry in listing if entry["kind"] == "file"], ["0444", "0555", "0444", "0444", "0444"])
        before = keeper.count("PUT", "/v1/objects"), keeper.count("PUT", "/v1/trees")
        Client(keeper).submit("--input", directory + ":/box/d", "--", "true")
        equal((keeper.count("PUT", "/v1/objects"), keeper.count("PUT", "/v1/trees")), (before[0], before[1] + 1))


@suite.case("a keeper that asks strange things about a directory is told so, and nothing is submitted")
def _():
    directory, _contents = make_tree()
    first = os.path.join(directory, "a")
    absent = "sha256:" + "0" * 64

    def change(_listing):
        with open(first, "wb") as file:
            file.write(b"other")

    known = "sha256:" + hashlib.sha256(b"second").hexdigest()
    cases = ((lambda _listing: {"missing": [absent]}, "misses what was not listed"), (lambda _listing: {"missing": ["x"]}, "has no digest"),
             (lambda _listing: {"missing": [7]}, "has no digest"), (lambda _listing: {"missing": []}, "names nothing"),
             (lambda _listing: {}, "names nothing"), (lambda _listing: {"digest": absent}, "stored something else"),
             (lambda _listing: {"missing": [known, known]}, "misses what was not listed"),
             (lambda _listing: {"missing": [known]}, "still misses"), (change, "a: changed while it was sent"))
    for on_tree, words in cases:
        with FakeKeeper() as keeper:
            keeper.on_tree = on_tree
            status, out, err = Client(keeper).call("submit", "--input", directory + ":/box/d", "--", "true")
            equal((status, out, keeper.runs), (125, "", {}), err)
            holds("$.inputs[0].source: " in err and words in err, err)


@suite.case("submit refuses by name what can be no input, and nothing is submitted")
def _():
    directory = scratch.directory("tree")
    fifo = os.path.join(directory, "fifo")
    os.mkfifo(fifo)
    out_of_it = scratch.directory("link")
    os.symlink("/etc/passwd", os.path.join(out_of_it, "x"))
    with FakeKeeper() as keeper:
        for option, source, words in (("inputs[0]", directory, "fifo: is a FIFO"), ("inputs[0]", fifo, "is no regular file"),
                                      ("inputs[0]", out_of_it, "x: is an absolute link"), ("stdin", directory, "is a directory")):
            words_given = ("--stdin", source) if option == "stdin" else ("--input", source + ":/box/x")
            status, out, err = Client(keeper).call("submit", *words_given, "--", "true")
            equal((status, out), (125, ""))
            holds(f"$.{option}.source: {source}" in err and words in err, err)
        manifest = json.dumps({"version": "caisson.manifest/v1", "command": {"argv": ["x"]},
                               "inputs": [{"source": "/nowhere/x", "target": "/box/x"}]})
        status, out, err = Client(keeper).call("submit", "--manifest", "-", input=manifest.encode())
        equal((status, out), (125, ""))
        holds("$.inputs[0].source: /nowhere/x: cannot be read" in err, err)
        equal(keeper.runs, {})


@suite.case("a manifest is validated before anything is sent")
def _():
    with FakeKeeper() as keeper:
        status, _out, err = Client(keeper).call("submit", "--manifest", "-", input=b'{"version":"caisson.manifest/v1","command":{"argv":[]}}')
        equal(status, 125)
        holds("$.command.argv" in err, err)
        equal(keeper.requests, [])


@suite.case("what only the keeper refuses is told with its path")
def _():
    with FakeKeeper() as keeper:
        status, _out, err = Client(keeper).call("submit", "--label", "refuse=1", "--", "true")
        equal((status, err), (125, "caisson: submit: $.labels.refuse: is refused by the keeper alone\n"))


@suite.case("submit --key: the same manifest is the same run, another is a conflict")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--key", "one", "--", "true")
        equal(client.submit("--key", "one", "--", "true"), run)
        status, _out, err = client.call("submit", "--key", "one", "--", "false")
        equal((status, err), (125, "caisson: submit: the key was used for another manifest\n"))
        equal(len(keeper.runs), 1)


@suite.case("a key that could not be a header is refused")
def _():
    with FakeKeeper() as keeper:
        for key in ("a b", "a\r\nX: y", "k" * 129, "kä"):
            status, _out, err = Client(keeper).call("submit", "--key", key, "--", "true")
            equal(status, 125)
            holds("--key: must" in err, err)
        equal(keeper.requests, [])


@suite.case("a reply that is lost after the commit: the run is submitted once, and its id is told")
def _():
    with FakeKeeper() as keeper:
        keeper.faults.append(Fault("POST", "/v1/runs", times=2, lose=True))
        run = Client(keeper).submit("--", "true")
        equal((list(keeper.runs), keeper.count("POST", "/v1/runs")), ([run], 3))


@suite.case("a reply that is cut off at any of its bytes is asked for again")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        client.submit("--key", "k", "--", "true")
        reply = len("HTTP/1.1 200 X\r\nContent-Length: 52\r\n\r\n" + json.dumps({"run": ABSENT, "state": "queued"}))
        for cut in range(reply):
            keeper.faults.append(Fault("POST", "/v1/runs", cut=cut))
            client.submit("--key", "k", "--", "true")
        equal((len(keeper.runs), keeper.count("POST", "/v1/runs")), (1, 1 + 2 * reply))


@suite.case("an id that a full disk takes is told as an error; of a run that is waited for the status is its own")
def _():
    with FakeKeeper() as keeper, open("/dev/full", "wb") as full:
        for words, status in ((("--", "true"), 125), (("--json", "--", "true"), 125), (("--wait", "--", "true"), 0)):
            done = subprocess.run(Client(keeper).command("submit", *words), stdout=full, stderr=subprocess.PIPE, check=False)
            equal(done.returncode, status, f"{words}: {done.stderr!r}")
            run = list(keeper.runs)[-1]
            if status:
                equal(done.stderr.decode(), f"caisson: submit: {run} is submitted; standard output: No space left on device\n")


@suite.case("an upload that is lost is sent again from its beginning")
def _():
    data = os.urandom(2 << 20)
    source = scratch.file("data", data)
    with FakeKeeper() as keeper:
        keeper.faults.append(Fault("PUT", "/v1/objects", times=2, lose=True))
        run = Client(keeper).submit("--input", source + ":/box/data", "--", "true")
        holds(keeper.objects[keeper.runs[run].manifest["inputs"][0]["digest"]] == data, "whole")


@suite.case("without a keeper a command fails at once and says where it looked")
def _():
    keeper = FakeKeeper()
    for verb, words in (("submit", ("--", "true")), ("wait", (ABSENT,)), ("ps", ()), ("events", (ABSENT,)), ("logs", ("-f", ABSENT))):
        status, _out, err = Client(keeper).call(verb, *words, timeout=10)
        equal((status, err), (125, f"caisson: {verb}: no keeper answers on {keeper.path} (see caisson serve --help)\n"))


@suite.case("patience ends: a keeper that goes away for good is told")
def _():
    with FakeKeeper() as keeper:
        run = Client(keeper).submit("--", "forever")
        waiting = Client(keeper).start("wait", "--patience", "300ms", run)
        harness.wait_until(lambda: keeper.count("GET", "/v1/runs/"), 10, "it waits")
        keeper.stop()
        _out, err = waiting.communicate(timeout=30)
        equal(waiting.returncode, 125)
        holds(b"no keeper answers" in err or b"was lost" in err, err)


# ------------------------------------------------------------------ wait

@suite.case("wait exits as caisson run would have")
def _():
    cases = ((("true",), 0), (("exit", "7"), 7), (("signal", "SIGKILL"), 137), (("signal", "SIGRTMIN+3"), 165), (("exec", "ENOENT"), 127),
             (("exec", "EACCES"), 126), (("timeout",), 124), (("memory",), 137), (("provisional",), 125),
             (("quarantined",), 125))
    with FakeKeeper() as keeper:
        client = Client(keeper)
        for argv, expected in cases:
            status, out, err = client.call("wait", client.submit("--", *argv))
            equal((status, out), (expected, ""), argv)
            equal(bool(err), argv != ("true",), err)


@suite.case("wait --json prints exactly the receipt; a provisional result is told as one")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--", "exit", "3")
        status, out, _err = client.call("wait", "--json", run)
        equal((status, json.loads(out), out.count("\n")), (3, keeper.runs[run].receipt(), 1))
        run = client.submit("--", "provisional")
        status, out, err = client.call("wait", "--json", "--quiet", run)
        equal((status, err), (125, ""))
        equal(json.loads(out)["provisional_result"]["verdict"], "succeeded")


@suite.case("wait outlives a restart of the keeper")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        waiting = client.start("wait", client.submit("--", "sleep", "1"))
        harness.wait_until(lambda: keeper.count("GET", "/v1/runs/"), 10, "it waits")
        keeper.restart(0.3)
        _out, err = waiting.communicate(timeout=30)
        equal((waiting.returncode, err), (0, b""))


@suite.case("INT ends the waiting, and nothing else")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--", "forever")
        waiting = client.start("wait", run)
        harness.wait_until(lambda: keeper.count("GET", "/v1/runs/"), 10, "it waits")
        waiting.send_signal(signal.SIGINT)
        waiting.communicate(timeout=10)
        equal((waiting.returncode, keeper.runs[run].cancelled, keeper.count("POST", f"/v1/runs/{run}")), (-signal.SIGINT, False, 0))


@suite.case("submit --wait says both; \"latest\" is the newest run")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        status, out, err = client.call("submit", "--wait", "--", "exit", "4")
        run = out.strip()
        equal((status, err), (4, f"caisson: failed: exit_code: exit code 4 ({run})\n"))
        status, out, err = client.call("wait", "--json", "latest")
        equal((status, json.loads(out)["run"]), (4, run))


# ------------------------------------------------------------------ the others

@suite.case("cancel cancels; of a sealed run it says that nothing changes")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--", "forever")
        equal(client.call("cancel", run), (0, f"{run} is being cancelled\n", ""))
        equal(client.call("wait", "--quiet", run), (125, "", ""))
        status, out, _err = client.call("cancel", "--json", run)
        equal((status, json.loads(out)), (1, {"run": run, "sealed": True}))


@suite.case("a run that is not there, and a name that is none, are told")
def _():
    with FakeKeeper() as keeper:
        for verb in ("wait", "cancel", "events"):
            status, _out, err = Client(keeper).call(verb, ABSENT)
            equal((status, err), (125, f"caisson: {verb}: there is no run {ABSENT}\n"))
            status, _out, err = Client(keeper).call(verb, "../runs")
            holds(status == 125 and "is not the id of a run" in err, err)


@suite.case("the beginning of an id that two runs have names none of them")
def _():
    with FakeKeeper() as keeper:
        for last in "ab":
            run = Run("run-aaaaaaaaaaaaaaa" + last, {"command": {"argv": ["true"]}})
            keeper.runs[run.run] = run
        for verb in ("wait", "cancel", "events"):
            equal(Client(keeper).call(verb, "run-aaaa"), (125, "", f"caisson: {verb}: more than one run begins with run-aaaa\n"))
        equal(keeper.count("GET", "/v1/runs?limit=2&run=run-aaaa"), 3)


@suite.case("logs -f: each stream to its own, over lost and cut replies, byte for byte")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--", "sleep", "0.3")
        keeper.faults.extend([Fault("GET", f"/v1/runs/{run}/logs", after=2, lose=True), Fault("GET", f"/v1/runs/{run}/logs", after=3, times=2, cut=-2)])
        equal(client.call("logs", "-f", run), (0, f"output of {run}\n", "errors\n"))
        equal(client.call("logs", "--follow", "--stderr", run), (0, "errors\n", ""))


@suite.case("events -f: every record once, over a lost connection, until the seal")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        run = client.submit("--", "sleep", "0.3")
        keeper.faults.append(Fault("GET", f"/v1/runs/{run}/events", times=3, cut=1))
        status, out, err = client.call("events", "-f", "--json", run)
        equal((status, err), (0, ""))
        equal([(line["id"], line["event"]) for line in map(json.loads, out.splitlines())],
              [("1-1", "admitted"), ("1-2", "launched"), ("1-3", "exited"), ("1-4", "sealed")])


@suite.case("events without -f: what there is by now")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        status, out, err = client.call("events", client.submit("--", "forever"))
        equal((status, err, [row.split() for row in out.splitlines()]),
              (0, "", [["1-1", "admitted", "seq=1", 'kind="admitted"'], ["1-2", "launched", "seq=2", 'kind="launched"']]))


@suite.case("workers lists them, with the reason of a quarantine")
def _():
    with FakeKeeper() as keeper:
        status, out, _err = Client(keeper).call("workers")
        equal(status, 0)
        holds("busy" in out and "not verified empty" in out and len(out.splitlines()) == 2, out)
        equal(len(json.loads(Client(keeper).call("workers", "--json")[1])), 2)


@suite.case("ps lists what is not sealed, over all pages")
def _():
    with FakeKeeper() as keeper:
        client = Client(keeper)
        oldest = client.submit("--", "forever")
        for number in range(450):
            keeper.submit({"version": "caisson.manifest/v1", "command": {"argv": ["true"]}}, str(number))
        newest = client.submit("--", "forever")
        status, out, _err = client.call("ps")
        equal((status, [line.split()[0] for line in out.splitlines()]), (0, [newest, oldest]))
        equal(keeper.count("GET", "/v1/runs?"), 3)


if __name__ == "__main__":
    sys.exit(suite.main())
