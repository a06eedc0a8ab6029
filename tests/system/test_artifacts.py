#!/usr/bin/python3
"""test_artifacts.py - what a guest leaves in /out: kept exactly, or refused by name; and the store that it is kept in."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as program, harness, proc, scratch, supervisor  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import env_int, equal, holds, is_in  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("artifacts")

REJECTED = "failed/artifact_rejected"
MANY_RUNS = env_int("CAISSON_TEST_ARTIFACT_RUNS", 100)
SWEPT_RUNS = 60
CANARY = b"canary: no byte of this may ever be kept\n"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def artifacts(result):
    return {a["path"]: a for a in result.receipt["artifacts"]}


def objects(caisson):
    """{digest: path} of the store."""
    found = {}
    for folder, _, names in os.walk(os.path.join(caisson.ledger, "store", "objects")):
        for name in names:
            found["sha256:" + os.path.basename(folder) + name] = os.path.join(folder, name)
    return found


def holds_canary(caisson):
    return any(CANARY in open(path, "rb").read() for path in objects(caisson).values())


def python(caisson, source, *options, **keywords):
    return caisson.run("/usr/bin/python3", "-c", source, options=options, **keywords)


def rejections(result):
    """Path → reason, out of the receipt's detail."""
    pairs = {}
    for piece in result.receipt["detail"].split("; "):
        path, _, reason = piece.rpartition(": ")
        pairs[path] = reason
    return pairs


def refused(caisson, watch, script, expected):
    """The script succeeds, and its outputs are refused with these reasons: nothing is kept, and nothing of the run is left."""
    result = caisson.run("sh", "-c", script)
    equal(result.word(), REJECTED, str(result))
    equal(result.status, 125)
    equal(result.receipt["artifacts"], [])
    equal(rejections(result), expected)
    equal(caisson.call("artifacts", result.receipt["run"], "--json").stdout, b"[]\n")
    equal(objects(caisson), {})
    watch.hold(result)
    return result


@suite.case("what is left in /out is in the receipt, in the list, and comes back byte for byte")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    binary = os.urandom(300000)
    source = scratch.file("binary", binary)
    result = caisson.run("sh", "-c", "cat /box/b >/out/binary; mkdir -p /out/dir/empty; printf x >/out/dir/x; : >/out/none; "
                         "printf '#!/bin/sh' >/out/tool; chmod 755 /out/tool", options=("--input", f"{source}:/box/b"))
    equal(result.word(), "OK", str(result))
    expected = {"binary": (binary, "0644"), "dir/x": (b"x", "0644"), "none": (b"", "0644"), "tool": (b"#!/bin/sh", "0755")}
    kept = artifacts(result)
    equal({p: (a["size_bytes"], a["sha256"], a["mode"]) for p, a in kept.items()},
          {p: (len(data), digest(data), mode) for p, (data, mode) in expected.items()})
    equal(list(kept), sorted(expected))
    equal(json.loads(caisson.call("artifacts", "latest", "--json").stdout), result.receipt["artifacts"])
    target = os.path.join(scratch.directory("export"), "new")
    equal(caisson.call("export", "latest", target).status, 0)
    for path, (data, mode) in expected.items():
        equal(caisson.call("cat", "latest", path).stdout, data, path)
        with open(os.path.join(target, path), "rb") as file:
            equal(file.read(), data, path)
        equal(f"{os.stat(os.path.join(target, path)).st_mode & 0o7777:04o}", mode, path)
    equal(sorted(os.listdir(target)), ["binary", "dir", "none", "tool"])
    equal(caisson.verify().status, 0)
    watch.hold(result)


