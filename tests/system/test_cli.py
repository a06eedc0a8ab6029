#!/usr/bin/python3
"""test_cli.py - `caisson run` as its user sees it: exit codes, what is printed where, signals, readers that are slow or gone."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, proc, scratch, supervisor  # noqa: E402
from support.caisson import Caisson, sanitized  # noqa: E402
from support.harness import equal, holds, is_in  # noqa: E402
from support.invariants import Watch  # noqa: E402
from support.terminal import Terminal  # noqa: E402

suite = harness.Suite("cli")

ADDR_NO_RANDOMIZE, PER_LINUX32 = 0x0040000, 8  # personality(2)


def judged(argv, word, options=(), status=None):
    """Runs with --json under the invariants; checks the verdict word; returns the result."""
    caisson = Caisson()
    watch = Watch(caisson)
    result = caisson.run(*argv, options=options)
    equal(result.word(), word, str(result))
    if status is not None:
        equal(result.status, status, str(result))
    watch.hold(result)
    return result


@suite.case("python3 prints 42 and exits 0")
def _():
    result = Caisson().run_plain("python3", "-c", "print(6*7)")
    equal((result.status, result.stdout, result.stderr), (0, b"42\n", b""))


@suite.case("exit 137 is failed/exit_code and no limit")
def _():
    judged(("sh", "-c", "exit 137"), "NZ(137)", status=137)


@suite.case("kill -9 $$ is signaled and no limit")
def _():
    result = judged(("sh", "-c", "kill -9 $$"), "SIG(9)", status=137)
    equal((result.receipt["signal"], result.receipt["exit_code"]), ("SIGKILL", None))


@suite.case("memory beyond the limit is limit_exceeded/memory_limit")
def _():
    judged(("python3", "-c", "x=bytearray(200<<20)"), "MLE", ("--memory", "64M"), 137)


@suite.case("sleep 60 under --wall 1s is timed_out/wall_limit")
def _():
    result = judged(("sleep", "60"), "TLE_WALL", ("--wall", "1s"), 124)
    holds(result.seconds < harness.patience(1.5), f"answered after {result.seconds:.3f} s")


@suite.case("a program that is not there is 127, one that cannot be executed 126")
def _():
    judged(("./nosuch",), "EXEC", status=127)
    judged(("/etc/passwd",), "EXEC", status=126)
    judged(("/usr",), "EXEC", status=126)


@suite.case("a descendant that keeps the outputs open: output_handle_retained, and nothing of it is left")
def _():
    result = judged(("sh", "-c", "setsid sleep 1000 & exit 0"), "RETAINED", status=125)
    holds(result.seconds < harness.patience(1.5), f"answered after {result.seconds:.3f} s")
    equal([str(p) for p in proc.processes() if p.name == "sleep" and p.is_guest and not p.boundaries()], [])


@suite.case("the same with its handles closed succeeds, and one survivor was killed")
def _():
    result = judged(("sh", "-c", "setsid sleep 1000 <&- >&- 2>&- & exit 0"), "OK", status=0)
    equal(result.receipt["boundary"]["survivors_killed"], 1)


@suite.case("--json prints exactly one object and nothing of the guest's")
def _():
    caisson = Caisson()
    done = caisson.run_plain("sh", "-c", "echo out; echo err >&2", options=("--json",))
    equal(done.stdout.count(b"\n"), 1, "lines")
    receipt = json.loads(done.stdout)
    equal((receipt["version"], receipt["verdict"]), ("caisson.receipt/v1", "succeeded"))
    equal((done.status, done.stderr), (0, b""))
    equal((caisson.logs(receipt["run"], "stdout"), caisson.logs(receipt["run"], "stderr")), (b"out\n", b"err\n"))


RECEIPT_FIELDS = {
    "version", "run", "attempt", "owner", "verdict", "reason", "detail", "exit_code", "signal", "limits", "usage", "stdout",
    "stderr", "artifacts", "boundary", "plan", "manifest", "policy", "admission", "approval", "lease_generations", "times",
    "last_record", "seal_seq", "key", "signature",
}
NESTED_FIELDS = {
    "usage": {"wall_ms", "cpu_user_ms", "cpu_system_ms", "memory_peak_bytes", "memory_peak_anon_sampled_bytes", "pids_peak",
              "oom_kills"},
    "stdout": {"sha256", "bytes", "kept_bytes", "dropped_bytes", "drained"},
    "stderr": {"sha256", "bytes", "kept_bytes", "dropped_bytes", "drained"},
    "boundary": {"kind", "layers", "evidence", "survivors_killed", "verified_empty"},
    "times": {"admitted_at", "launched_at", "exited_at", "sealed_at", "drain_ms", "cleanup_ms"},
}


@suite.case("the receipt has every public field of the contract, and nothing private")
def _():
    caisson = Caisson()
    result = caisson.run("true")
    equal(RECEIPT_FIELDS - set(result.receipt), set(), "missing fields")
    for name, fields in NESTED_FIELDS.items():
        equal(fields - set(result.receipt[name]), set(), f"missing in {name}")
    text = json.dumps(result.receipt)
    private = caisson.boundary_ids() | {row["owner_id"] for row in caisson.rows("SELECT owner_id FROM owner")} | {caisson.ledger}
    equal([word for word in private if word in text], [], "private words in the receipt")
    equal(caisson.show(result.receipt["run"]), result.receipt, "show gives the same")


# Files in a space of the run count as its memory, and are not anonymous. A look is taken every 128 ms at the latest.
HOLDER = """
import time
size = 24 << 20
with open("/tmp/file", "wb") as file:
    for _ in range(56):
        file.write(bytes(1 << 20))
