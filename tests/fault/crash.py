#!/usr/bin/python3
"""crash.py - the whole crash matrix: every fault point, every action, every program, every mode.

    tests/fault/crash.py [--mode run] [--action kill] [--every N] [POINT …]
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fault import matrix, points  # noqa: E402
from support import proc  # noqa: E402

ACTIONS = ("kill", "group", "eio", "enospc", "stop", "delay_50")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=matrix.MODES, action="append")
    parser.add_argument("--action", choices=ACTIONS, action="append")
    parser.add_argument("--program", action="append")
    parser.add_argument("point", nargs="*")
    options = parser.parse_args()
    proc.become_subreaper()
    totals = matrix.Totals()
    for mode_name in options.mode or matrix.MODES:
        for point in points.of_mode(mode_name):
            if options.point and not any(word in point.name for word in options.point):
                continue
            mode = matrix.MODES[mode_name]()
            for action in options.action or ACTIONS:
                for program in point.programs:
                    if options.program and program not in options.program:
                        continue
                    played = matrix.Round(mode, point, action, program)
                    verdict = played.play()
                    totals.add(played)
                    print(f"{played}: {'; '.join(verdict.troubles()) or 'ok'} ({verdict.seconds * 1000:.0f} ms)", flush=True)
    print(totals)
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
