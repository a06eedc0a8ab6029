#!/usr/bin/python3
"""test_installed.py - the program as it is installed: it has no fault points, and the lines that must be shown hold for it.

The build's own installation into an empty directory is laid over its prefix, in a mount namespace of the test's own.
"""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import caisson as product  # noqa: E402
from support import harness, proc, scratch  # noqa: E402
from support.harness import equal, holds  # noqa: E402

suite = harness.Suite("installed")

BUILD = os.path.abspath(os.environ.get("CAISSON_BUILD", os.path.join(product.TOP, "build")))
FAULT_WORDS = (b"CAISSON_FAULT", b"CAISSON_OMIT", b"run.preparing", b"ledger_committed")
ON_INSTALLED = r"""
set -e
mount --bind "$DEST$PREFIX" "$PREFIX"
exec env CAISSON_BIN="$PREFIX/bin/caisson" /usr/bin/python3 "$SUITE" -- "$@"
"""
MUST_SHOW = ("python3 prints 42", "exit 137", "kill -9 $$", "memory beyond", "sleep 60", "not there", "keeps the outputs open",
             "handles closed", "exactly one object", "quiet says nothing", "summary says", "summary on a terminal",
             "control characters", "INT", "closed stdout")

installed = {}


def installation():
    """Directory that holds an installation of the build; made once."""
    if not installed:
        product.need(product.BIN)
        destination = scratch.directory("install")
        subprocess.run(["meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", destination], check=True, capture_output=True)
        asked = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], check=True, capture_output=True)
        installed["dest"] = destination
        installed["prefix"] = next(option["value"] for option in json.loads(asked.stdout) if option["name"] == "prefix")
    return installed["dest"], installed["prefix"]


def files_below(directory):
    return [os.path.join(path, name) for path, _, names in os.walk(directory) for name in names]


def read(path):
    with open(path, "rb") as file:
        return file.read()


@suite.case("an installation is a program, its helpers, and nothing that others could change")
def _():
    destination, prefix = installation()
    paths = files_below(destination)
    names = {os.path.basename(path) for path in paths}
    holds({"caisson", "caisson-init", "caisson-client"} <= names, f"installed: {sorted(names)}")
    for path in paths:
        mode = os.stat(path).st_mode
        holds(path.startswith(destination + prefix), f"{path} is below the prefix")
        equal(mode & 0o6022, 0, f"mode of {path}: {mode:o}")


VERIFY = r"""
set -e
mount --bind "$DEST$PREFIX" "$PREFIX"
exec systemd-analyze verify --man=no "$PREFIX/lib/systemd/system/caisson.service"
"""


@suite.case("systemd understands the unit, every line of it, and finds the program that it starts")
def _():
    destination, prefix = installation()
    if not shutil.which("systemd-analyze"):
        raise harness.Skip("systemd-analyze is not installed")
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", VERIFY],
                          env={**os.environ, "DEST": destination, "PREFIX": prefix}, capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, ""))


@suite.case("no installed file has a fault point; those of the fault build have")
def _():
    destination, _ = installation()
    for path in files_below(destination):
        content = read(path)
        equal([word for word in FAULT_WORDS if word in content], [], path)
    product.need(product.FAULT_BIN)
    content = read(product.FAULT_BIN)
    equal([word for word in FAULT_WORDS if word not in content], [], f"not in {product.FAULT_BIN}")


@suite.case("CAISSON_FAULT and CAISSON_OMIT mean nothing to it")
def _():
    caisson = product.Caisson()
    result = caisson.run("true", env={"CAISSON_FAULT": "run.preparing:kill,run.enrolled:eio", "CAISSON_OMIT": "seccomp,ns.pid"})
    equal(result.word(), "OK", str(result))


@suite.case("make install honours DESTDIR")
def _():
    done = subprocess.run(["make", "-n", "install", "DESTDIR=/nowhere"], cwd=product.TOP, capture_output=True, text=True,
                          check=True)
    holds(re.search(r"meson install", done.stdout), done.stdout)


@suite.case("the lines that must be shown hold for the installed program", timeout=170)
def _():
    destination, prefix = installation()
    suite_file = os.path.join(product.TOP, "tests", "system", "test_cli.py")
    environment = {**os.environ, "DEST": destination, "PREFIX": prefix, "SUITE": suite_file}
    os.makedirs(prefix, exist_ok=True)
    done = subprocess.run(["unshare", "-m", "sh", "-c", ON_INSTALLED, "sh", *MUST_SHOW], env=environment, capture_output=True,
                          text=True, check=False)
    troubles = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    equal(done.returncode, 0, "\n".join(troubles) + done.stderr)
    holds(done.stdout.count("\nok ") + done.stdout.startswith("ok ") >= len(MUST_SHOW), done.stdout)


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