held = b"x" * size
time.sleep(0.5)
"""


@suite.case("anonymous memory is sampled: what a program holds, and not its files")
def _():
    result = Caisson().run("python3", "-c", HOLDER)
    sampled, peak = (result.receipt["usage"][f"memory_peak_{name}bytes"] for name in ("anon_sampled_", ""))
    holds(24 << 20 <= sampled <= 50 << 20 and peak >= 80 << 20, f"sampled {sampled}, peak {peak}")
    at_once = Caisson().run("true").receipt["usage"]["memory_peak_anon_sampled_bytes"]
    holds(at_once is None or at_once > 0, f"of a program that ends at once: {at_once}")


def under(setting, command, caisson):
    """The command from a shell that has changed something which its children inherit."""
    return subprocess.run(["sh", "-c", f'{setting}; exec "$@"', "sh", *command], env=caisson.environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)


LOOK = """
import os
print(f"{os.umask(0):o}")
for path in ("/", "/box", "/tmp", "/out", "/dev", "/dev/null", "/etc", "/etc/passwd", "/usr", "/box/in"):
    print(f"{os.stat(path).st_mode & 0o7777:o} {path}")
try:
    os.mkdir("/box/in/new")
except OSError as error:
    print(error.strerror)
"""


@suite.case("whatever umask the caller has, the view and its modes are the same, and the ledger can be used again")
def _():
    seen = {}
    for mask in ("022", "000", "027", "077", "777"):
        caisson = Caisson()
        source = scratch.directory("tree")
        done = under(f"umask {mask}", caisson.command("run", "--input", f"{source}:/box/in", "--", "python3", "-c", LOOK), caisson)
        seen[mask] = (done.returncode, done.stdout, done.stderr)
        equal(caisson.run("true").word(), "OK", mask)
    equal([mask for mask in seen if seen[mask] != seen["022"]], [], str(seen))
    lines = seen["022"][1].splitlines()
    equal((seen["022"][0], len(lines), lines[0], lines[-1]), (0, 12, b"22", b"Read-only file system"), str(seen["022"]))


@suite.case("the caller's personality is not the guest's")
def _():
    caisson = Caisson()
    look = "import os; print(open('/proc/self/personality').read(), os.uname().machine)"
    done = subprocess.run(caisson.command("run", "--", "python3", "-c", look), env=caisson.environment(), capture_output=True, check=False,
                          preexec_fn=lambda: proc.set_personality(ADDR_NO_RANDOMIZE | PER_LINUX32))  # pylint: disable=subprocess-popen-preexec-fn
    equal((done.returncode, done.stdout.split()), (0, [b"00000000", os.uname().machine.encode()]), str(done))


@suite.case("inherited limits that are lower than ours guard as well; those that a guest needs are refused by name")
def _():
    caisson = Caisson()
    done = under("ulimit -c 0; ulimit -l 0", caisson.command("run", "--json", "--", "true"), caisson)
    receipt = json.loads(done.stdout)
    given_away = proc.read("/proc/sys/kernel/core_pattern")[:1] in ("|", "@")
    if given_away:
        holds(done.returncode == 125 and receipt["detail"].startswith("enroll: rlimit.core: "), str(receipt))
    else:
        found = {line["name"]: line["detail"] for line in receipt["boundary"]["evidence"]}
        equal((receipt["verdict"], found["rlimit.core"], found["rlimit.memlock"]), ("succeeded", "0, and no program is given a core", "0"))
    done = under("ulimit -s 256", caisson.command("run", "--", "true"), caisson)
    holds(done.returncode == 125 and b"limit_unenforceable: limits.stack_bytes: 8388608 asked for" in done.stderr, repr(done.stderr))
    refused = [("-t 20", "cpu_ms: 20000"), ("-f 65535", "work_bytes: 67108864"), ("-p 63", "pids: 64")]
    if not sanitized():  # or it needs more for itself
        refused += [("-v 100000", "memory_bytes: 268435456"), ("-d 100000", "memory_bytes: 268435456")]
    for option, name in refused:
        done = under(f"ulimit {option}", caisson.command("run", "--", "true"), caisson)
        holds(done.returncode == 125 and f"limit_unenforceable: limits.{name} asked for".encode() in done.stderr, f"{option}: {done.stderr!r}")
    done = under("ulimit -f 0", caisson.command("run", "--", "true"), caisson)
    holds(done.returncode == 125 and done.stderr.startswith(b"caisson: run: "), repr(done))
    equal(caisson.run("true").word(), "OK")


SOFT = ("RLIMIT_CPU", "RLIMIT_FSIZE") + (() if sanitized() else ("RLIMIT_AS", "RLIMIT_DATA"))
LOOK_AT_PRIVILEGES = f"""
import ctypes, os, resource
print([resource.getrlimit(getattr(resource, name))[0] for name in {SOFT}])
print(resource.getrlimit(resource.RLIMIT_RTPRIO), resource.getrlimit(resource.RLIMIT_NICE))
print(os.nice(0), os.sched_getscheduler(0), ctypes.CDLL(None).syscall({proc.NR_IOPRIO_GET}, 1, 0) >> 13)
for attempt in (lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), lambda: os.nice(-3)):
    try:
        attempt()
    except OSError as error:
        print(error.strerror)