@suite.case("H75: any name that the kernel allows is a legal one, and survives receipt, list, cat and export")
def _():
    caisson = Caisson()
    names = [b"new\nline", b"-rf", b"\xff\xfe\x80", b"n" * 255, b" spaces ", b"\"quotes\" 'n' `more`", b"..x", b"Case", b"case", b"\x01\x1b[2J",
             b"back\\slash", b"\\x0a", "übergröße".encode(), b"$(touch x)", b"a;b|c&d"]
    source = f"import os\nfor n in {names!r}:\n open(b'/out/' + n, 'wb').write(n)"
    result = python(caisson, source)
    equal(result.word(), "OK", str(result))
    spelled = list(artifacts(result))
    equal(len(set(spelled)), len(names))
    for name in ("new\\x0aline", "\\xff\\xfe\\x80", "back\\x5cslash", "\\x5cx0a", "übergröße", "-rf"):
        is_in(name, spelled)
    equal(caisson.call("artifacts", "latest").stdout.count(b"\n"), len(names))
    target = scratch.directory("export")
    equal(caisson.call("export", "latest", target).status, 0)
    equal(sorted(os.listdir(target.encode())), sorted(names))
    for name in names:
        equal(caisson.call("cat", "latest", "--", name).stdout, name)
    for name in spelled:
        holds(caisson.call("cat", "latest", "--", name).stdout in names, name)
    equal(caisson.verify().status, 0)


@suite.case("H65, H66: links, to /etc/shadow, to a canary, of a parent, are named and never followed")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    folder = os.path.dirname(scratch.file("canary", CANARY))
    script = (f"ln -s /etc/shadow /out/shadow; ln -s {folder}/canary /out/canary; ln -s {folder} /out/parent; "
              "ln -s / /out/root; ln -s good /out/inside; echo good >/out/good")
    link = "is a symbolic link"
    refused(caisson, watch, script, {"shadow": link, "canary": link, "parent": link, "root": link, "inside": link})
    holds(not holds_canary(caisson), "no canary is kept")
    result = caisson.run("sh", "-c", f"ln -s {folder} /out/dir", options=("--require-output", "dir/canary"))
    equal(rejections(result), {"dir": link, "dir/canary": "is required, and no file is there"})


@suite.case("H69: a FIFO, a socket and a device hang nobody")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    script = ("mkfifo /out/fifo; /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/out/socket\")'; "
              "mknod /out/device c 1 5 2>/dev/null; true")
    refused(caisson, watch, script, {"fifo": "is a FIFO", "socket": "is a socket"})


@suite.case("H68: a hard link is copied as bytes of its own, and none leads to an input")
def _():
    caisson = Caisson()
    source = scratch.file("input", b"input\n")
    result = caisson.run("sh", "-c", "ln /box/in /out/stolen && exit 9; echo own >/out/one; ln /out/one /out/two",
                         options=("--input", f"{source}:/box/in"))
    equal(result.word(), "OK", str(result))
    equal({p: a["sha256"] for p, a in artifacts(result).items()}, {"one": digest(b"own\n"), "two": digest(b"own\n")})
    equal(os.stat(objects(caisson)[digest(b"own\n")]).st_nlink, 1)


@suite.case("H70: a sparse file counts with its apparent size, and is not written out")
def _():
    caisson = Caisson()
    refused(caisson, Watch(caisson), "truncate -s 1T /out/huge", {"huge": "has 1099511627776 bytes, more than 16777216"})


@suite.case("H71: a million empty files end at the inodes of the output place, and are counted")
def _():
    caisson = Caisson()
    watch = Watch(caisson)
    source = ("import errno, os\nn = 0\ntry:\n while n < 1000000:\n  os.close(os.open(f'/out/{n}', os.O_CREAT | os.O_WRONLY)); n += 1\n"
              "except OSError as e:\n assert e.errno == errno.ENOSPC\nprint(n)")
    result = python(caisson, source)
    equal(result.word(), REJECTED, str(result))
    holds(500 < int(result.text) < 1024, result.text)
    equal(rejections(result), {"": "more than 64 files"})
    manifest = {"command": {"argv": ["/usr/bin/python3", "-c", source]}, "outputs": {"max_files": 1048576}}
    whole = caisson.run_manifest(manifest)
    equal(whole.word(), "OK", str(whole))
    equal(len(whole.receipt["artifacts"]), int(whole.text))
    equal(len(objects(caisson)), 1)
    watch.hold(whole)


