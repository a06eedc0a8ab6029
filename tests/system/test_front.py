#!/usr/bin/python3
"""test_front.py - caisson-front alone, with a keeper played by the test: what it lets through, and what clients cannot do to it."""

import contextlib
import json
import os
import random
import re
import selectors
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import harness, scratch  # noqa: E402
from support.caisson import sanitized  # noqa: E402
from support.front import NOBODY, front, raise_file_limit, send  # noqa: E402
from support.harness import equal, holds, is_in, patience, wait_until  # noqa: E402

suite = harness.Suite("front")

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
CLOSE = b"Connection: close\r\n"
RUN = "run-aaaaaaaaaaaaaaaa"

EVENT_CLIENTS = 1000
SLOW_CLIENTS = 500
MUTANTS, MUTANTS_AT_ONCE = 4000, 100


class Keeper:
    """Answers everything with `{}`, and remembers what was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def __call__(self, op, message, document, fds):
        self.asked.append((op, message, document))
        answer = self.answers.get(op, ({"ok": {}}, b"{}"))
        return answer(message, document, fds) if callable(answer) else answer


def read_all(client):
    """Whatever comes until the connection ends."""
    data = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionError:
            return data
        if not piece:
            return data
        data += piece


def read_head(client):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(65536)
        if not piece:
            break
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin1"), rest


def statuses(data):
    return [int(number) for number in re.findall(rb"HTTP/1\.[01] (\d{3}) ", data)]


def header(head, name):
    found = re.search(rf"^{name}: (.*?)\r?$", head, re.MULTILINE | re.IGNORECASE)
    return found.group(1) if found else None


def exchange(one, data):
    """Sends bytes on a connection of its own and reads until the front ends it."""
    client, _ = one.connect()
    with client:
        try:
            client.sendall(data)
        except BrokenPipeError:
            pass  # refused before all of it was sent
        return read_all(client)


def served(one):
    """A healthy request in between."""
    equal(statuses(exchange(one, b"GET /v1/health HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n")), [200])


def resident_kb(one):
    with open(f"/proc/{one.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def stays_small(one, before, most_kb, what):
    """Of a sanitizer's build the memory says nothing: it keeps what was freed."""
    grown = resident_kb(one) - before
    holds(grown < most_kb or sanitized(), f"{grown} KiB for {what}")
    return grown


def get(path, *headers):
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + CLOSE + b"".join(headers) + b"\r\n"


def post(path, body=b"{}", *headers):
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + CLOSE + JSON + length + b"".join(headers) + b"\r\n" + body