"""


def lower_soft_limits():
    for name in SOFT:
        which = getattr(resource, name)
        resource.setrlimit(which, (4 if name == "RLIMIT_CPU" else 4 << 30, resource.getrlimit(which)[1]))


@suite.case("soft limits of the caller and his place in the queue for processors are not the guest's; being nice is")
def _():
    caisson = Caisson()
    nice = os.nice(0)

    def look(setting, *argv):
        done = subprocess.run(caisson.command("run", "--", *(argv or ("python3", "-c", LOOK_AT_PRIVILEGES))), env=caisson.environment(),
                              capture_output=True, check=False, preexec_fn=setting)  # pylint: disable=subprocess-popen-preexec-fn
        equal((done.returncode, done.stderr), (0, b""), str(done))
        return done.stdout.decode()

    plain = look(None)
    equal(plain.splitlines(), [str([-1] * len(SOFT)), "(0, 0) (0, 0)", f"{max(0, nice)} 0 0", "Operation not permitted", "Operation not permitted"])
    settings = [lower_soft_limits]
    if os.geteuid() == 0 and not caisson.user:
        settings += [lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5)),
                     lambda: os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(5)), proc.set_real_time_io]
    for number, setting in enumerate(settings):
        equal(look(setting), plain, f"setting {number}")
    equal(look(lambda: os.setpriority(os.PRIO_PROCESS, 0, nice + 7), "python3", "-c", "import os; print(os.nice(0))"), f"{nice + 7}\n")


@suite.case("a manifest says the same as options do")
def _():
    caisson = Caisson()
    source = scratch.file("data", b"sealed\n")
    inputs = [{"source": source, "target": "/box/data"}, {"text": "text\n", "target": "/box/text"}]
    result = caisson.run_manifest({"command": {"argv": ["/bin/cat", "/box/data", "/box/text", "-"]}, "stdin": {"source": source},
                                   "inputs": inputs})
    equal((result.word(), result.guest_stdout), ("OK", b"sealed\ntext\nsealed\n"), str(result))


@suite.case("stdin is sealed from a file and from the caller, environment is named")
def _():
    caisson = Caisson()
    path = scratch.file("in", b"1 2\n")
    equal(caisson.run_plain("cat", options=("--stdin", path)).stdout, b"1 2\n")
    equal(caisson.run_plain("cat", options=("--stdin", "-"), data=b"piped").stdout, b"piped")
    result = caisson.run_plain("sh", "-c", "echo $WORD $SECRET", options=("--env", "WORD=given"),
                               env={"SECRET": "hush", "WORD": "other"})
    equal(result.stdout, b"given\n")


@suite.case("--quiet says nothing, otherwise one line with verdict, reason, figure and run")
def _():
    caisson = Caisson()
    loud = caisson.run_plain("sleep", "60", options=("--wall", "200ms"))
    equal((loud.status, loud.stderr.count(b"\n")), (124, 1), str(loud))
    for word in (b"timed_out", b"wall_limit", b"200 ms", b"run-"):
        holds(word in loud.stderr, f"{word!r} in {loud.stderr!r}")
    quiet = caisson.run_plain("sleep", "60", options=("--wall", "200ms", "--quiet"))
    equal((quiet.status, quiet.stderr), (124, b""))


@suite.case("--summary says it of a success too")
def _():
    caisson = Caisson()
    equal(caisson.run_plain("true").stderr, b"")
    seen = caisson.run_plain("true", options=("--summary",)).stderr
    holds(b"succeeded" in seen and b"boundary verified empty" in seen, repr(seen))


@suite.case("--summary on a terminal tells the usage")
def _():
    caisson = Caisson()
    terminal = Terminal(caisson.command("run", "--summary", "--", "true"), caisson.environment())
    status, seen = terminal.finish()
    terminal.close()
    equal(status, 0)
    for word in (b"succeeded", b"wall", b"memory", b"boundary verified empty"):
        holds(word in seen, f"{word!r} in {seen!r}")


@suite.case("control characters are escaped on a terminal, and exact bytes when piped")
def _():
    caisson = Caisson()
    words = ("printf", r"a\033[31mb\rc\007\n")
    equal(caisson.run_plain(*words).stdout, b"a\033[31mb\rc\007\n")
    terminal = Terminal(caisson.command("run", "--", *words), caisson.environment())
    status, seen = terminal.finish()
    terminal.close()
    equal((status, seen.replace(b"\r\n", b"\n")), (0, b"a^[[31mb^Mc^G\n"))


def interrupted(argv, signals, options=()):
    """Starts, waits until the guest says that it is ready, sends each signal; gives (status, seconds since, receipt, output)."""
    caisson = Caisson()
    watch = Watch(caisson)
    run = supervisor.Supervisor.start(caisson, *argv, options=("--wall", "60s", *options))
    equal(run.popen.stdout.readline(), b"ready\n")
    started = time.monotonic()
    for number, pause in signals:
        os.kill(run.keeper, number)
        time.sleep(pause)
    output = run.popen.stdout.read()
    status = run.reap()
    seconds = time.monotonic() - started
    receipt = caisson.show("latest")
    watch.hold()
    return status, seconds, receipt, output


POLITE = ("sh", "-c", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
STUBBORN = ("sh", "-c", "trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done")


@suite.case("the first INT cancels: TERM, grace, exit 130")
def _():
    status, _, receipt, output = interrupted(POLITE, [(signal.SIGINT, 0)])
    equal((status, receipt["verdict"], output), (130, "cancelled", b"bye\n"))


@suite.case("TERM and HUP cancel too: 143 and 129")
def _():
    for number in (signal.SIGTERM, signal.SIGHUP):
        status, _, receipt, _ = interrupted(POLITE, [(number, 0)])
        equal((status, receipt["verdict"]), (128 + number, "cancelled"))


@suite.case("a guest that ignores TERM is killed when the grace is over")
def _():
    status, seconds, receipt, _ = interrupted(STUBBORN, [(signal.SIGINT, 0)], ("--grace", "500ms"))
    equal((status, receipt["verdict"]), (130, "cancelled"))
    holds(0.45 <= seconds, f"the grace was given: {seconds:.2f} s")


@suite.case("the second INT kills at once")
def _():
    status, seconds, receipt, _ = interrupted(STUBBORN, [(signal.SIGINT, 0.2), (signal.SIGINT, 0)], ("--grace", "30s"))
    equal((status, receipt["verdict"]), (130, "cancelled"))
    holds(seconds < 15, f"the grace of 30 s was not waited for: {seconds:.2f} s")


@suite.case("Ctrl-C on a terminal reaches the keeper alone: worker and guest are in sessions of their own")
def _():
    caisson = Caisson()
    run = supervisor.Supervisor.start(caisson, *POLITE, options=("--wall", "60s"))
    with run:
        equal(run.popen.stdout.readline(), b"ready\n")
        sessions = proc.sessions([run.keeper, *run.workers(), *(member.pid for member in run.members())])
        holds(len(sessions) >= 3, f"sessions {sessions}")
        os.killpg(run.keeper, signal.SIGINT)
        equal(run.popen.stdout.read(), b"bye\n")
    equal(run.popen.returncode, 130)


@suite.case("a closed stdout changes no verdict")
def _():
    caisson = Caisson()
    command = caisson.command("run", "--", "sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 7")
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], env=caisson.environment(), stderr=subprocess.PIPE,
                            check=False)
    equal(closed.returncode, 7, repr(closed.stderr))
    slowly = caisson.command("run", "--", "sh", "-c", "for i in 1 2 3 4; do echo line number $i; sleep 0.05; done; exit 7")
    every = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *slowly], env=caisson.environment(), check=False, timeout=60)
    equal(every.returncode, 7, "with every standard descriptor closed")
    reader, writer = os.pipe()
    os.close(reader)
    broken = subprocess.run(command, env=caisson.environment(), stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    equal(broken.returncode, 7, repr(broken.stderr))
    equal([row["verdict"] for row in caisson.list()], ["failed", "failed", "failed"])
    equal(len(caisson.logs("latest").splitlines()), 2000, "lines in the store")


@suite.case("a full disk as stdout changes no verdict")
def _():
    caisson = Caisson()
    with open("/dev/full", "wb") as full:
        done = subprocess.run(caisson.command("run", "--", "sh", "-c", "echo x; exit 7"), env=caisson.environment(), stdout=full,
                              stderr=subprocess.PIPE, check=False)
    equal(done.returncode, 7, repr(done.stderr))


@suite.case("an answer that a full disk has cut is an error, and one that its reader did not want is none")
def _():
    caisson = Caisson()
    equal(caisson.run("sh", "-c", "echo x; echo y >/out/file").word(), "OK")
    verbs = (("list",), ("show", "latest"), ("logs", "latest"), ("cat", "latest", "file"), ("artifacts", "latest"), ("verify", "--all"),
             ("fsck",), ("gc", "--dry-run"), ("doctor",), ("recover",), ("show", "latest", "--json"))
    gone, writer = os.pipe()
    os.close(gone)
    with open("/dev/full", "wb") as full:
        for verb, *words in verbs:
            said = f"caisson: {verb}: standard output: No space left on device\n".encode()
            for stdout, ends in ((full, [(125, said)]), (writer, [(0, b""), (-signal.SIGPIPE, b"")])):
                done = subprocess.run(caisson.command(verb, *words), env=caisson.environment(), stdout=stdout, stderr=subprocess.PIPE, check=False)
                is_in((done.returncode, done.stderr), ends, verb)
    os.close(writer)


@suite.case("a slow reader does not hold the run, and gets every byte")
def _():
    caisson = Caisson()
    text = "import sys; sys.stdout.write('0123456789abcdef' * 50000)"
    popen = caisson.start("python3", "-c", text, options=("--output", "1M"))
    harness.wait_until(lambda: [row["state"] for row in caisson.list()] == ["sealed"], 20, "the run is sealed though nobody reads")
    holds(popen.poll() is None, "the reader is still waited for, after the seal")
    equal(caisson.list()[0]["verdict"], "succeeded")
    output, _ = popen.communicate(timeout=30)
    equal((popen.returncode, len(output)), (0, 800000))


@suite.case("output is passed through while the program runs")
def _():
    caisson = Caisson()
    run = supervisor.Supervisor.start(caisson, "sh", "-c", "echo first; read x < /dev/zero; sleep 60", options=("--wall", "60s"))
    equal(run.popen.stdout.readline(), b"first\n")
    run.stop()


@suite.case("unknown options and commands are errors with exit 125; --help is not")
def _():
    caisson = Caisson()
    wrong = (("run", "--nosuch", "--", "true"), ("run", "--mem", "1M", "--", "true"), ("nosuch",), ("run",),
             ("run", "--wall", "5", "--", "true"))
    for words in wrong:
        done = subprocess.run([caisson.binary, *words], capture_output=True, check=False, env=caisson.environment())
        equal((done.returncode, done.stdout), (125, b""), str(words))
        equal(done.stderr.count(b"\n"), 1, f"one line for {words}: {done.stderr!r}")
    for command in ("run", "list", "show", "logs", "verify", "recover", "doctor", "manifest", "version"):
        done = subprocess.run([caisson.binary, command, "--help"], capture_output=True, check=False, env=caisson.environment())
        holds(done.returncode == 0 and b"examples:" in done.stdout, f"{command} --help: {done}")


@suite.case("list, show, logs and verify know a run by its id, by a prefix and as latest")
def _():
    caisson = Caisson()
    run = caisson.run("echo", "hello").receipt["run"]
    for name in (run, run[:10], "latest"):
        equal(caisson.show(name)["run"], run)
        equal(caisson.logs(name), b"hello\n")
        equal(caisson.verify(name).status, 0)
    holds(run.encode() in caisson.call("list").stdout, "list in text")
    holds(b"verified empty" in caisson.call("show", run).stdout, "show in text")
    equal(caisson.call("show", "run-aaaaaaaaaaaaaaaa").status, 125)


@suite.case("doctor says that a native run is possible here, a line each")
def _():
    caisson = Caisson()
    done = subprocess.run([caisson.binary, "doctor"], capture_output=True, check=False, env=caisson.environment())
    holds(done.returncode == 0 and done.stdout.count(b"\n") >= 8, str(done))
    asked = subprocess.run([caisson.binary, "doctor", "--json"], capture_output=True, check=False, env=caisson.environment())
    json.loads(asked.stdout)


@suite.case("runs of one ledger do not share a uid at the same time, and see only themselves")
def _():
    caisson = Caisson()
    runs = [supervisor.Supervisor.start(caisson, "sleep", "30", options=("--wall", "60s")) for _ in range(3)]
    try:
        sleepers = harness.wait_until(lambda: _sleepers(caisson, 3), 10, "three guests")
        uids = [p.uids[0] for p in sleepers]
        equal(len(set(uids)), 3, f"uids {uids}")
        seen = caisson.run("sh", "-c", "ls /proc | grep -c '^[0-9]'")
        holds(int(seen.text) <= 4, f"processes that a guest sees: {seen.text}")
    finally:
        for run in runs:
            run.stop()


def _sleepers(caisson, count):
    found = [p for p in supervisor.members(caisson.boundary_ids()) if p.name == "sleep"]
    return found if len(found) == count else None


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
