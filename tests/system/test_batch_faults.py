#!/usr/bin/python3
"""test_batch_faults.py - `caisson batch`: one result for each line, whatever is wrong with the line, the keeper, or whoever reads.

Against a keeper that can lose, cut, delay and refuse (support/fake_keeper.py).
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, scratch  # noqa: E402
from support.caisson import BIN, need, sanitized  # noqa: E402
from support.fake_keeper import FakeKeeper, Fault  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.terminal import Terminal  # noqa: E402

suite = harness.Suite("batch-faults")


def line(*argv, **fields):
    return json.dumps({"version": "caisson.manifest/v1", "command": {"argv": list(argv)}, **fields})


def lines(count, *argv):
    return "".join(line(*(argv or ("true",)), labels={"n": str(n)}) + "\n" for n in range(1, count + 1))


def command(keeper, *words):
    return [need(BIN), "batch", "--socket", keeper.path, *words]


def batch(keeper, text, *words, timeout=120):
    """(exit status, results, standard error)"""
    done = subprocess.run(command(keeper, *words, "-"), input=text.encode(), capture_output=True, timeout=timeout, check=False)
    return done.returncode, [json.loads(row) for row in done.stdout.splitlines()], done.stderr.decode()


def start(keeper, *words, **keywords):
    return subprocess.Popen(command(keeper, *words, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)


def labels(results, keeper):
    return [int(keeper.runs[result["run"]].manifest["labels"]["n"]) for result in results]


@suite.case("results come in the order of the lines, however the runs end")
def _():
    rows = [line("sleep", str(random.choice((0, 0.01, 0.05))), labels={"n": str(n)}) for n in range(1, 201)]
    with FakeKeeper() as keeper:
        status, results, err = batch(keeper, "\n".join(rows) + "\n")
        equal((status, err), (0, ""))
        equal([result["line"] for result in results], list(range(1, 201)))
        equal(labels(results, keeper), list(range(1, 201)))
        equal(results[0], {"line": 1, "key": results[0]["key"], "run": results[0]["run"], "receipt": keeper.runs[results[0]["run"]].receipt()})
        equal(len(keeper.runs), 200)


@suite.case("--unordered tells each result when it is there")
def _():
    with FakeKeeper() as keeper:
        status, results, _err = batch(keeper, line("sleep", "1") + "\n" + lines(20), "--unordered")
        equal((status, results[-1]["line"], sorted(result["line"] for result in results)), (0, 1, list(range(1, 22))))


@suite.case("never more runs in flight than asked for")
def _():
    with FakeKeeper() as keeper:
        process = start(keeper, "--in-flight", "3", "--unordered")
        process.stdin.write(lines(10, "forever").encode())
        process.stdin.flush()
        harness.wait_until(lambda: len(keeper.runs) >= 3, 10, "three runs")
        time.sleep(0.2)  # nothing announces that nothing happens
        equal(len(keeper.runs), 3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@suite.case("one run after the other is not slower for what waits in the pipe")
def _():
    with FakeKeeper() as keeper:
        started = time.monotonic()
        equal(batch(keeper, lines(40), "--in-flight", "1")[0], 0)
        holds(time.monotonic() - started < harness.patience(20), "a second for each would be that of an idle loop")


@suite.case("an error of a line names line and JSON path, and stops no other")
def _():
    rows = [line("true"), "{", '{"version":"caisson.manifest/v1"}', "", line("true", limits={"wall_ms": 0}), "[]", '{"a":1,"a":2}',
            json.dumps({"key": "k", "manifest": json.loads(line("true", nonsense=1))}), json.dumps({"key": "a b", "manifest": {}}),
            line("true", labels={"refuse": "1"}), line("true", inputs=[{"source": "/nowhere/x", "target": "/box/x"}]), line("exit", "1")]
    with FakeKeeper() as keeper:
        status, results, err = batch(keeper, "\n".join(rows))
        equal(status, 1)
        equal([result["line"] for result in results], [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12])
        errors = {result["line"]: result["error"] for result in results if "error" in result}
        equal({number: error.get("path") for number, error in errors.items()},
              {2: None, 3: "$.command", 5: "$.limits.wall_ms", 6: "$", 7: None, 8: "$.manifest.nonsense", 9: "$.key", 10: "$.labels.refuse",
               11: "$.inputs[0].source"})
        for number, error in errors.items():
            holds(error["message"].startswith(f"line {number}: "), error)
        holds("column" in errors[2]["message"] and "line 1" not in errors[2]["message"], errors[2])
        holds(err.startswith("caisson: batch: 9 of 11 lines have no receipt, the first for this: line 2: column"), err)
        equal(len(keeper.runs), 2)


@suite.case("a run whose boundary is quarantined has a provisional result, and no receipt")
def _():
    with FakeKeeper() as keeper:
        status, results, _err = batch(keeper, line("provisional") + "\n" + line("quarantined") + "\n" + line("true"))
        equal((status, results[0]["provisional_result"]["verdict"], results[1]["provisional_result"]), (1, "succeeded", {}))
        holds("receipt" in results[2], results[2])


@suite.case("a line that is too long is one error, and the next line is read")
def _():
    with FakeKeeper() as keeper:
        status, results, _err = batch(keeper, "x" * (5 << 20) + "\n" + line("true") + "\n" + "y" * (9 << 20))
        equal((status, [(result["line"], "error" in result) for result in results]), (1, [(1, True), (2, False), (3, True)]))
        equal(results[0]["error"]["code"], "limit")


@suite.case("keys: a line's own, or the batch's and the number; the same again are the same runs")
def _():
    text = line("true") + "\n" + json.dumps({"key": "mine", "manifest": json.loads(line("exit", "2"))}) + "\n"
    with FakeKeeper() as keeper:
        _status, first, _err = batch(keeper, text, "--key", "nightly")
        _status, second, _err = batch(keeper, text, "--key", "nightly")
        equal([result["key"] for result in first], ["nightly-1", "mine"])
        equal([result["run"] for result in second], [result["run"] for result in first])
        _status, third, _err = batch(keeper, text)
        holds(third[0]["run"] != first[0]["run"] and third[1]["run"] == first[1]["run"], third)
        status, results, _err = batch(keeper, json.dumps({"key": "mine", "manifest": json.loads(line("true"))}))
        equal((status, results[0]["error"]["code"]), (1, "conflict"))


@suite.case("inputs are sent and named by digest; standard input is not for a program of a batch")
def _():
    source = scratch.file("data", b"some bytes")
    with FakeKeeper() as keeper:
        row = line("true", inputs=[{"source": source, "target": "/box/data"}], stdin={"source": source})
        status, results, _err = batch(keeper, row)
        equal(status, 0)
        manifest = keeper.runs[results[0]["run"]].manifest
        equal((keeper.objects[manifest["inputs"][0]["digest"]], keeper.objects[manifest["stdin"]["digest"]]), (b"some bytes", b"some bytes"))
        status, results, _err = batch(keeper, line("true", stdin={"source": "-"}))
        equal((status, results[0]["error"]["path"]), (1, "$.stdin.source"))


@suite.case("a file that many lines name is sent once; one that was swept from the store meanwhile, again")
def _():
    def many(source, count):
        return "\n".join(line("true", inputs=[{"source": source, "target": "/box/x"}], labels={"n": str(n)}) for n in range(count))
    source = scratch.file("data", b"first")
    os.utime(source, (1, 1))
    old = time.time() - os.stat(source).st_ctime
    time.sleep(max(0.0, 2.1 - old))  # younger than that it might be changed without a trace
    with FakeKeeper() as keeper:
        status, _results, _err = batch(keeper, many(source, 30), "--in-flight", "1")
        equal((status, keeper.count("PUT", "/v1/objects"), len(keeper.runs)), (0, 1, 30))
        process = start(keeper, "--in-flight", "1")
        for swept in (False, True, False):
            if swept:
                keeper.objects.clear()
            process.stdin.write((line("true", inputs=[{"source": source, "target": "/box/x"}], stdin={"source": source}) + "\n").encode())
            process.stdin.flush()
            result = json.loads(process.stdout.readline())
            holds("receipt" in result, result)
        process.communicate(timeout=10)
        # Once for the first line (its other input is the same file), and for the swept one each of its two.
        equal((process.returncode, keeper.count("PUT", "/v1/objects")), (0, 1 + 1 + 2))


@suite.case("a file that has changed is another one")
def _():
    source = scratch.file("data", b"first")
    with FakeKeeper() as keeper:
        process = start(keeper, "--in-flight", "1")
        for content in (b"first", b"other", b"third"):
            with open(source, "wb") as file:
                file.write(content)
            process.stdin.write((line("true", inputs=[{"source": source, "target": "/box/x"}]) + "\n").encode())
            process.stdin.flush()
            manifest = keeper.runs[json.loads(process.stdout.readline())["run"]].manifest
            equal(keeper.objects[manifest["inputs"][0]["digest"]], content)
        process.communicate(timeout=10)


@suite.case("replies that are lost before or after the commit, cut or late: one run for each line")
def _():
    with FakeKeeper() as keeper:
        for number in range(1, 60):
            keeper.faults.append(Fault("POST", "/v1/runs", after=number * 3, **random.choice(({"lose": True}, {"deaf": True}, {"cut": number}))))
            keeper.faults.append(Fault("GET", "/v1/runs/", after=number * 3, **random.choice(({"lose": True}, {"cut": number}, {"late_s": 0.2}))))
        status, results, err = batch(keeper, lines(200))
        equal((status, err, len(keeper.runs)), (0, "", 200))
        equal(labels(results, keeper), list(range(1, 201)))


@suite.case("a full queue is waited for; so is one that is not ready")
def _():
    with FakeKeeper() as keeper:
        keeper.queue_max = 4
        keeper.faults.append(Fault("POST", "/v1/runs", times=20, status=503, headers={"Retry-After": "1"}))
        status, results, err = batch(keeper, lines(30, "sleep", "0.02"))
        equal((status, err, len(keeper.runs), len(results)), (0, "", 30, 30))


@suite.case("it outlives restarts of the keeper, while everything is under way", timeout=120)
def _():
    with FakeKeeper() as keeper:
        process = start(keeper)
        feeder = threading.Thread(target=lambda: (process.stdin.write(lines(600, "sleep", "0.05").encode()), process.stdin.close()))
        feeder.start()
        rows = []
        reader = threading.Thread(target=lambda: rows.extend(process.stdout))
        reader.start()
        for number in range(6):
            harness.wait_until(lambda: len(keeper.runs) >= 60 * (number + 1), 30, "it goes on")  # pylint: disable=cell-var-from-loop
            keeper.restart(0.2)
        for thread in (feeder, reader):
            thread.join()
        results = [json.loads(row) for row in rows]
        equal((process.wait(60), process.stderr.read(), len(keeper.runs)), (0, b"", 600))
        equal(labels(results, keeper), list(range(1, 601)))


@suite.case("a keeper that goes away for good: every line that was begun has its error, and it ends")
def _():
    with FakeKeeper() as keeper:
        process = start(keeper, "--patience", "300ms", "--in-flight", "4")
        process.stdin.write(lines(4, "forever").encode())
        process.stdin.close()
        harness.wait_until(lambda: keeper.count("GET", "/v1/runs/") >= 4, 10, "they are waited for")
        keeper.stop()
        results = [json.loads(row) for row in process.stdout.read().splitlines()]
        equal((process.wait(30), [result["line"] for result in results], {result["error"]["code"] for result in results}),
              (1, [1, 2, 3, 4], {"lost"}))
        holds(all(result["run"] in keeper.runs for result in results), "the runs are named")
        process.stderr.close()


@suite.case("the first INT cancels what is in flight, and each line that was begun has its result")
def _():
    with FakeKeeper() as keeper:
        process = start(keeper, "--in-flight", "8")
        process.stdin.write(lines(100, "forever").encode())
        process.stdin.flush()
        harness.wait_until(lambda: keeper.count("GET", "/v1/runs/") >= 8, 10, "they are waited for")
        process.send_signal(signal.SIGINT)
        out, _err = process.communicate(timeout=30)
        results = [json.loads(row) for row in out.splitlines()]
        equal((process.returncode, [result["receipt"]["verdict"] for result in results]), (128 + signal.SIGINT, ["cancelled"] * 8))
        equal(sum(run.cancelled for run in keeper.runs.values()), 8)


@suite.case("an INT while the keeper is full or away: what may have been taken is asked for, the rest is not submitted")
def _():
    with FakeKeeper() as keeper:
        keeper.queue_max = 2
        process = start(keeper, "--in-flight", "5")
        process.stdin.write(lines(5, "forever").encode())
        process.stdin.flush()
        harness.wait_until(lambda: keeper.count("POST", "/v1/runs") >= 5, 10, "all were tried")
        keeper.restart(0.2)
        process.send_signal(signal.SIGINT)
        out, _err = process.communicate(timeout=30)
        results = [json.loads(row) for row in out.splitlines()]
        equal((len(results), sum("receipt" in result for result in results), len(keeper.runs)), (5, 2, 2))


@suite.case("an INT while answers are lost: what was taken all the same is found, and cancelled")
def _():
    with FakeKeeper() as keeper:
        losing = Fault("POST", "/v1/runs", times=1 << 30, lose=True)
        keeper.faults.append(losing)
        process = start(keeper)
        process.stdin.write(lines(4, "forever").encode())
        process.stdin.flush()
        harness.wait_until(lambda: keeper.count("POST", "/v1/runs") >= 12, 10, "they were sent again")
        process.send_signal(signal.SIGINT)
        harness.wait_until(lambda: keeper.count("POST", "/v1/runs") >= 20, 10, "and are, after the signal")
        losing.times = 0
        out, _err = process.communicate(timeout=30)
        equal([json.loads(row)["receipt"]["verdict"] for row in out.splitlines()], ["cancelled"] * 4)
        equal(len(keeper.runs), 4)


@suite.case("a second INT ends it at once")
def _():
    with FakeKeeper() as keeper:
        process = start(keeper)
        process.stdin.write(lines(3, "forever").encode())
        process.stdin.flush()
        harness.wait_until(lambda: keeper.count("GET", "/v1/runs/") >= 3, 10, "they are waited for")
        keeper.faults.append(Fault("POST", "/v1/runs/", times=100, late_s=20))
        process.send_signal(signal.SIGINT)
        harness.wait_until(lambda: keeper.count("POST", "/v1/runs/") >= 3, 10, "they are being cancelled")
        process.send_signal(signal.SIGINT)
        out, _err = process.communicate(timeout=10)
        equal((process.returncode, [json.loads(row)["error"]["code"] for row in out.splitlines()]), (130, ["timeout"] * 3))


@suite.case("a reader that goes away ends it, and cancels what nobody will hear of")
def _():
    with FakeKeeper() as keeper:
        process = start(keeper, "--in-flight", "2", "--unordered")
        process.stdin.write((line("true") + "\n" + line("forever") + "\n" + line("sleep", "0.5") + "\n").encode())
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        equal(process.wait(30), 125)
        holds(all(run.over() for run in keeper.runs.values()), "nothing is left running")
        process.stdin.close()
        process.stderr.close()


@suite.case("results come while more lines are still to come")
def _():
    with FakeKeeper() as keeper:
        process = start(keeper)
        for number in range(1, 6):
            process.stdin.write((line("true") + "\n").encode())
            process.stdin.flush()
            equal(json.loads(process.stdout.readline())["line"], number)
        process.stdin.close()
        equal(process.wait(10), 0)
        process.stdout.close()
        process.stderr.close()


def _peak_kb(pid):
    rows = [row.split()[1] for row in proc.read(f"/proc/{pid}/status").splitlines() if row.startswith("VmHWM:")]
    return int(rows[0]) if rows else 0  # it has ended


@suite.case("a batch of any length takes the same memory", timeout=170)
def _():
    def peak_kb(count):
        with FakeKeeper() as keeper:
            process = start(keeper)
            feeder = threading.Thread(target=lambda: (process.stdin.write(lines(count).encode()), process.stdin.close()))
            feeder.start()
            rows, peak = 0, 0
            for _row in process.stdout:
                rows += 1
                if rows % 100 == 50:
                    peak = max(peak, _peak_kb(process.pid))
            feeder.join()
            equal((process.wait(10), rows), (0, count))
            process.stderr.close()
            return peak
    if sanitized():
        raise harness.Skip("a sanitizer keeps what was freed")
    few, many = peak_kb(500), peak_kb(2500)
    holds(many < few + 2048, f"{few} kB with 500 lines, {many} kB with 2500")


@suite.case("on a terminal there is a line of progress, and the results are whole")
def _():
    with FakeKeeper() as keeper:
        path = scratch.file("jobs.jsonl", lines(20, "sleep", "0.3"))
        terminal = Terminal([*command(keeper, path)])
        status, output = terminal.finish()
        terminal.close()
        equal(status, 0)
        holds(b"in flight" in output, output[:500])
        rows = [row for row in output.replace(b"\r\x1b[K", b"\n").splitlines() if row.startswith(b"{")]
        equal([json.loads(row)["line"] for row in rows], list(range(1, 21)))


@suite.case("an empty batch is none; a file that is not there, and a missing keeper, are told")
def _():
    with FakeKeeper() as keeper:
        equal(batch(keeper, "\n \n"), (0, [], ""))
        done = subprocess.run(command(keeper, "/nowhere/x"), capture_output=True, check=False)
        equal((done.returncode, done.stderr), (125, b"caisson: batch: /nowhere/x: No such file or directory\n"))
    status, results, err = batch(keeper, lines(1))
    equal((status, results), (125, []))
    holds("no keeper answers" in err, err)


if __name__ == "__main__":
    sys.exit(suite.main())
