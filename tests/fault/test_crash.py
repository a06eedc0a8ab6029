#!/usr/bin/python3
"""test_crash.py - a part of the crash matrix (crash.py has all of it): a kill at every fault point of the code, in each mode; and with `run`, and at
some with `serve`, a failure, a stop or a delay as well. The program changes from point to point.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fault import matrix, points  # noqa: E402
from support import harness, proc  # noqa: E402
from support.caisson import TOP  # noqa: E402
from support.harness import equal, holds  # noqa: E402

suite = harness.Suite("crash")
totals = matrix.Totals()


def second_action(number, point):
    """What is done at a point besides the kill."""
    if point.fails and number % 2:
        return ("eio", "enospc")[number // 2 % 2]
    return ("group", "stop", "delay_50")[number % 3]


def actions(mode_name, number, point):
    """A round of serve takes its time: a keeper is started and stopped for each."""
    return ["kill"] if mode_name == "serve" and number % 3 else ["kill", second_action(number, point)]


def play(mode_name, number, point):
    mode = matrix.MODES[mode_name]()
    program = point.programs[number % len(point.programs)]
    troubles = []
    for action in actions(mode_name, number, point):
        played = matrix.Round(mode, point, action, program)
        verdict = played.play()
        totals.add(played)
        troubles += [f"{played}: {text}" for text in verdict.troubles()]
    holds(not troubles, "\n".join(troubles))


for _mode in matrix.MODES:
    for _number, _point in enumerate(points.of_mode(_mode)):
        suite.add(f"{_mode} {_point.faults} {_point.name} in the {_point.process}, {'/'.join(_point.programs)}",
                  lambda mode=_mode, number=_number, point=_point: play(mode, number, point))


@suite.case("every fault of the catalogue has its point, its own test, or belongs to a boundary that there is not")
def _():
    by_point = {fault for point in points.POINTS for fault in point.faults.split()}
    for fault, place in points.ELSEWHERE.items():
        with open(os.path.join(TOP, "tests", place), encoding="utf-8") as file:
            holds(re.search(rf"\b{fault}\b", file.read()), f"{place} speaks of {fault}")
    of_serve = set() if "serve" in matrix.MODES else {"FP03"}
    equal(sorted(by_point | set(points.ELSEWHERE) | points.DOCKER | of_serve), sorted(points.FAULTS))
    equal(sorted((by_point | set(points.ELSEWHERE)) & points.DOCKER), [])


@suite.case("every fault point of the code is in the matrix, or is met by name in another test")
def _():
    in_code = set()
    for folder, _, names in os.walk(os.path.join(TOP, "src")):
        for name in names:
            if name.endswith(".c"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    in_code |= set(re.findall(r'FAULT(?:_ERR)?\("([a-z_.]+)"', file.read()))
    if "serve" not in matrix.MODES:
        in_code = {name for name in in_code if not name.startswith("serve.")}
    in_matrix = {point.name.split("@")[0] for point in points.POINTS}
    elsewhere = set()
    for folder, _, names in os.walk(os.path.join(TOP, "tests")):
        for name in names:
            if name.endswith(".py") and name != "points.py":
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text = file.read()
                    elsewhere |= {point for point in in_code if point in text}
    equal(sorted(in_code - in_matrix - elsewhere), [])
    equal(sorted(in_matrix - in_code), [])


@suite.at_end
def print_totals():
    print(f"# {totals}")


if __name__ == "__main__":
    proc.become_subreaper()
    sys.exit(suite.main())