@suite.case("H72: ten thousand nested directories end at the inodes, and are walked without recursion")
def _():
    caisson = Caisson()
    source = ("import os\nos.chdir('/out')\nn = 0\ntry:\n while n < 10000:\n  os.mkdir('d'); os.chdir('d'); n += 1\nexcept OSError: pass\n"
              "print(n)")
    result = python(caisson, source)
    equal(result.word(), REJECTED, str(result))
    holds(int(result.text) > 500, result.text)
    holds("is more than 64 levels deep" in result.receipt["detail"], result.receipt["detail"])
    holds(result.seconds < 10, "no hang")


@suite.case("H73, H76: closed directories, setuid bits, attributes and owners: a plain file of 0644 or 0755 comes out")
def _():
    caisson = Caisson()
    source = ("import os\nos.mkdir('/out/closed')\nopen('/out/closed/in', 'w').write('in')\n"
              "open('/out/suid', 'w').write('s'); os.chmod('/out/suid', 0o7777)\nopen('/out/shut', 'w').write('x'); os.chmod('/out/shut', 0)\n"
              "try: os.setxattr('/out/suid', 'user.note', b'v')\nexcept OSError: pass\nos.chmod('/out/closed', 0)")
    result = python(caisson, source)
    equal(result.word(), "OK", str(result))
    equal({p: a["mode"] for p, a in artifacts(result).items()}, {"closed/in": "0644", "shut": "0644", "suid": "0755"})
    target = scratch.directory("export")
    equal(caisson.call("export", "latest", target).status, 0)
    for path in list(objects(caisson).values()) + [os.path.join(target, "suid")]:
        status = os.stat(path)
        equal((status.st_uid, status.st_mode & 0o7000, os.listxattr(path)), (os.geteuid(), 0, []), path)


@suite.case("H77: what a daemon writes while main exits is collected when it is dead: the digest is that of the kept bytes")
def _():
    caisson = Caisson()
    source = ("import os, time\nf = open('/out/log', 'wb', 0)\nif os.fork() == 0:\n os.setsid()\n for fd in (0, 1, 2): os.close(fd)\n"
              " while True: f.write(b'x' * 100)\ntime.sleep(0.05)")
    for _ in range(5):
        result = python(caisson, source, "--memory", "512M")
        is_in(result.word(), {"OK", REJECTED}, str(result))  # it may have filled more than a file may have
        equal(result.receipt["boundary"]["survivors_killed"], 1)
    equal(caisson.verify().status, 0)
    equal(caisson.call("fsck").status, 0)


@suite.case("H79, H80: an output place that is removed or replaced from inside is still the one that is collected")
def _():
    caisson = Caisson()
    folder = os.path.dirname(scratch.file("stolen", CANARY))
    source = (f"import os\nopen('/out/mine', 'w').write('mine')\nfor act in (lambda: os.rmdir('/out'), lambda: os.rename('/out', '/box/o'),\n"
              f" lambda: os.symlink({folder!r}, '/out'), lambda: os.rename('/box', '/out')):\n try: act(); print('done')\n except OSError: pass")
    result = python(caisson, source)
    equal(result.text, "")
    equal(result.word(), "OK", str(result))
    equal(list(artifacts(result)), ["mine"])
    holds(not holds_canary(caisson), "no canary is kept")


@suite.case("H81: an output place that is filled is ENOSPC inside, and a fact in the receipt")
def _():
    caisson = Caisson()
    result = caisson.run("sh", "-c", "head -c 100M /dev/zero >/out/big; echo $? >&2; rm /out/big; head -c 70M /dev/zero >/out/big",
                         options=("--memory", "512M"))
    equal(result.word(), "NZ(1)", str(result))
    equal(result.receipt["space_full"], True)
    equal(result.receipt["artifacts"], [])


