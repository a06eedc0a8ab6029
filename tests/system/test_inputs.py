#!/usr/bin/python3
"""test_inputs.py - what goes into a run: sealed once, the same bytes in every run, and never launched with others."""

import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as program, harness, scratch  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal, holds  # noqa: E402

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


if __name__ == "__main__":
    sys.exit(suite.main())
