#!/usr/bin/python3
"""full_disk.py - a ledger on a disk that is full: run in a mount namespace of its own (unshare -m), it mounts small tmpfs there.

For each size: a program runs, meets the end of the space wherever that comes, and must not get a wrong verdict for it; then the disk becomes
larger, and everything works again. Prints a line for each size, and FAILED with what did not hold.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fault import matrix  # noqa: E402
from support import proc, scratch  # noqa: E402
from support.caisson import Caisson  # noqa: E402

# KiB: from one that has no room for the ledger to one that has room for everything.
SIZES_KIB = (40, 100, 160, 200, 240, 280, 320, 360, 400, 440, 480, 520, 600, 800)
ENOUGH = "size=64m"


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def trouble_at(size_kib, program):
    """What did not hold, or None; and the word of the run."""
    place = scratch.directory("disk")
    mount("-t", "tmpfs", "-o", f"size={size_kib}k,mode=0700", "tmpfs", place)
    try:
        caisson = Caisson(ledger=os.path.join(place, "ledger"))
        os.mkdir(caisson.ledger, 0o700)
        guest = matrix.program(program, "nonce", False)
        result = caisson.run(*guest.argv, options=guest.options)
        word = result.word()
        if word not in ("OK", "SBX_ERR", "REJECTED") or (word == "OK") != (result.status == 0):
            return f"{result}", word
        if result.receipt is None and b"full" not in result.stderr and b"space" not in result.stderr:
            return f"no reason is given: {result}", word
        mount("-o", f"remount,{ENOUGH}", place)
        steps = (caisson.recover(), caisson.run(*guest.argv, options=guest.options), caisson.verify(), caisson.call("fsck"))
        return next((f"with space again: {step}" for step in steps if step.status != 0), None), word
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def main():
    proc.become_subreaper()
    failed = 0
    for program in ("quick", "loud", "fork"):
        for size in SIZES_KIB:
            trouble, word = trouble_at(size, program)
            print(f"{program} on {size} KiB: {word}")
            if trouble:
                failed += 1
                print(f"FAILED {trouble}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