@suite.case("caps are met exactly; what is required must be there and not empty")
def _():
    caisson = Caisson()

    def run(script, **outputs):
        return caisson.run_manifest({"command": {"argv": ["/bin/sh", "-c", script]}, "outputs": outputs})

    equal(run("head -c 4096 /dev/zero >/out/a; : >/out/b", max_files=2, max_file_bytes=4096, max_bytes=4096).word(), "OK")
    equal(rejections(run("head -c 4097 /dev/zero >/out/a", max_file_bytes=4096)), {"a": "has 4097 bytes, more than 4096"})
    equal(rejections(run(": >/out/a; : >/out/b", max_files=1)), {"": "more than 1 files"})
    equal(rejections(run("echo 1 >/out/a; ln /out/a /out/b", max_bytes=3)), {"": "4 bytes together, more than 3"})
    equal(rejections(run(": >/out/a", max_files=0)), {"": "more than 0 files"})
    equal(rejections(run(": >/out/a", required=["a", "b/c"])),
          {"a": "is required, and empty", "b/c": "is required, and no file is there"})
    equal(run("mkdir /out/b; echo 1 >/out/b/c", required=["b/c"]).word(), "OK")


@suite.case("only a run that would succeed has artifacts")
def _():
    caisson = Caisson()
    fill = "echo kept >/out/f; ln -s x /out/l; "
    for word, script, options in (("NZ(3)", "exit 3", ()), ("SIG(9)", "kill -9 $$", ()), ("TLE_WALL", "sleep 60", ("--wall", "300ms")),
                                  ("RETAINED", "sleep 60 & exit 0", ())):
        result = caisson.run("sh", "-c", fill + script, options=options)
        equal(result.word(), word, str(result))
        equal(result.receipt["artifacts"], [])
        equal(caisson.call("artifacts", "latest").stdout, b"")
        holds(caisson.call("cat", "latest", "f").status == 125, "there is nothing to see")
    equal(objects(caisson), {})


@suite.case(f"compile once, run {MANY_RUNS} times by digest: every receipt verifies, and the store has one copy", timeout=900)
def _():
    caisson = Caisson()
    source = scratch.file("main.c", b'#include <stdio.h>\nint main(void) { long a, b; return scanf("%ld %ld", &a, &b) == 2 ? '
                                    b'!printf("%ld\\n", a * b) : 1; }\n')
    compiled = caisson.run("cc", "-O1", "-o", "/out/a.out", "main.c", options=("--input", f"{source}:/box/main.c", "--wall", "60s",
                                                                            "--memory", "1G", "--require-output", "a.out"))
    equal(compiled.word(), "OK", str(compiled))
    program_digest = artifacts(compiled)["a.out"]["sha256"]
    for number in range(MANY_RUNS):
        done = caisson.run_manifest({"command": {"argv": ["/box/a.out"]}, "stdin": {"text": f"{number} {number + 1}\n"},
                                     "inputs": [{"digest": program_digest, "target": "/box/a.out", "mode": "0555"}]})
        equal((done.word(), done.text), ("OK", f"{number * (number + 1)}\n"), str(done))
    verified = caisson.verify()
    equal(verified.status, 0, str(verified))
    size = artifacts(compiled)["a.out"]["size_bytes"]
    equal([os.stat(path).st_size for path in objects(caisson).values()].count(size), 1)
    swept = json.loads(caisson.call("gc", "--json").stdout)
    equal((swept["objects"] - swept["removed"], caisson.call("fsck").status), (1, 0))
    equal(caisson.call("cat", compiled.receipt["run"], "a.out").status, 0)


