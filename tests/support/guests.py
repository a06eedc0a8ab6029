"""guests.py - compiles the programs of tests/hostile/guests on demand, and runs them bare for positive controls.

CAISSON_TEST_GUESTS: a directory of programs that were compiled elsewhere, for a machine without a compiler.
"""

import os
import shutil
import subprocess

from support import caisson, scratch

SOURCES = os.path.join(caisson.TOP, "tests", "hostile", "guests")
CFLAGS = ("-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")
BARE_TIMEOUT_S = 20

_built = {}


def program(source, static=False):
    """Path of the executable made from a source of guests/; a script is its own executable."""
    key = (source, static)
    if key not in _built:
        _built[key] = _make(source, static)
    return _built[key]


def place(directory, source, static):
    """Where a program lies in a directory of compiled ones."""
    return os.path.join(directory, "static" if static else "dynamic", source.split(".")[0])


def _make(source, static):
    compiled = os.environ.get("CAISSON_TEST_GUESTS")
    if compiled and source.endswith(".c"):
        return place(compiled, source, static)
    path = os.path.join(scratch.directory("guest"), source.split(".")[0])
    if source.endswith(".c"):
        flags = (*CFLAGS, *(("-static",) if static else ()))
        subprocess.run(["cc", *flags, "-o", path, os.path.join(SOURCES, source)], check=True)
    else:
        shutil.copyfile(os.path.join(SOURCES, source), path)
    os.chmod(path, 0o755)
    return path


def compile_text(text, name="program.c", compiler="cc", flags=()):
    """An executable from C text, for the few that a test writes itself."""
    source = scratch.file(name, text)
    path = source + ".out"
    subprocess.run([compiler, *flags, "-o", path, source], check=True)
    return path


def bare(path, *arguments, prefix=(), **keywords):
    """stdout of a run without any boundary; prefix: a command that runs it, such as unshare."""
    keywords.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([*prefix, path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=BARE_TIMEOUT_S,
                          check=False, **keywords)
    return done.stdout.decode("utf-8", "replace")
