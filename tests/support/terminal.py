"""terminal.py - runs a command on a pseudo-terminal of its own, in raw mode, so that every byte in either direction can be seen."""

import os
import pty
import select
import time
import tty


class Terminal:
    """A command with the terminal as its controlling one, and as stdin, stdout and stderr."""

    def __init__(self, argv, env=None):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.login_tty(self.slave) if hasattr(os, "login_tty") else _login_tty(self.slave)
                os.closerange(3, 256)
                os.execve(argv[0], argv, env if env is not None else dict(os.environ))
            finally:
                os._exit(127)

    def finish(self, seconds=60):
        """Waits for the command's end; returns (exit status, everything it wrote)."""
        deadline, output = time.monotonic() + seconds, b""
        while self.status is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"still running after {seconds} s; wrote {output[-300:]!r}")
            output += self._read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        while True:
            rest = self._read(0.05)
            if not rest:
                return self.status, output
            output += rest

    def pending_input(self):
        """Bytes that wait to be read by whoever reads the terminal: what somebody injected."""
        ready, _, _ = select.select([self.slave], [], [], 0.05)
        return os.read(self.slave, 4096) if ready else b""

    def type(self, data):
        os.write(self.master, data)

    def close(self):
        os.close(self.master)
        os.close(self.slave)

    def _read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        try:
            return os.read(self.master, 65536) if ready else b""
        except OSError:
            return b""


def _login_tty(slave):
    import fcntl  # pylint: disable=import-outside-toplevel
    import termios  # pylint: disable=import-outside-toplevel
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(slave, fd)
