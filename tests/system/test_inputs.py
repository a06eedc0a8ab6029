#!/usr/bin/python3
"""test_inputs.py - what goes into a run: sealed once, the same bytes in every run, and never launched with others."""

import hashlib
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as program, harness, proc, scratch  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402
from support.supervisor import Supervisor  # noqa: E402

suite = harness.Suite("inputs")

LARGE = bytes(range(256)) * 4096
READ = {"CAISSON_FAULT": "store.reading:eio"}  # the first object that is read whole cannot be


def faulty():
    return Caisson(binary=program.need(program.FAULT_BIN))


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def stored(caisson, data):
    """The path of an object."""
    name = hashlib.sha256(data).hexdigest()
    return os.path.join(caisson.ledger, "store", "objects", name[:2], name[2:])


SUM = ("/usr/bin/sha256sum",)


def told(data):
    """What SUM says of these bytes on its standard input."""
    return f"{hashlib.sha256(data).hexdigest()}  -\n".encode()


def by_digest(caisson, data, **keywords):
    """A run that is given what is in the store already, and tells its digest."""
    return caisson.run_manifest({"command": {"argv": ["/bin/sh", "-c", "sha256sum </box/in"]},
                                 "inputs": [{"digest": digest(data), "target": "/box/in"}]}, **keywords)


def as_stdin(caisson, data, **keywords):
    return caisson.run_manifest({"command": {"argv": SUM}, "stdin": {"digest": digest(data)}}, **keywords)


def by_source(caisson, source, **keywords):
    return caisson.run("/bin/sh", "-c", "sha256sum </box/in", options=("--input", f"{source}:/box/in"), **keywords)


def sealed(caisson, data):
    """After a first run with the data, out of a file that is gone by now."""
    source = scratch.file("source", data)
    gives(by_source(caisson, source), data)
    os.unlink(source)
    return caisson


def gives(result, data, what=""):
    equal((result.word(), result.guest_stdout), ("OK", told(data)), f"{what} {result}")


def never_launched(result, what=""):
    equal(result.verdict, "not_launched", f"{what} {result}")
    equal(result.guest_stdout, b"", what)


@suite.case("an object that was sealed is not read again, neither by its first run nor by a later one, nor as standard input")
def _():
    caisson, source = faulty(), scratch.file("source", LARGE)
    for number in range(3):
        gives(by_source(caisson, source, env=READ), LARGE, number)
    for again in (by_digest, as_stdin):
        gives(again(caisson, LARGE, env=READ), LARGE, again.__name__)


@suite.case("an object whose time of change differs is read once, and then is known again")
def _():
    for again in (by_digest, as_stdin):
        caisson = sealed(faulty(), LARGE)
        os.chmod(stored(caisson, LARGE), 0o555)
        never_launched(again(caisson, LARGE, env=READ), "it must be read, and cannot be")
        gives(again(caisson, LARGE), LARGE)
        gives(again(caisson, LARGE, env=READ), LARGE)


def other_bytes(path):
    os.chmod(path, 0o755)
    with open(path, "r+b") as file:
        file.seek(70000)
        file.write(b"other")
    os.chmod(path, 0o555)