@suite.case("export refuses to overwrite, and follows no link out of its directory")
def _():
    caisson = Caisson()
    equal(caisson.run("sh", "-c", "mkdir /out/d; echo new >/out/d/f; echo new >/out/z").word(), "OK")
    target, outside = scratch.directory("export"), scratch.directory("outside")
    with open(os.path.join(target, "z"), "w", encoding="ascii") as file:
        file.write("old")
    done = caisson.call("export", "latest", target)
    equal(done.status, 125)
    holds(b"z: something is there already" in done.stderr, done.stderr)
    equal(sorted(os.listdir(target)), ["z"], "nothing was written")
    os.unlink(os.path.join(target, "z"))
    os.symlink(outside, os.path.join(target, "d"))
    equal(caisson.call("export", "latest", target).status, 125)
    equal(os.listdir(outside), [])
    os.unlink(os.path.join(target, "d"))
    equal(caisson.call("export", "latest", target).status, 0)
    equal(caisson.call("export", "latest", target).status, 125)


@suite.case("an artifact that is damaged or gone is named by verify and fsck, with its run, and is not served")
def _():
    caisson = Caisson()
    run = caisson.run("sh", "-c", "echo one >/out/one; echo two >/out/two").receipt["run"]
    equal(caisson.call("fsck").status, 0)
    kept = objects(caisson)
    damaged, missing = kept[digest(b"one\n")], kept[digest(b"two\n")]
    os.chmod(damaged, 0o755)
    with open(damaged, "r+b") as file:
        file.write(b"eno")
    os.chmod(damaged, 0o555)
    os.unlink(missing)
    with open(os.path.join(caisson.ledger, "store", "objects", "stray"), "w", encoding="ascii"):
        pass
    done = caisson.call("fsck", "--json")
    equal(done.status, 1)
    lines = {(line["kind"], line["object"], line.get("run"), line.get("name")) for line in json.loads(done.stdout)["lines"]}
    equal(lines, {("damaged", digest(b"one\n"), run, "one"), ("missing", digest(b"two\n"), run, "two"),
                  ("stray", "objects/stray", None, None)})
    holds(b"damaged: " + digest(b"one\n").encode() + b", artifact one of " + run.encode() in caisson.call("fsck").stdout, "as text")
    verified = caisson.verify()
    equal(verified.status, 1)
    holds(verified.stdout.count(run.encode()) >= 2, verified.stdout)
    for path in ("one", "two"):
        done = caisson.call("cat", run, path)
        equal((done.status, done.stdout), (125, b""), path)
        equal(caisson.call("export", run, scratch.directory("export")).status, 125)


@suite.case("gc removes what nothing names, by age and size, and never what a receipt or a stream names")
def _():
    caisson = Caisson()
    source = scratch.file("input", os.urandom(100000))
    kept = caisson.run("sh", "-c", "cat /box/in >/out/copy; head -c 200000 /dev/zero", options=("--input", f"{source}:/box/in"))
    equal(kept.word(), "OK", str(kept))
    equal(caisson.run("sh", "-c", "test -s /box/in", options=("--input", f"{scratch.file('x', b'unnamed')}:/box/in")).word(), "OK")
    before = objects(caisson)
    equal(len(before), 3)  # the first input is the artifact as well
    dry = json.loads(caisson.call("gc", "--dry-run", "--json").stdout)
    equal((dry["removed"], objects(caisson)), (1, before))
    equal(json.loads(caisson.call("gc", "--older", "1h", "--json").stdout)["removed"], 0)
    equal(json.loads(caisson.call("gc", "--max-bytes", "1M", "--json").stdout)["removed"], 0)
    equal(json.loads(caisson.call("gc", "--max-bytes", "1K", "--json").stdout)["removed"], 1)
    equal(sorted(objects(caisson)), sorted(set(before) - {digest(b"unnamed")}))
    equal(caisson.verify().status, 0)
    equal(caisson.logs(kept.receipt["run"]), b"\0" * 200000)


@suite.case("gc leaves the inputs of a run that goes on")
def _():
    caisson = Caisson()
    source = scratch.file("input", b"needed until the end\n")
    run = supervisor.Supervisor.start(caisson, "sh", "-c", "sleep 60", options=("--wall", "60s", "--input", f"{source}:/box/in"))
    run.wait_guest("sleep")
    equal(json.loads(caisson.call("gc", "--json").stdout)["removed"], 0)
    is_in(digest(b"needed until the end\n"), objects(caisson))
    run.stop()
    equal(json.loads(caisson.call("gc", "--json").stdout)["removed"], 1)


