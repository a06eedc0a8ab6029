"""scratch.py - one private scratch directory a test program, removed at its end."""

import atexit
import functools
import os
import shutil
import tempfile

_OWNER = os.getpid()


def _remove(path):
    if os.getpid() == _OWNER and os.environ.get("CAISSON_TEST_KEEP") != "1":
        shutil.rmtree(path, ignore_errors=True)


def _give(path):
    """To the user that Caisson runs as (delegated.py), if it is another."""
    uid = int(os.environ.get("CAISSON_TEST_AS") or os.geteuid())
    if uid != os.geteuid():
        os.chown(path, uid, uid)
    return path


@functools.cache
def root():
    """The scratch root, made at its first use: a program that replaces itself by exec before leaves nothing."""
    path = tempfile.mkdtemp(prefix="caisson-test.", dir=os.environ.get("CAISSON_TEST_TMP", "/tmp"))
    atexit.register(_remove, path)
    return _give(path)


def directory(name):
    """A fresh directory (0700) below the scratch root."""
    return _give(tempfile.mkdtemp(prefix=name + ".", dir=root()))


def file(name, content=b"", mode=0o644):
    """A fresh file with this content; returns its path."""
    path = os.path.join(directory("file"), name)
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(path, mode)
    return _give(path)
