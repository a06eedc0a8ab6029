#!/usr/bin/python3
"""suites.py - runs, inside the machine, the suites that it is told to; what each prints stands between two marks."""

import os
import subprocess
import sys

TOP = "/caisson"
TESTS = TOP + "/tests"
PYTHON = "/usr/bin/python3"

ENVIRONMENT = {
    "CAISSON_BIN": TOP + "/build/caisson",
    "CAISSON_FAULT_BIN": TOP + "/build-fault/caisson",
    "CAISSON_INIT": TOP + "/build/caisson-init",
    "CAISSON_TEST_GUESTS": TOP + "/guests",
    "CMOCKA_MESSAGE_OUTPUT": "TAP",
    # An emulated machine is slower, and its host has other work to do: fewer rounds, longer patience.
    "CAISSON_TEST_SLOWNESS": "8",
    "CAISSON_TEST_REPEATS": "1",
    "CAISSON_TEST_EARLY_KILLS": "10",
    "CAISSON_TEST_AT_ONCE": "6",
    "CAISSON_TEST_DYING_RUNS": "20",
    "CAISSON_TEST_DISK_MIB": "320",
    # It is thrown away: cases that would endanger a host may run.
    "CAISSON_TEST_OWN_MACHINE": "1",
}

# The cases that a kernel or a layout of cgroups could decide otherwise. What happens to bytes of output is the same everywhere.
CORE_CLI = ("exit 137", "kill -9", "memory beyond", "sleep 60 under", "is not there", "keeps the outputs open", "handles closed",
            "ignores TERM", "doctor", "share a uid", "anonymous memory")
CORE_HOSTILE = ("H01", "H02", "H03", "H10", "H15", "H16", "H18", "H22", "H23", "H36", "H37", "H38", "H39", "H40", "H41", "H43", "H45", "H48",
                "H50", "H51", "H94", "H99")
MORE_HOSTILE = ("H05", "H06", "H07", "H08", "H14", "H17", "H19", "H21", "H24", "H27", "H35", "H42", "H61", "H84", "H85", "H86", "H87", "H88",
                "H89", "H90", "H91", "H92", "H95", "H96")
# The rest of the corpus. Of H12 only what needs a machine of its own: there is no strace here.
REST_HOSTILE = ("H09 ", "H11 ", "H12 shapes.c pids: a number", "H20 ", "H26 ", "H31 ", "H32 ", "H34 ", "H44 ", "H47 ", "H49 ",
                "H46 ", "H52 ", "H73 ", "H74 ", "H78 ", "H82 ", "H83 ", "H93 ", "H100 ", "H101 ", "H102 ", "H103 ", "H104 ")

HOSTILE = [PYTHON, TESTS + "/hostile/test_hostile.py"]
AS_USER = ["/usr/bin/env", "CAISSON_TEST_AS=54322"]
# Of those, what a user's guest could do otherwise than root's.
USER_HOSTILE = ("H10", "H18", "H36", "H48", "H50", "H94")
POWER_CUT = [PYTHON, TESTS + "/vm/guest/power_cut.py"]
LOST_CACHE = [PYTHON, TESTS + "/vm/guest/lost_cache.py"]
SUITES = {
    "contract": [TOP + "/build/contract_linux"],
    "cli": [PYTHON, TESTS + "/system/test_cli.py"],
    "cli-core": [PYTHON, TESTS + "/system/test_cli.py", *CORE_CLI],
    "evidence-limits": [PYTHON, TESTS + "/system/test_evidence.py", "limit.", "cgroup.unified", "without pin"],
    "pin": [PYTHON, TESTS + "/system/test_pin.py"],
    "scratch": [PYTHON, TESTS + "/system/test_scratch.py", "one file system", "full space", "nosuid", "inputs", "eight at once", "kill -9"],
    "bare": [PYTHON, TESTS + "/vm/guest/bare.py"],
    "hostile": HOSTILE + [identity + " " for identity in sorted(CORE_HOSTILE + MORE_HOSTILE)],
    "hostile-core": HOSTILE + [identity + " " for identity in CORE_HOSTILE],
    "hostile-rest": HOSTILE + list(REST_HOSTILE),
    "contract-user": ["/usr/bin/env", "CAISSON_CONTRACT_UID=54321", TOP + "/build/contract_linux"],
    "hostile-user": AS_USER + HOSTILE + [identity + " " for identity in USER_HOSTILE],
    "rootless": [PYTHON, TESTS + "/system/test_rootless.py"],
    "systemd-root": [PYTHON, TESTS + "/vm/guest/systemd.py", "root"],
    "systemd-user": [PYTHON, TESTS + "/vm/guest/systemd.py", "user"],
    "before-cut": POWER_CUT + ["before"],
    "after-cut": POWER_CUT,
    "before-lost": LOST_CACHE + ["before"],
    "after-lost": LOST_CACHE,
}


def main():
    environment = {**os.environ, **ENVIRONMENT}
    for name in sys.argv[1].split(","):
        print(f"=== begin {name}", flush=True)
        status = subprocess.run(SUITES[name], env=environment, check=False, stderr=subprocess.STDOUT).returncode
        print(f"=== end {name} {status}", flush=True)
    print("=== done", flush=True)


if __name__ == "__main__":
    sys.exit(main())
