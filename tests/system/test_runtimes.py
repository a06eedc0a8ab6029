#!/usr/bin/python3
"""test_runtimes.py - the runtimes that people use work inside as they are, with the default limits or with the ones named here."""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import guests, harness, proc, scratch  # noqa: E402
from support.caisson import Caisson  # noqa: E402
from support.harness import equal  # noqa: E402
from support.invariants import Watch  # noqa: E402

suite = harness.Suite("runtimes")

HELLO_C = '#include <stdio.h>\nint main(void) { puts("hello from C"); return 0; }\n'
HELLO_CPP = '#include <iostream>\n#include <vector>\nint main() { std::vector<int> v{1, 2}; std::cout << v.size() << std::endl; }\n'
POOL_PY = """
from multiprocessing import Pool

def square(n):
    return n * n

if __name__ == "__main__":
    with Pool(4) as pool:
        print(sum(pool.map(square, range(100))))
"""
SERVER_PY = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))

def serve():
    connection, _ = server.accept()
    connection.sendall(connection.recv(100).upper())
    connection.close()

threading.Thread(target=serve).start()
client = socket.create_connection(server.getsockname())
client.sendall(b"over loopback")
print(client.recv(100).decode())
"""
HELLO_JAVA = 'class Hello { public static void main(String[] a) throws Exception { System.out.println("hello from Java"); } }\n'
HELLO_JS = "setTimeout(() => console.log('hello from node', [1, 2, 3].map(x => x * 2).join()), 10);\n"
ASAN_C = """
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	char *p = malloc(16);
	memset(p, argc, 16);
	if (argc > 1)
		p[atoi(argv[1])] = 0;
	puts("checked");
	free(p);
	return 0;
}
"""


def need(*programs):
    for program in programs:
        if not shutil.which(program, path="/usr/bin:/bin"):
            raise harness.Skip(f"{program} is not installed")


def succeeds(argv, output, files=(), options=(), modes=0o644):
    caisson = Caisson()
    inputs = []
    for name, content in files:
        inputs += ["--input", f"{scratch.file(name, content, modes)}:/box/{name}"]
    watch = Watch(caisson)
    result = caisson.run(*argv, options=(*options, *inputs))
    equal((result.word(), result.text), ("OK", output), str(result))
    watch.hold(result)


@suite.case("gcc through cc: compile, link and run, default limits")
def _():
    need("cc")
    succeeds(("sh", "-c", "cc -O2 -o /tmp/a /box/a.c && /tmp/a"), "hello from C\n", [("a.c", HELLO_C)])


@suite.case("g++, 512 MiB")
def _():
    need("g++")
    succeeds(("sh", "-c", "g++ -o /tmp/a /box/a.cpp && /tmp/a"), "2\n", [("a.cpp", HELLO_CPP)],
             ("--memory", "512M", "--wall", "30s"))


@suite.case("python3 with a process pool, default limits")
def _():
    need("python3")
    succeeds(("python3", "/box/pool.py"), "328350\n", [("pool.py", POOL_PY)])


@suite.case("node, default limits")
def _():
    need("node")
    succeeds(("node", "/box/a.js"), "hello from node 2,4,6\n", [("a.js", HELLO_JS)])


@suite.case("java from source, 1 GiB and 30 s")
def _():
    need("java", "javac")
    succeeds(("java", "/box/Hello.java"), "hello from Java\n", [("Hello.java", HELLO_JAVA)], ("--memory", "1G", "--wall", "30s"))


@suite.case("a program built with ASan, default limits; what it finds is its own exit code")
def _():
    need("cc")
    path = guests.compile_text(ASAN_C, "asan.c", flags=("-fsanitize=address", "-g"))
    caisson = Caisson()
    options = ("--input", f"{path}:/box/prog")
    watch = Watch(caisson)
    clean = caisson.run("/box/prog", options=options)
    equal((clean.word(), clean.text), ("OK", "checked\n"), str(clean))
    caught = caisson.run("/box/prog", "16", options=options)
    equal(caught.word(), "NZ(1)", str(caught))
    harness.holds(b"heap-buffer-overflow" in caught.guest_stderr, f"{caught.guest_stderr[:300]!r}")
    watch.hold(caught)


@suite.case("a static binary, default limits")
def _():
    path = guests.compile_text(HELLO_C, "static.c", flags=("-static",))
    caisson = Caisson()
    watch = Watch(caisson)
    result = caisson.run("/box/prog", options=("--input", f"{path}:/box/prog"))
    equal((result.word(), result.text), ("OK", "hello from C\n"), str(result))
    watch.hold(result)


@suite.case("a shell pipeline, default limits")
def _():
    succeeds(("sh", "-c", "seq 1 1000 | sort -rn | awk '{s+=$1} END {print s}' | tee /tmp/sum | cat"), "500500\n")
    need("bash")
    succeeds(("bash", "-c", "diff <(seq 3) <(seq 4) | grep -c '^>'"), "1\n")


@suite.case("client and server over 127.0.0.1, default limits")
def _():
    need("python3")
    succeeds(("python3", "/box/server.py"), "OVER LOOPBACK\n", [("server.py", SERVER_PY)])


@suite.case("programs that look at their host in /etc and at themselves in /proc")
def _():
    succeeds(("sh", "-c", "id -un; hostname; getent hosts localhost | grep -c . ; cat /proc/self/comm; date +%Z"),
             "guest\ncaisson\n1\ncat\nUTC\n")


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