@suite.case("it runs as nobody, without groups, capabilities or a way back, behind a filter")
def _():
    with front(Keeper()) as one:
        served(one)
        with open(f"/proc/{one.process.pid}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file.read().splitlines())
        if os.geteuid() == 0:
            equal(status["Uid"].split(), [str(NOBODY)] * 4)
            equal(status["Gid"].split(), [str(NOBODY)] * 4)
            equal(status["Groups"].split(), [])
            equal(int(status["CapBnd"], 16), 0)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            equal(int(status[name], 16), 0, name)
        equal((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))


@suite.case("it ends when its keeper does")
def _():
    with front(Keeper()) as one:
        served(one)
        client, _ = one.connect()
        equal(one.stop(), 0)
        with client:
            equal(read_all(client), b"")
        one.stop = lambda: 0


# What a second parser might read otherwise, or what was not meant for us. 000: the connection ends without a word.
REFUSED = [
    ("no host", b"GET /v1/health HTTP/1.1\r\n\r\n", {400, 403}),
    ("another host", b"GET /v1/health HTTP/1.1\r\nHost: evil.example\r\n\r\n", {403}),
    ("a host that begins like ours", b"GET /v1/health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", {403}),
    ("two hosts", b"GET /v1/health HTTP/1.1\r\n" + HOST + HOST + b"\r\n", {400}),
    ("an origin", get(b"/v1/health", b"Origin: http://evil.example\r\n"), {403}),
    ("a page of another site", get(b"/v1/health", b"Sec-Fetch-Site: cross-site\r\n"), {403}),
    ("lengths twice", post(b"/v1/runs", b"{}", b"Content-Length: 2\r\n"), {400}),
    ("contradicting lengths", post(b"/v1/runs", b"{}", b"Content-Length: 0\r\n"), {400}),
    ("length and chunks", post(b"/v1/runs", b"{}", b"Transfer-Encoding: chunked\r\n"), {400}),
    ("two encodings", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {400}),
    ("an unknown encoding", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", {400}),
    ("chunks in HTTP/1.0", b"POST /v1/runs HTTP/1.0\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    ("a negative length", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: -1\r\n\r\n", {400}),
    ("a signed length", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: +2\r\n\r\n{}", {400}),
    ("a list of lengths", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 2, 2\r\n\r\n{}", {400}),
    ("a hexadecimal length", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 0x2\r\n\r\n{}", {400}),
    ("a folded length", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 2\r\n 3\r\n\r\n{}", {400}),
    ("a folded header that means nothing", get(b"/v1/health", b"X: a\r\n b\r\n"), {400}),
    ("a folded host", b"GET /v1/health HTTP/1.1\r\nHost: evil.\r\n localhost\r\n\r\n", {400, 403}),
    ("a folded name", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content: 2\r\n -Length\r\n\r\n{}", {400}),
    ("an endless length", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 99999999999999999999\r\n\r\n",
     {400, 413}),
    ("a length of 5 MiB", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 5242880\r\n\r\n", {413}),
    ("a listing of 33 MiB", b"PUT /v1/trees HTTP/1.1\r\n" + HOST + b"Content-Length: 34603008\r\n\r\n", {413}),
    ("an object of 9 GiB", b"PUT /v1/objects HTTP/1.1\r\n" + HOST + b"Content-Length: 9663676416\r\n\r\n", {413}),
    ("a body where none is due", get(b"/v1/health", b"Content-Length: 2\r\n") + b"{}", {400}),
    ("chunks where none are due", get(b"/v1/health", b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n", {400}),
    ("a blank before a colon", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length : 2\r\n\r\n{}", {400}),
    ("a blank in a name", get(b"/v1/health", b"X Y: 1\r\n"), {400}),
    ("a NUL in the target", get(b"/v1/hea\0lth"), {400, 404}),
    ("a control in a value", get(b"/v1/health", b"X: a\x01b\r\n"), {400}),
    ("a header without a colon", get(b"/v1/health", b"whatever\r\n"), {400}),
    ("a chunk size that overflows", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON
     + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n", {0, 400, 413}),
    ("a chunk size that is none", b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON
     + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", {0, 400}),
    ("text as a manifest", b"POST /v1/runs HTTP/1.1\r\n" + HOST + b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
     {415}),
    ("no type", b"POST /v1/runs HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}", {415}),
    ("a form", b"POST /v1/runs/" + RUN.encode() + b"/cancel HTTP/1.1\r\n" + HOST
     + b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b", {415}),
    ("a target of 64 KiB", get(b"/v1/" + b"a" * 65536), {414, 431}),
    ("a query of 64 KiB", get(b"/v1/runs?cursor=" + b"a" * 65536), {414, 431}),
    ("a header of 1 MiB", get(b"/v1/health", b"X: " + b"a" * (1 << 20) + b"\r\n"), {431}),
    ("10,000 headers", get(b"/v1/health", b"A: b\r\n" * 10000), {431}),
    ("100 headers", get(b"/v1/health", b"A: b\r\n" * 100), {431}),
    ("an absolute target", b"GET http://evil.example/v1/health HTTP/1.1\r\n" + HOST + b"\r\n", {400, 404}),
    ("another protocol", b"GET /v1/health HTTP/2.0\r\n" + HOST + b"\r\n", {400, 505}),
    ("no protocol", b"GET /v1/health\r\n\r\n", {0, 400}),
    ("an unknown method", b"BREW /v1/runs HTTP/1.1\r\n" + HOST + b"\r\n", {405}),
    ("CONNECT", b"CONNECT evil.example:80 HTTP/1.1\r\n" + HOST + b"\r\n", {400, 404, 405}),
    ("an unknown parameter", get(b"/v1/runs?limt=1"), {400}),
    ("a parameter twice", get(b"/v1/runs?limit=1&limit=2"), {400}),
    ("a negative number", get(b"/v1/runs?limit=-1"), {400}),
    ("a number too large", get(b"/v1/runs?limit=9223372036854775808"), {400}),
    ("a fraction", get(b"/v1/runs?limit=1.5"), {400}),
    ("an empty number", get(b"/v1/runs?limit="), {400}),
    ("a number with a blank", get(b"/v1/runs?limit=+1"), {400}),
    ("a wait of an hour", get(b"/v1/runs/" + RUN.encode() + b"?wait_ms=3600000"), {400}),
    ("a stream that is none", get(b"/v1/runs/" + RUN.encode() + b"/logs?stream=stdin"), {400}),
    ("a cancellation that says more", post(b"/v1/runs/" + RUN.encode() + b"/cancel", b'{"force":true}'), {400}),
    ("events that are followed a little", get(b"/v1/runs/" + RUN.encode() + b"/events?follow=1"), {400}),
    ("an event id that is none", get(b"/v1/runs/" + RUN.encode() + b"/events", b"Last-Event-ID: 1\r\n"), {400}),
    ("a slot that is none", post(b"/v1/workers/a/recover"), {404}),
    ("a key of 129 characters", post(b"/v1/runs", b"{}", b"Idempotency-Key: " + b"k" * 129 + b"\r\n"), {400}),
    ("two keys", post(b"/v1/runs", b"{}", b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n"), {400}),
]


@suite.case(f"{len(REFUSED)} requests are refused, and nothing of them reaches the keeper or a next request")
def _():
    keeper = Keeper()
    with front(keeper) as one:
        for name, data, allowed in REFUSED:
            # Were the connection to go on, this would be asked. A head that MHD refuses by itself may come twice (see loop.c).
            answer = exchange(one, data + get(b"/v1/runs/run-smuggled"))
            for status in set(statuses(answer)) or {0}:
                is_in(status, allowed, f"{name}: {answer[:300]!r}")
            equal(keeper.asked, [], name)
        served(one)


@suite.case("a refusal of ours is structured")
def _():
    with front(Keeper()) as one:
        answer = exchange(one, get(b"/v1/nothing"))
        head, _, body = answer.partition(b"\r\n\r\n")
        equal(json.loads(body)["error"]["code"], "not_found")
        equal(header(head.decode(), "Content-Type"), "application/json")
        equal(header(head.decode(), "X-Content-Type-Options"), "nosniff")
        answer = exchange(one, b"DELETE /v1/runs HTTP/1.1\r\n" + HOST + b"\r\n").partition(b"\r\n\r\n")[0].decode()
        equal(header(answer, "Allow"), "POST, GET, HEAD")


PASSED = [
    ("a port", b"GET /v1/health HTTP/1.1\r\nHost: localhost:80\r\n" + CLOSE + b"\r\n"),
    ("HTTP/1.0", b"GET /v1/health HTTP/1.0\r\n" + HOST + b"\r\n"),
    ("a charset", b"POST /v1/runs HTTP/1.1\r\n" + HOST + CLOSE
     + b"Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}"),
    ("chunks with a trailer", b"POST /v1/runs HTTP/1.1\r\n" + HOST + CLOSE + JSON
     + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\nX: y\r\n\r\n"),
    ("an action without a body", b"POST /v1/runs/" + RUN.encode() + b"/cancel HTTP/1.1\r\n" + HOST + CLOSE + JSON
     + b"Content-Length: 0\r\n\r\n"),
    ("bare line feeds", b"GET /v1/health HTTP/1.1\n" + HOST.replace(b"\r", b"") + CLOSE.replace(b"\r", b"") + b"\n"),
    ("a HEAD", b"HEAD /v1/health HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n"),
]


@suite.case(f"{len(PASSED)} unusual requests are served")
def _():
    keeper = Keeper()
    with front(keeper) as one:
        for name, data in PASSED:
            is_in(statuses(exchange(one, data))[0], {200, 201, 202}, name)
        equal([document for op, _, document in keeper.asked if op == "submit"], [b"{}", b"{}"])


@suite.case("a missing last chunk is never a complete body")
def _():
    keeper = Keeper()
    with front(keeper) as one:
        client, channel = one.connect()
        with client:
            client.sendall(b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
            client.shutdown(socket.SHUT_WR)
            is_in(tuple(statuses(read_all(client))), {(), (400,)})
        wait_until(lambda: channel.fileno() < 0, 10, "the channel is closed")
        equal(keeper.asked, [])


@suite.case("pipelined requests are answered one after the other, in order")
def _():
    keeper = Keeper(run=lambda message, *_: ({"ok": {}}, message["run"].encode()))
    with front(keeper) as one:
        requests = b"".join(b"GET /v1/runs/run-%d HTTP/1.1\r\n" % i + HOST + (CLOSE if i == 19 else b"") + b"\r\n"
                            for i in range(20))
        bodies = re.findall(rb"\r\n\r\n(run-\d+)", exchange(one, requests))
        equal(bodies, [b"run-%d" % i for i in range(20)])


# The path as it is in the request, and as the keeper must get it: decoded once, or never.
PATHS = [
    (b"a/b.txt", b"a/b.txt"), (b"..%2f..%2fetc", b"../../etc"), (b"../x", b"../x"), (b"%2e%2e/x", b"../x"),
    (b"%252e%252e", b"%2e%2e"), (b"a%00b", None), (b"%5c", b"\\"), (b"/etc/passwd", b"/etc/passwd"), (b"a/", b"a/"), (b"", None),
    (b"a+b", b"a b"), (b"a%2Bb", b"a+b"), (b"%ff%fe", b"\xff\xfe"), (b"a" * 4095, b"a" * 4095), (b"a" * 4096, None),
    (b"a%zz", b"a%zz"), (b"%", b"%"),
]


@suite.case("the name of an artifact reaches the keeper decoded once, and is no path here")
def _():
    keeper = Keeper(artifact=({"error": "not_found", "message": "no"},))
    with front(keeper) as one:
        for sent, expected in PATHS:
            keeper.asked.clear()
            answer = exchange(one, get(b"/v1/runs/" + RUN.encode() + b"/artifact?path=" + sent))
            if expected is None:
                equal((statuses(answer), keeper.asked), ([400], []), sent)
            else:
                equal((statuses(answer), [asked[2] for asked in keeper.asked]), ([404], [expected]), sent)
        for path in (b"/v1/runs/../runs", b"/v1/runs/%2e%2e", b"/v1/runs/run-a%00", b"/v1/runs/run-a/", b"//v1/runs",
                     b"/v1/runs/run-a/..", b"/v1/runs/" + b"a" * 40, b"/v1/runs/RUN-A", b"/v1/%72uns"):
            keeper.asked.clear()
            equal((statuses(exchange(one, get(path))), keeper.asked), ([404], []), path)


def artifact_keeper(content):
    path = scratch.file("artifact", content)

    def give(*_):
        fd = os.open(path, os.O_RDONLY)
        give.open.append(fd)
        return {"ok": {"digest": "sha256:" + "a" * 64, "bytes": len(content)}}, None, (fd,)

    give.open = []
    return Keeper(artifact=give)


RANGES = [
    (None, 200, (0, 1000)), (b"bytes=0-0", 206, (0, 1)), (b"bytes=10-19", 206, (10, 20)), (b"bytes=990-", 206, (990, 1000)),
    (b"bytes=-10", 206, (990, 1000)), (b"bytes=-5000", 206, (0, 1000)), (b"bytes=0-99999999999999999999", 206, (0, 1000)),
    (b"bytes=1000-", 416, None), (b"bytes=99999999999999999999-", 416, None), (b"bytes=-0", 416, None),
    (b"bytes=5-4", 200, (0, 1000)), (b"bytes=0-0,1-1", 200, (0, 1000)), (b"bytes=" + b"0-," * 1000 + b"0-", 200, (0, 1000)),
    (b"lines=1-2", 200, (0, 1000)), (b"bytes=a-b", 200, (0, 1000)), (b"bytes=--1", 200, (0, 1000)), (b"bytes=", 200, (0, 1000)),
]


@suite.case(f"{len(RANGES)} ranges of an artifact: one part, all of it, or 416")
def _():
    content = bytes(i % 251 for i in range(1000))
    keeper = artifact_keeper(content)
    with front(keeper) as one:
        for wanted, status, span in RANGES:
            answer = exchange(one, get(b"/v1/runs/" + RUN.encode() + b"/artifact?path=a",
                                       *([b"Range: " + wanted + b"\r\n"] if wanted else [])))
            head, _, body = answer.partition(b"\r\n\r\n")
            head = head.decode()
            equal(statuses(answer), [status], wanted)
            if span is None:
                equal(header(head, "Content-Range"), "bytes */1000")
                continue
            equal(body, content[span[0]:span[1]], wanted)
            if status == 206:
                equal(header(head, "Content-Range"), f"bytes {span[0]}-{span[1] - 1}/1000")
            equal(header(head, "Content-Type"), "application/octet-stream")
            equal(header(head, "Content-Disposition"), "attachment")
            equal(header(head, "X-Content-Type-Options"), "nosniff")
            equal(header(head, "Content-Security-Policy"), "default-src 'none'; sandbox")
        etag = '"sha256:' + "a" * 64 + '"'
        for condition, status in ((etag, 206), ('"sha256:b"', 200)):
            answer = exchange(one, get(b"/v1/runs/" + RUN.encode() + b"/artifact?path=a", b"Range: bytes=0-0\r\n",
                                       b"If-Range: " + condition.encode() + b"\r\n"))
            equal(statuses(answer), [status], condition)


@suite.case("a reader of a large artifact that stops reading holds neither memory nor anybody else")
def _():
    size = 256 << 20
    path = scratch.file("large", b"")
    os.truncate(path, size)
    keeper = Keeper(artifact=lambda *_: ({"ok": {"digest": "sha256:" + "a" * 64, "bytes": size}}, None,
                                         (os.open(path, os.O_RDONLY),)))
    with front(keeper) as one:
        served(one)
        before = resident_kb(one)
        stopped = [one.connect()[0] for _ in range(20)]
        for client in stopped:
            client.sendall(get(b"/v1/runs/" + RUN.encode() + b"/artifact?path=a"))
            read_head(client)
        for _ in range(50):
            served(one)
        stays_small(one, before, 16 * 1024, "20 readers")
        whole = stopped[0]
        got = 0
        while got < size - (1 << 20):
            got += len(whole.recv(1 << 20))
        for client in stopped:
            client.close()
        served(one)


def upload_keeper():
    path = scratch.file("spool", b"")

    def begin(*_):
        return {"ok": {}}, None, (os.open(path, os.O_RDWR | os.O_TRUNC),)

    keeper = Keeper(object_begin=begin)
    keeper.spool = path
    return keeper


@suite.case("an object goes straight into the keeper's file, whatever its framing")
def _():
    keeper = upload_keeper()
    content = os.urandom(3 << 20)
    with front(keeper) as one:
        for framing, body in ((b"Content-Length: %d\r\n" % len(content), content),
                              (b"Transfer-Encoding: chunked\r\n", b"%x\r\n" % len(content) + content + b"\r\n0\r\n\r\n"),
                              (b"Content-Length: 0\r\n", b"")):
            keeper.asked.clear()
            answer = exchange(one, b"PUT /v1/objects HTTP/1.1\r\n" + HOST + CLOSE + framing + b"\r\n" + body)
            equal(statuses(answer), [201])
            equal([asked[0] for asked in keeper.asked], ["object_begin", "object_seal"])
            with open(keeper.spool, "rb") as file:
                equal(file.read() == (content if body else b""), True, "the bytes")
        equal(statuses(exchange(one, b"PUT /v1/objects HTTP/1.1\r\n" + HOST + b"\r\n")), [411])


@suite.case("an expectation is met, or the refusal comes before the body")
def _():
    with front(Keeper()) as one:
        expect = b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        client, _ = one.connect()
        with client:
            client.sendall(b"POST /v1/runs HTTP/1.1\r\n" + HOST + CLOSE + JSON + expect)
            equal(statuses(client.recv(100)), [100])
            client.sendall(b"{}")
            equal(statuses(read_all(client)), [201])
        equal(statuses(exchange(one, b"POST /v1/runs HTTP/1.1\r\n" + HOST + CLOSE + expect)), [415])


@suite.case("a client that vanishes in its upload, or while it waits, is gone for the keeper too")
def _():
    keeper = upload_keeper()
    keeper.answers["run"] = lambda *_: None
    with front(keeper) as one:
        client, channel = one.connect()
        client.sendall(b"PUT /v1/objects HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1000)
        wait_until(lambda: keeper.asked, 10, "the upload began")
        client.close()
        wait_until(lambda: channel.fileno() < 0, 10, "the channel is closed")
        equal([asked[0] for asked in keeper.asked], ["object_begin"])
        client, channel = one.connect()
        client.sendall(get(b"/v1/runs/" + RUN.encode() + b"?wait_ms=60000"))
        wait_until(lambda: len(keeper.asked) == 2, 10, "it waits")
        client.close()
        wait_until(lambda: channel.fileno() < 0, 10, "the channel is closed")
        served(one)


@suite.case("a channel that the keeper closes ends its client alone: 503 to a question, the end to silence")
def _():
    keeper = Keeper(run=lambda *_: None)
    with front(keeper) as one:
        asking, asked = one.connect()
        silent, unasked = one.connect()
        silent.sendall(b"GET /v1/health HTTP/1.1\r\n" + HOST + b"\r\n")
        equal(statuses(read_head(silent)[0].encode()), [200])
        asking.sendall(get(b"/v1/runs/" + RUN.encode() + b"?wait_ms=60000"))
        wait_until(lambda: len(keeper.asked) == 2, 10, "it waits")
        asked.shutdown(socket.SHUT_RDWR)
        unasked.shutdown(socket.SHUT_RDWR)
        answer = read_all(asking)
        equal(statuses(answer), [503])
        holds(b"\r\nRetry-After: 1\r\n" in answer, "Retry-After")
        holds(not statuses(read_all(silent)), "not asked, not told")
        served(one)


ERRORS = [("invalid", 400), ("permission", 403), ("not_found", 404), ("conflict", 409), ("state", 409), ("unenforceable", 422),
          ("queue_full", 429), ("busy", 503), ("no_space", 507), ("io", 500), ("whatever", 500)]


@suite.case("an error of the keeper becomes a status, and keeps its words and its place")
def _():
    refusal = {}
    with front(Keeper(submit=lambda *_: (refusal,))) as one:
        for code, status in ERRORS:
            refusal.update({"error": code, "message": "why", "path": "$.limits"})
            answer = exchange(one, post(b"/v1/runs"))
            equal(statuses(answer), [status], code)
            equal(json.loads(answer.partition(b"\r\n\r\n")[2]), {"error": {"code": code, "message": "why", "path": "$.limits"}})
            equal(b"\r\nRetry-After: 1\r\n" in answer, status in (429, 503), code)
        refusal.clear()
        equal(statuses(exchange(one, post(b"/v1/runs"))), [500])


@suite.case("a manifest that fits into no message travels as a descriptor, one of more than 4 MiB not at all")
def _():
    got = []

    def submit(_message, document, fds):
        got.append(document if document is not None else os.pread(fds[0], 8 << 20, 0))
        return {"ok": {}}, b"{}"

    with front(Keeper(submit=submit)) as one:
        for size in (100, 192 * 1024, 192 * 1024 + 1, 4 << 20):
            equal(statuses(exchange(one, post(b"/v1/runs", b"x" * size))), [201])
            equal(got.pop(), b"x" * size)
        size = (4 << 20) + 1
        chunked = b"POST /v1/runs HTTP/1.1\r\n" + HOST + CLOSE + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
        answer = exchange(one, chunked + b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n")
        equal(statuses(answer), [413])
        equal(got, [])


@suite.case("many bodies at a time are bounded in memory: the last ones are told to come again")
def _():
    with front(Keeper()) as one:
        size = 4 << 20
        clients = [one.connect()[0] for _ in range(24)]
        before = resident_kb(one)
        for client in clients:
            client.sendall(b"POST /v1/runs HTTP/1.1\r\n" + HOST + CLOSE + JSON + b"Content-Length: %d\r\n\r\n" % size)
            client.sendall(b"x" * (size - 1))
        served(one)
        stays_small(one, before, 160 * 1024, "96 MiB of bodies")
        for client in clients:
            client.sendall(b"x")
        got = [statuses(read_all(client))[0] for client in clients]
        equal(sorted(set(got)), [201, 503])
        holds(got.count(201) >= 15, f"{got.count(201)} were taken")
        for client in clients:
            client.close()
        served(one)


@suite.case(f"{SLOW_CLIENTS} clients that send a byte now and then end in time, and nobody waits for them")
def _():
    raise_file_limit()
    with front(Keeper()) as one:
        slow = [one.connect()[0] for _ in range(SLOW_CLIENTS)]
        bodies = slow[:SLOW_CLIENTS // 2]
        for client in bodies:
            client.sendall(b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 1000\r\n\r\n")
        selector = selectors.DefaultSelector()
        for client in slow:
            selector.register(client, selectors.EVENT_READ)
        started, dripped, over = time.monotonic(), time.monotonic(), 0
        while over < len(slow):
            holds(time.monotonic() - started < patience(20), f"{len(slow) - over} slow clients are left")
            for key, _ in selector.select(0.2):
                try:
                    ended = not key.fileobj.recv(4096)
                except ConnectionError:
                    ended = True
                if ended:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    over += 1
            if time.monotonic() - dripped > 1:
                dripped = time.monotonic()
                for key in list(selector.get_map().values()):
                    try:
                        key.fileobj.send(b"X")
                    except OSError:
                        pass
            served(one)
        holds(time.monotonic() - started > 8, "not at once")


SEEDS = [get(b"/v1/runs/" + RUN.encode() + b"/artifact?path=a%20b", b"Range: bytes=0-9\r\n"), post(b"/v1/runs", b'{"a":1}'),
         get(b"/v1/runs?limit=10&cursor=5&owner=uid:0"), get(b"/v1/runs/" + RUN.encode() + b"/events", b"Last-Event-ID: 1-2\r\n"),
         post(b"/v1/workers/3/recover"), get(b"/v1/runs/" + RUN.encode() + b"/logs?stream=stdout&offset=1&wait_ms=2"),
         b"POST /v1/runs HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n0\r\nX: y\r\n\r\n",
         b"PUT /v1/objects HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nbytes",
         b"PUT /v1/trees HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n[]"]
SPICE = [
    b"\r\n", b"\n", b"\0", b" ", b"\t", b":", b"%00", b"%", b"?", b"&", b"=", b"/", b"..", b"\xff", b"0", b"-1", b"99999999999999999999",
    b"\r\n ", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: localhost\r\n", b"GET / HTTP/1.1\r\n\r\n",
]
SCHEMA = {
    "submit": {"idempotency_key"}, "list": {"limit", "cursor", "owner"}, "run": {"run", "wait_ms"}, "cancel": {"run"},
    "logs": {"run", "stream", "offset", "wait_ms"}, "artifacts": {"run"}, "artifact": {"run"},
    "events": {"run", "attempt", "seq", "wait_ms"}, "object_begin": set(), "object_seal": set(), "tree_seal": set(), "workers": set(),
    "recover": {"slot"}, "health": set(), "readiness": set(), "metrics": set(),
}


def mutated(random_source):
    data = bytearray(random_source.choice(SEEDS))
    for _ in range(random_source.randint(1, 4)):
        at, end = sorted(random_source.randrange(len(data) + 1) for _ in range(2))
        match random_source.randrange(5):
            case 0:
                data[at:at] = random_source.choice(SPICE)
            case 1:
                data[at:min(end, at + 20)] = b""
            case 2:
                data[at:at] = data[at:min(end, at + 40)]
            case 3:
                data[at:at + 1] = bytes([random_source.randrange(256)])
            case 4:
                data = data + bytearray(random_source.choice(SEEDS))
    return bytes(data)


@suite.case(f"{MUTANTS} mutated requests: the front lives, and asks nothing that it may not")
def _():
    keeper = upload_keeper()
    keeper.answers.update(events=({"ok": {"attempt": 1, "seq": 1, "end": True}}, b"id: 1-1\n\n"),
                          artifact=({"error": "not_found", "message": ""},))
    source = random.Random(1)
    with front(keeper) as one:
        for _ in range(MUTANTS // MUTANTS_AT_ONCE):
            clients = [one.connect()[0] for _ in range(MUTANTS_AT_ONCE)]
            for client in clients:
                with contextlib.suppress(BrokenPipeError):
                    client.sendall(mutated(source))
            served(one)  # and with it, what came before
            for client in clients:
                client.close()
        equal(one.process.poll(), None)
        served(one)
    for op, message, _ in keeper.asked:
        holds(op in SCHEMA and set(message) - {"op"} <= SCHEMA[op], f"{message}")
        holds(re.fullmatch("[a-z0-9-]{1,31}", message.get("run", "run-a")), f"{message}")
    holds(len({op for op, _, _ in keeper.asked}) >= 8, "not all of them are refused at the door")


class EventKeeper:
    """Has numbered events of 8 KiB, up to the last that happened."""

    TAIL = 10000
    PIECE = b"id: 1-%d\nevent: tick\ndata: " + b"x" * 8000 + b"\n\n"

    def __init__(self, last):
        self.now, self.last = 0, last
        self.lock = threading.Lock()

    def piece(self, seq):
        if seq >= self.now:
            return None
        return {"ok": {"attempt": 1, "seq": seq + 1, "end": seq + 1 == self.last}}, self.PIECE % (seq + 1)


@suite.case(f"{EVENT_CLIENTS} clients follow one run, one of them never reads: the others miss nothing, the memory is bounded",
            timeout=120)
def _():
    raise_file_limit()
    events = 40
    keeper = EventKeeper(events)
    waiting, asked = {}, {}

    def answer(_op, message, _document, _fds):
        # Answered here when there is something to say; else parked by its run, which names the client.
        with keeper.lock:
            client = message["run"]
            asked[client] = asked.get(client, 0) + 1
            piece = keeper.piece(message["seq"])
            if piece is None:
                waiting[client] = message["seq"]
            return piece

    with front(answer) as one:
        before = resident_kb(one)
        clients, channels = {}, {}
        for i in range(EVENT_CLIENTS):
            client, channel = one.connect()
            clients[f"run-{i}"], channels[f"run-{i}"] = client, channel
            client.sendall(b"GET /v1/runs/run-%d/events HTTP/1.1\r\n" % i + HOST + CLOSE + b"\r\n")
        deaf = "run-500"
        received = dict.fromkeys(clients, b"")
        selector = selectors.DefaultSelector()
        for name, client in clients.items():
            if name != deaf:
                selector.register(client, selectors.EVENT_READ, name)

        def publish():
            with keeper.lock:
                keeper.now += 1
                for name in list(waiting):
                    send(channels[name], *keeper.piece(waiting.pop(name)))

        open_clients, worst = EVENT_CLIENTS - 1, 0.0
        published = 0
        while open_clients:
            if published < events:
                wait_until(lambda: len(waiting) >= open_clients, 30, "all others are waiting again")
                started = time.monotonic()
                publish()
                published += 1
            got = 0
            while got < open_clients:
                for key, _ in selector.select(harness.patience(30)):
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                        open_clients -= 1
                        continue
                    received[key.data] += data
                    whole = data.endswith((b"\n\n\r\n", b"0\r\n\r\n"))
                    if whole and b"id: 1-%d\n" % published in received[key.data][-EventKeeper.TAIL:]:
                        got += 1
                if published == events and not selector.get_map():
                    break
            worst = max(worst, time.monotonic() - started)
        grown = stays_small(one, before, 64 * 1024, f"{EVENT_CLIENTS} streams")
        print(f"# {EVENT_CLIENTS} clients, {events} events: worst {worst * 1000:.0f} ms to all of them, {grown} KiB more resident")
        for name, data in received.items():
            if name != deaf:
                equal([int(n) for n in re.findall(rb"id: 1-(\d+)\n", data)], list(range(1, events + 1)), name)
        # A socket's buffer is what it was sent; beyond that the front does not even ask.
        holds(asked[deaf] < events - 5, f"{asked[deaf]} questions for the one who never reads")


if __name__ == "__main__":
    sys.exit(suite.main())