@suite.case(f"gc without pause beside {SWEPT_RUNS} runs that share their objects: each receipt's objects are there", timeout=300)
def _():
    caisson = Caisson()
    source = scratch.file("input", b"the same input of all\n")
    over, troubles, removed = threading.Event(), [], [0]

    def sweep():
        while not over.is_set():
            done = caisson.call("gc", "--json")
            if done.status == 0:
                removed[0] += json.loads(done.stdout)["removed"]
            else:
                troubles.append(str(done))

    def run(number):
        done = caisson.run("sh", "-c", f"cp /box/in /out/same; echo {number % 3} >/out/few; head -c 70000 /dev/zero",
                           options=("--input", f"{source}:/box/in"))
        if done.word() != "OK":
            troubles.append(str(done))

    def run_some(first):
        for number in range(first, SWEPT_RUNS, 3):
            run(number)

    sweeper = threading.Thread(target=sweep)
    runners = [threading.Thread(target=run_some, args=(first,)) for first in range(3)]
    for thread in [sweeper, *runners]:
        thread.start()
    for thread in runners:
        thread.join()
    over.set()
    sweeper.join()
    equal(troubles, [])
    for command in (caisson.verify(), caisson.call("fsck")):
        equal(command.status, 0, str(command))


def faulty():
    return Caisson(binary=program.need(program.FAULT_BIN))


@suite.case("killed between collecting and the seal: no artifact is visible, the run is interrupted, and gc takes the rest")
def _():
    for fault in ("run.collected:kill", "worker.collecting:kill", "run.seal:kill"):
        caisson = faulty()
        watch = Watch(caisson)
        caisson.call("run", "--", "sh", "-c", "echo lost >/out/f", env={"CAISSON_FAULT": fault})
        caisson.recover()
        rows = caisson.list()
        equal(len(rows), 1, fault)
        is_in(rows[0]["verdict"], {"interrupted", "boundary_error"}, fault)
        equal(caisson.rows("SELECT * FROM artifact"), [], fault)
        equal(caisson.call("fsck").status, 0, fault)
        equal(caisson.call("gc").status, 0)
        equal(objects(caisson), {}, fault)
        equal(caisson.verify().status, 0, fault)
        supervisor.reap_orphans()
        watch.hold()


@suite.case("a run that is stopped between collecting and the seal keeps a sweep waiting, however long")
def _():
    caisson = faulty()
    run = caisson.start("sh", "-c", "echo kept >/out/f", env={"CAISSON_FAULT": "run.collected:stop"})
    harness.wait_until(lambda: proc.Process(run.pid).state == "T", 20, "the keeper has stopped itself")
    is_in(digest(b"kept\n"), objects(caisson))
    sweep = subprocess.Popen(caisson.command("gc", "--json"), env=caisson.environment(), stdout=subprocess.PIPE)
    try:
        sweep.wait(1)
        raise AssertionError(f"the sweep did not wait: {sweep.stdout.read()}")
    except subprocess.TimeoutExpired:
        pass
    run.send_signal(signal.SIGCONT)
    equal(run.wait(20), 0)
    equal(json.loads(sweep.communicate(timeout=20)[0])["removed"], 0)
    equal(caisson.call("cat", "latest", "f").stdout, b"kept\n")


@suite.case("a collector that fails is our failure, never a success and never the guest's")
def _():
    for fault in ("linux.collect:eio", "linux.collect:enospc", "worker.collecting:enospc", "run.collected:enospc"):
        caisson = faulty()
        result = caisson.run("sh", "-c", "echo lost >/out/f", env={"CAISSON_FAULT": fault})
        equal((result.verdict, result.reason), ("boundary_error", "artifacts_not_kept"), f"{fault}: {result}")
        equal(result.receipt["artifacts"], [])
        equal(result.receipt["boundary"]["verified_empty"], True)


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