def other_bytes_and_old_times(path):
    before = os.stat(path)
    other_bytes(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def other_file(path):
    other = path + "x"
    with open(other, "wb") as file:
        file.write(LARGE[:-1] + b"?")
    os.chmod(other, 0o555)
    os.rename(other, path)


def other_size(path):
    os.chmod(path, 0o755)
    os.truncate(path, len(LARGE) - 1)
    os.chmod(path, 0o555)


def other_mode(path):
    os.chmod(path, 0o755)


def second_name(path):
    os.link(path, path + "x")


def a_link(path):
    os.rename(path, path + "x")
    os.symlink(path + "x", path)


@suite.case("a stored object that was tampered with never reaches a program, and fsck names it")
def _():
    for tamper in (other_bytes, other_bytes_and_old_times, other_file, other_size, other_mode, second_name, a_link):
        caisson = sealed(Caisson(), LARGE)
        tamper(stored(caisson, LARGE))
        for again in (by_digest, as_stdin, by_digest):
            result = again(caisson, LARGE)
            if result.receipt:
                never_launched(result, tamper.__name__)
                holds("object" in result.receipt["detail"], f"{tamper.__name__} {result}")
            else:  # found before there was a run
                equal(result.status, 125, f"{tamper.__name__} {result}")
                holds(b"object" in result.stderr, f"{tamper.__name__} {result}")
        equal(caisson.call("fsck").status, 1, tamper.__name__)


@suite.case("what a run is given is what was there when it was sealed, whatever becomes of the file")
def _():
    caisson, source = Caisson(), scratch.file("source", LARGE)
    gives(by_source(caisson, source), LARGE)
    with open(source, "r+b") as file:
        file.write(b"changed in place")
    gives(by_source(caisson, source), b"changed in place" + LARGE[16:])
    gives(by_digest(caisson, LARGE), LARGE)


@suite.case("a program that another run has just sealed can be executed while that one still holds it")
def _():
    caisson = faulty()
    source = scratch.file("program", b"#!/bin/sh\nexec true\n", 0o755)
    options = ("--input", f"{source}:/box/program")
    first = Supervisor.start(caisson, "/box/program", options=options, env={"CAISSON_FAULT": "store.named:stop"})
    harness.wait_until(lambda: proc.Process(first.keeper).state == "T", 10, "the first run stops behind the naming")
    try:
        equal(caisson.run("/box/program", options=options).word(), "OK")
    finally:
        os.kill(first.keeper, signal.SIGCONT)
        status = first.reap()
    equal(status, 0)


@suite.case("a note that is lost or false costs one reading, and goes with its object")
def _():
    caisson = sealed(faulty(), LARGE)
    note = os.path.join(caisson.ledger, "store", "checked", hashlib.sha256(LARGE).hexdigest())
    for spoil in (os.unlink, lambda path: os.chmod(path, 0o600), lambda path: os.truncate(path, 7)):
        with open(note, "rb") as file:
            holds(re.fullmatch(rb"\d+ \d+ \d+ \d+\.\d{9}\n", file.read()), "a note")
        spoil(note)
        never_launched(by_digest(caisson, LARGE, env=READ))
        gives(by_digest(caisson, LARGE), LARGE)
        gives(by_digest(caisson, LARGE, env=READ), LARGE)
    equal(caisson.call("fsck").status, 0)
    equal(caisson.call("gc").status, 0)
    equal(os.listdir(os.path.dirname(note)), [])


def package():
    """A directory with a Python package that tells what it is."""
    path = scratch.directory("package")
    write(path, {"__main__.py": "from sub import word\nprint(word.WORD)\n", "sub/__init__.py": "",
                 "sub/word.py": "WORD = 'first'\n"})
    return path


def write(path, files):
    for name, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(text)


def run_package(caisson, path, script="python3 /box/app", **keywords):
    return caisson.run("/bin/sh", "-c", script, options=("--input", f"{path}:/box/app"), **keywords)


def trees(caisson):
    place = os.path.join(caisson.ledger, "store", "trees")
    return [os.path.join(place, name) for name in sorted(os.listdir(place))]


@suite.case("a directory is one read-only mount: its program runs, nothing in it can be changed, links stay links")
def _():
    caisson, path = Caisson(), package()
    os.symlink("sub/word.py", os.path.join(path, "link"))
    equal(run_package(caisson, path).text, "first\n")
    tries = ("echo x >/box/app/new; echo x >>/box/app/sub/word.py; rm -r /box/app/sub; chmod 777 /box/app/__main__.py;"
             "ln -s / /box/app/l; mv /box/app /box/moved; rmdir /box/app; readlink /box/app/link;"
             "grep -c /box/app /proc/self/mountinfo; grep -o ' /box/app ro,nosuid,nodev' /proc/self/mountinfo; python3 /box/app")
    result = run_package(caisson, path, tries)
    equal((result.word(), result.text), ("OK", "sub/word.py\n1\n /box/app ro,nosuid,nodev\nfirst\n"), str(result))
    equal(len(trees(caisson)), 1)
    equal((caisson.verify().status, caisson.call("fsck").status), (0, 0))


@suite.case("a directory that was sealed is not read again before a run, and what becomes of it later does not matter")
def _():
    caisson, path = faulty(), package()
    for _ in range(2):
        equal(run_package(caisson, path, env=READ).text, "first\n")
    first = trees(caisson)
    write(path, {"sub/word.py": "WORD = 'other'\n"})
    equal(run_package(caisson, path, env=READ).text, "other\n")
    equal(len(trees(caisson)), 2)
    write(path, {"sub/word.py": "WORD = 'first'\n"})
    equal(run_package(caisson, path, env=READ).text, "first\n")
    holds(first[0] in trees(caisson) and len(trees(caisson)) == 2, trees(caisson))
    os.chmod(os.path.join(first[0], "__main__.py"), 0o444)
    never_launched(run_package(caisson, path, env=READ), "it must be read, and cannot be")
    equal(run_package(caisson, path).text, "first\n")
    equal(run_package(caisson, path, env=READ).text, "first\n")


@suite.case("a directory that was sealed is an input by its digest too, on the command line as well, and gone with a sweep")
def _():
    caisson, path = Caisson(), package()
    equal(run_package(caisson, path).text, "first\n")
    name = "sha256:" + os.path.basename(trees(caisson)[0])
    again = caisson.run_manifest({"command": {"argv": ["/bin/sh", "-c", "python3 /box/app; grep -o ' /box/app ro,nosuid,nodev' /proc/self/mountinfo"]},
                                  "inputs": [{"digest": name, "target": "/box/app"}]})
    equal((again.word(), again.text), ("OK", "first\n /box/app ro,nosuid,nodev\n"), str(again))
    both = caisson.run("python3", "/box/app", options=("--input", f"{name}:/box/app", "--input", f"{name}:/box/other"))
    equal((both.word(), both.text, len(trees(caisson))), ("OK", "first\n", 1), str(both))
    spoil_bytes(trees(caisson)[0])
    refused_by_name(caisson, name, b"has other contents than its name says")
    equal(caisson.call("gc").status, 0)
    refused_by_name(caisson, name, b"is not in the store")


def refused_by_name(caisson, name, word):
    done = caisson.run_plain("echo", "marker", options=("--input", f"{name}:/box/app"))
    equal((done.status, done.stdout), (125, b""), str(done))
    holds(word in done.stderr and b"/box/app" in done.stderr, str(done))


@suite.case("an artifact of one run is the input of another by its digest on the command line")
def _():
    caisson = Caisson()
    made = caisson.run("sh", "-c", "printf '#!/bin/sh\\necho ran\\n' > /out/tool && chmod +x /out/tool")
    name = made.receipt["artifacts"][0]["sha256"]
    equal(caisson.run("/box/tool", options=("--input", f"{name}:/box/tool")).text, "ran\n", str(made.receipt["artifacts"]))


def spoil_bytes(tree):
    name = os.path.join(tree, "sub", "word.py")
    os.chmod(name, 0o644)
    with open(name, "r+", encoding="utf-8") as file:
        file.write("WORD = 'F")
    os.chmod(name, 0o444)


def spoil_by_a_name(tree):
    write(tree, {"sub/more.py": ""})


def spoil_by_a_link(tree):
    os.unlink(os.path.join(tree, "sub", "word.py"))
    os.symlink("/etc/passwd", os.path.join(tree, "sub", "word.py"))


def spoil_by_a_loss(tree):
    os.unlink(os.path.join(tree, "sub", "__init__.py"))


@suite.case("a directory's copy that was tampered with never reaches a program, and fsck names it")
def _():
    for spoil in (spoil_bytes, spoil_by_a_name, spoil_by_a_link, spoil_by_a_loss):
        caisson, path = Caisson(), package()
        equal(run_package(caisson, path).text, "first\n")
        spoil(trees(caisson)[0])
        for _ in range(2):
            result = run_package(caisson, path)
            never_launched(result, spoil.__name__)
            holds("tree" in result.receipt["detail"], f"{spoil.__name__} {result}")
        done = caisson.call("fsck")
        equal(done.status, 1, spoil.__name__)
        holds(b"damaged: sha256:" + os.path.basename(trees(caisson)[0]).encode() in done.stdout, done.stdout)
        equal(caisson.call("gc").status, 0)
        equal((trees(caisson), run_package(caisson, path).text), ([], "first\n"), spoil.__name__)


@suite.case("what may not be in a directory is refused by name, and nothing of it is left")
def _():
    caisson, path = Caisson(), package()
    odd = os.path.join(path, "sub", "odd")
    for make, words in ((lambda: os.symlink("/etc/passwd", odd), b"sub/odd: is an absolute link"),
                        (lambda: os.symlink("../../x", odd), b"sub/odd: is a link that leaves the directory"),
                        (lambda: os.mkfifo(odd), b"sub/odd: is a FIFO")):
        make()
        done = run_package(caisson, path)
        equal((done.status, done.receipt), (125, None), str(done))
        holds(words in done.stderr, done.stderr)
        os.unlink(odd)
    equal(objects_and_trees(caisson), [])


def objects_and_trees(caisson):
    found = []
    for place in ("objects", "trees", "tmp"):
        for folder, _, names in os.walk(os.path.join(caisson.ledger, "store", place)):
            found += [os.path.join(folder, name) for name in names]
    return found


@suite.case("ten thousand files are one mount, in little memory")
def _():
    caisson, path = Caisson(), scratch.directory("many")
    write(path, {f"d{number % 100}/f{number}": str(number) for number in range(10000)})
    argv = caisson.command("run", "--input", f"{path}:/box/app", "--", "/bin/sh", "-c", "find /box/app -type f | wc -l")
    # A sanitizer reserves terabytes of address space before main.
    limits = ["--nofile=256:4096"] + ([] if program.sanitized() else ["--as=268435456"])
    for _ in range(2):
        done = subprocess.run(["/usr/bin/prlimit", *limits, "--", *argv], capture_output=True,
                              env=caisson.environment(), check=False)
        equal((done.returncode, done.stdout), (0, b"10000\n"), done.stderr)
    equal(len(trees(caisson)), 1)


if __name__ == "__main__":
    sys.exit(suite.main())
