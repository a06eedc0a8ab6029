#!/usr/bin/env python3
"""bench.py - what a cold `caisson run -- /bin/true` costs, against bubblewrap, runc and a bare exec of the same program.

All of them give /bin/true the same view (read-only /usr, /proc, a small /dev, tmpfs on /tmp, /box and /dev/shm, a few files of
/etc, a hostname of its own, no network) as uid 1000 in a session of its own. Caisson does more in that time: limits in cgroups
read back, a seccomp filter, a durable ledger, a signed receipt, and the proof that nothing is left. The runs are interleaved by
pairs.c; each figure comes with its number of runs and its spread. One round of floor.c as a process of its own says how little the
system calls of a boundary and two durable writes alone can take. Then breakdown.py says where the time goes, least.py what bare programs
need for the same steps in the same order, and processor.py how much of the processors it takes: beside a run on the recording
boundary, which is all but the boundary.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

import breakdown
import least
import processor

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
WORK = os.path.join(TOP, "build", "bench")
PAIRS = os.path.join(WORK, "pairs")
PROGRAM = "/bin/true"
GOALS = {"bwrap": 0.8, "runc": 0.25}  # caisson's median must be at most this much of theirs

ETC_OWN = {
    "passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nguest:x:1000:1000:guest:/box:/bin/sh\n",
    "group": "root:x:0:\nguest:x:1000:\n",
    "hosts": "127.0.0.1 localhost caisson\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
ETC_HOST = ["ld.so.cache", "localtime", "alternatives", "ssl/certs"]
LINKS = ["bin", "sbin", "lib", "lib64"]


def etc_sources():
    """[(path on the host, path inside)]"""
    own = [(os.path.join(WORK, "etc", name), f"/etc/{name}") for name in ETC_OWN]
    return own + [(os.path.realpath(f"/etc/{name}"), f"/etc/{name}") for name in ETC_HOST if os.path.exists(f"/etc/{name}")]


def compile_tool(name, *libraries):
    program = os.path.join(WORK, name)
    source = os.path.join(TOP, "tests", "bench", f"{name}.c")
    subprocess.run(["cc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", source, "-o", program, *libraries],
                   check=True)
    return program


def prepare():
    """What the commands need and must not be timed: the timing loop, the files of /etc, a ledger."""
    os.umask(0o022)
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(os.path.join(WORK, "etc"))
    os.mkdir(os.path.join(WORK, "ledger"), 0o700)
    for name, text in ETC_OWN.items():
        with open(os.path.join(WORK, "etc", name), "w", encoding="utf-8") as file:
            file.write(text)
    compile_tool("pairs")


def caisson(profile="linux"):
    return [os.path.join(TOP, "build", "caisson"), "run", "--profile", profile, "--ledger", os.path.join(WORK, "ledger"), "--", PROGRAM]


def bwrap():
    words = [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", "--hostname", "caisson", "--uid", "1000",
             "--gid", "1000", "--clearenv", "--setenv", "PATH", "/usr/bin", "--ro-bind", "/usr", "/usr"]
    for name in LINKS:
        if os.path.islink(f"/{name}"):
            words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    for source, target in etc_sources():
        words += ["--ro-bind", source, target]
    return words + ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/box", "--tmpfs", "/dev/shm", "--chdir", "/box",
                    "--cap-drop", "ALL", "--", PROGRAM]


def runc_mount(kind, target, source=None, options=()):
    return {"type": kind, "destination": target, "source": source or kind, "options": list(options)}


def runc_bundle():
    """A bundle of the same view; the namespaces are those of bwrap --unshare-all."""
    bundle = os.path.join(WORK, "bundle")
    rootfs = os.path.join(bundle, "rootfs")
    for name in ("usr", "proc", "dev", "tmp", "box"):
        os.makedirs(os.path.join(rootfs, name))
    for source, target in etc_sources():  # runc's root in the user namespace may not make them here
        place = rootfs + target
        os.makedirs(place if os.path.isdir(source) else os.path.dirname(place), exist_ok=True)
        if not os.path.isdir(source):
            with open(place, "wb"):
                pass
    for name in LINKS:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), os.path.join(rootfs, name))
    mounts = [runc_mount("proc", "/proc"), runc_mount("tmpfs", "/dev", options=["nosuid", "mode=755", "size=64k"]),
              runc_mount("devpts", "/dev/pts", options=["newinstance", "ptmxmode=0666", "mode=0620"]),
              runc_mount("bind", "/usr", "/usr", ["rbind", "ro"])]
    mounts += [runc_mount("tmpfs", target, options=["nosuid", "nodev"]) for target in ("/dev/shm", "/tmp", "/box")]
    mounts += [runc_mount("bind", target, source, ["rbind", "ro"]) for source, target in etc_sources()]
    identity = [{"containerID": 0, "hostID": 200000, "size": 65536}]
    config = {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 1000, "gid": 1000}, "args": [PROGRAM], "env": ["PATH=/usr/bin"], "cwd": "/box",
                    "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "caisson",
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "user", "cgroup")],
                  "uidMappings": identity, "gidMappings": identity},
    }
    with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return bundle


def runc():
    program = shutil.which("runc") or "/usr/sbin/runc"
    return [program, "--root", os.path.join(WORK, "runc"), "run", "--bundle", runc_bundle(), f"caisson-bench-{os.getpid()}"]


def measure(commands, rounds):
    """name -> [milliseconds], or an end with the name of the command that failed."""
    words = [PAIRS, str(rounds)]
    for command in commands.values():
        words += command + [":::"]
    done = subprocess.run(words[:-1], stdout=subprocess.PIPE, text=True, check=False, env={"PATH": os.environ["PATH"]})
    names = list(commands)
    times = {name: [] for name in names}
    for line in done.stdout.splitlines():
        index, took_ns, status = map(int, line.split())
        if status != 0:
            sys.exit(f"bench: {names[index]} failed with wait status {status}: {' '.join(commands[names[index]])}")
        times[names[index]].append(took_ns / 1e6)
    if done.returncode != 0:
        sys.exit("bench: the timing loop failed")
    return times


def report(times):
    print(f"{PROGRAM} on {platform.release()}, {os.cpu_count()} CPUs; milliseconds from spawn to reaped")
    print(f"{'':8} {'n':>5} {'median':>8} {'p10':>8} {'p90':>8} {'min':>8} {'max':>8}")
    for name, values in times.items():
        tenths = statistics.quantiles(values, n=10)
        print(f"{name:8} {len(values):5} {statistics.median(values):8.2f} {tenths[0]:8.2f} {tenths[-1]:8.2f} {min(values):8.2f} "
              f"{max(values):8.2f}")
    met = True
    for other, goal in GOALS.items():
        ratio = statistics.median(times["caisson"]) / statistics.median(times[other])
        pairs = sum(ours <= goal * theirs for ours, theirs in zip(times["caisson"], times[other]))
        print(f"caisson / {other}: {ratio:.2f} (goal <= {goal}): {'met' if ratio <= goal else 'MISSED'}; "
              f"in {pairs} of {len(times[other])} pairs")
        met = met and ratio <= goal
    print(f"floor / bwrap: {statistics.median(times['floor']) / statistics.median(times['bwrap']):.2f}; "
          f"caisson - floor: {statistics.median(times['caisson']) - statistics.median(times['floor']):.2f} ms")
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=60, help="rounds, each with one run of every command (at least 50)")
    options = parser.parse_args()
    if options.pairs < 50:
        parser.error("fewer than 50 pairs say little")
    prepare()
    floor = [compile_tool("floor"), os.path.join(WORK, "ledger"), PROGRAM, "once"]
    commands = {"caisson": caisson(), "floor": floor, "bwrap": bwrap(), "runc": runc(), "bare": [PROGRAM]}
    times = measure(commands, options.pairs)
    met = report(times)
    wall_ms = {name: statistics.median(values) for name, values in times.items()}
    print()
    steps = breakdown.measure(commands["caisson"][0], os.path.join(WORK, "ledger"), PROGRAM, options.pairs)
    breakdown.report(steps)
    print()
    compile_tool("transactions", "-Wl,-z,now", "-Wl,-Bstatic", "-lsqlite3", "-Wl,-Bdynamic", "-lm")
    least.report(*least.measure(WORK, commands, PROGRAM, options.pairs),
                 {name: statistics.median(values) for name, values in steps.items()}, GOALS)
    print()
    commands["recording"] = caisson("recording")
    processor.report(*processor.measure(commands), wall_ms, GOALS)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
