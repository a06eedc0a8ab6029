"""hostile.py - tries what a program in a boundary must not do, and says how far it got."""

import os
import socket
import sys
import time

DEV_NULL = os.open(os.devnull, os.O_RDWR)


def attempt(what, action):
    try:
        print(f"  {what}: SUCCEEDED, {action()!r}")
    except OSError as error:
        print(f"  {what}: {error.strerror}")


def read_shadow():
    with open("/etc/shadow", encoding="utf-8") as file:
        return file.readline()


def reach(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(2)
        connection.connect(address)
        return address


def let_go_of_output():
    for fd in (0, 1, 2):
        os.dup2(DEV_NULL, fd)


def outlive_parent():
    """A daemon by the book: two forks, a session of its own, no descriptor of ours."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            let_go_of_output()
            time.sleep(1000)
        os._exit(0)
    os.wait()


def fork_without_end():
    """A child whose every descendant forks for ever. Returns once even we cannot fork any more."""
    if os.fork() == 0:
        let_go_of_output()
        while True:
            try:
                os.fork()
            except OSError:
                time.sleep(0.01)
    while True:
        if os.fork() == 0:
            let_go_of_output()
            time.sleep(1000)


def main():
    attempt("read /etc/shadow", read_shadow)
    attempt("reach 192.0.2.1 by TCP", lambda: reach(socket.AF_INET, ("192.0.2.1", 80)))
    attempt("reach the host's services by 127.0.0.1", lambda: reach(socket.AF_INET, ("127.0.0.1", 22)))
    attempt("listen to the kernel by netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).fileno())
    sys.stdout.flush()
    outlive_parent()
    print("  outlive my parent: a daemon waits to be forgotten")
    attempt("fork without end", fork_without_end)
    print("  and now I leave, as if nothing were", flush=True)
    os._exit(0)


main()
