"""front.py - caisson-front alone: its keeper is this process, which answers as a test wants."""

import array
import contextlib
import json
import os
import selectors
import socket
import subprocess
import threading

from support import harness
from support.caisson import need

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CAISSON_BUILD", os.path.join(TOP, "build"))
NOBODY = 65534
CHANNEL_BYTES = 256 * 1024


def raise_file_limit():
    import resource  # pylint: disable=import-outside-toplevel
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def receive(channel):
    """A message: its JSON, the document behind it (bytes or None), descriptors. None at the end."""
    data, controls, _, _ = channel.recvmsg(CHANNEL_BYTES, socket.CMSG_SPACE(8 * 4))
    if not data:
        return None
    fds = array.array("i")
    for _, _, payload in controls:
        fds.frombytes(payload[:len(payload) - len(payload) % 4])
    text, separator, document = data.partition(b"\0")
    return json.loads(text), document if separator else None, list(fds)


def send(channel, value, document=None, fds=()):
    data = json.dumps(value).encode() + (b"" if document is None else b"\0" + document)
    controls = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([data], controls)


class Front:
    """answer(op, message, document, fds) gives (ok or error dict, document, fds), or None to leave the client waiting. The descriptors
    are closed when they are sent."""

    def __init__(self, answer):
        self.answer = answer
        self.lock = threading.Lock()
        self.channels = []
        intake, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.intake = intake
        path = need(os.path.join(BUILD, "src", "http", "caisson-front"))

        def place():
            os.dup2(theirs.fileno(), 3)
            if os.geteuid() == 0:
                os.setgroups([4, 27])

        self.process = subprocess.Popen([path, str(NOBODY), str(NOBODY)], preexec_fn=place, pass_fds=(3,), close_fds=True, env={})
        theirs.close()
        self.selector = selectors.DefaultSelector()
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.stopping = False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def connect(self):
        """A client's socket, and the keeper's end of its channel."""
        client, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHANNEL_BYTES)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHANNEL_BYTES)
        client.settimeout(harness.patience(30))
        with self.lock:
            send(self.intake, {}, fds=(served.fileno(), theirs.fileno()))
            self.selector.register(channel, selectors.EVENT_READ)
        served.close()
        theirs.close()
        self.wake.send(b"x")
        return client, channel

    def _serve(self):
        while not self.stopping:
            for key, _ in self.selector.select():
                if key.fileobj is self.woken:
                    self.woken.recv(4096)
                else:
                    self._hear(key.fileobj)

    def _hear(self, channel):
        try:
            message = receive(channel)
        except ConnectionError:
            message = None
        if message is None:
            self.selector.unregister(channel)
            channel.close()
            return
        value, document, fds = message
        answer = self.answer(value["op"], value, document, fds)
        for fd in fds:
            os.close(fd)
        if answer is None:
            return
        with contextlib.suppress(ConnectionError):  # the client is gone, and its channel with it
            send(channel, *answer)
        for fd in answer[2] if len(answer) > 2 else ():
            os.close(fd)

    def stop(self):
        self.stopping = True
        self.wake.send(b"x")
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        self.wake.close()
        self.intake.close()
        return self.process.wait(harness.patience(10))


@contextlib.contextmanager
def front(answer):
    one = Front(answer)
    try:
        yield one
    finally:
        one.stop()
