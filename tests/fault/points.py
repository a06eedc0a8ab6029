"""points.py - where Caisson dies, stops or fails, and what must be true afterwards: one row a fault point of the code.

FAULTS is the catalogue: every fault that the design names, by its id. A row of POINTS tells which of them its point stands for, which process
passes it and how far the run has come there; the outcome follows from that by the rules below (kill_outcome, failure_outcome), so that no
row can be talked into a verdict of its own without saying so.
"""

import dataclasses

FAULTS = {
    "FP01": "before the accept commit",
    "FP02": "after the accept commit, before the reply",
    "FP03": "after the reply, before the claim",
    "FP04": "after the lease commit, no side effect yet",
    "FP05": "work directory made, not recorded",
    "FP06": "inputs half copied",
    "FP07": "cgroup made, not recorded",
    "FP08": "only some limits written",
    "FP09": "child cloned into its cgroup, not recorded",
    "FP10": "child waits at the gate, its parent dies",
    "FP11": "launch intent committed, gate not opened",
    "FP12": "gate opened, launch intent not committed: impossible by order",
    "FP13": "supervisor dies in the middle of the run",
    "FP14": "keeper dies, worker lives",
    "FP15": "reboot in the middle of the run",
    "FP16": "limit hit in memory, not recorded",
    "FP17": "after the kill, before the group is empty",
    "FP18": "all dead, usage unread",
    "FP19": "cgroup removed, no result row",
    "FP20": "exit status read, not committed",
    "FP21": "captured stream written, not synced",
    "FP22": "copy into the store half done",
    "FP23": "object named, directory not synced",
    "FP24": "artifacts in the store, no result row",
    "FP25": "result committed, leftovers not removed",
    "FP26": "result committed, notice not sent",
    "FP27": "inside of COMMIT",
    "FP28": "power cut behind an acknowledged commit",
    "FP29": "during a checkpoint",
    "FP30": "during a schema migration",
    "FP31": "keeper stopped beyond its lease, then continued",
    "FP32": "second keeper on the same ledger",
    "FP33": "cancellation committed, kill not done",
    "FP34": "cancellation behind the result's commit",
    "FP35": "container created, id not recorded",
    "FP36": "reply to create lost",
    "FP37": "engine start done, not recorded",
    "FP38": "engine restarts in the middle of the run",
    "FP39": "engine hangs",
    "FP40": "container exited, its stream cut",
    "FP41": "main exited in a container, artifacts not collected",
    "FP42": "artifacts copied out of a container that is not removed",
    "FP43": "engine says that a removal is in progress",
    "FP44": "image pruned between look-up and create",
    "FP45": "network or volume made, container not",
    "FP46": "reboot under an engine",
    "FP47": "disk full",
    "FP48": "a process number that belongs to somebody else by now",
    "FP49": "wall clock stepped across a restart",
    "FP50": "recovery dies at each of its own steps",
}
DOCKER = {f"FP{number}" for number in range(35, 47)}  # there is no such boundary in this version
# Those that no point of the code stands for, and the test that does.
ELSEWHERE = {
    "FP12": "fault/test_faults.py",
    "FP15": "vm/guest/power_cut.py",
    "FP27": "fault/test_faults.py",
    "FP28": "vm/guest/power_cut.py",
    "FP29": "fault/test_faults.py",
    "FP30": "fault/test_faults.py",
    "FP31": "system/test_leases.py",
    "FP32": "fault/test_faults.py",
    "FP34": "fault/test_faults.py",
    "FP47": "fault/test_faults.py",
    "FP48": "fault/test_faults.py",
    "FP49": "vm/guest/power_cut.py",
    "FP50": "fault/test_faults.py",
}

# How far a run has come: nothing of it is recorded; accepted; its launch intent is durable; the keeper has heard main's end; sealed.
NOTHING, ACCEPTED, INTENT, ENDED, SEALED = range(5)

NO_RUN, NATURAL = "no run", "its own"  # outcomes that are no verdict: nothing was accepted; the verdict that it has without a fault


@dataclasses.dataclass(frozen=True)
class Point:
    """process: who passes it. fails: what becomes of the run when the point answers with an error; None for a point that only marks a
    moment. programs: those that come by. killed: what becomes of it when that process dies, where the rule does not say it. modes: where
    there is such a point."""
    faults: str
    name: str
    process: str
    phase: int
    fails: str = None
    programs: tuple = ("quick", "long", "fork")
    killed: str = None
    modes: tuple = ("run", "serve")

    @property
    def before_end(self):
        """Is it passed while the guest has yet to end, or to start?"""
        return self.phase < INTENT or self.name in ("run.intent", "linux.launched", "worker.launched", "run.launched")


ENDING = ("quick", "fork")  # a run that ends by itself

POINTS = (
    # Up to the acceptance: the keeper alone.
    Point("FP06", "store.copying@2", "keeper", NOTHING, NO_RUN, ("input",)),
    Point("FP06", "store.synced", "keeper", NOTHING, NO_RUN, ("input",)),
    Point("FP06", "store.named", "keeper", NOTHING, None, ("input",)),
    Point("FP06", "store.laid_out", "keeper", NOTHING, NO_RUN, ("tree",), modes=("run",)),
    Point("FP01", "run.accepting", "keeper", NOTHING, NO_RUN, modes=("run",)),
    Point("FP02 FP04", "run.accepted", "keeper", ACCEPTED, modes=("run",)),
    Point("FP01", "serve.submitting", "keeper", NOTHING, NO_RUN, modes=("serve",)),
    Point("FP02", "serve.submitted", "keeper", ACCEPTED, modes=("serve",)),
    Point("FP03", "serve.claiming", "keeper", ACCEPTED, modes=("serve",)),
    Point("FP04", "serve.claimed", "keeper", ACCEPTED, modes=("serve",)),
    # Preparation.
    Point("FP04", "worker.preparing", "worker", ACCEPTED, "not_launched"),
    Point("FP07", "linux.grouped", "worker", ACCEPTED, "not_launched"),
    Point("FP08", "linux.limited", "worker", ACCEPTED, "not_launched"),
    Point("FP05", "linux.viewed", "worker", ACCEPTED, "not_launched"),
    Point("FP05 FP07", "run.preparing", "keeper", ACCEPTED, "not_launched"),
    Point("FP09", "linux.cloned", "worker", ACCEPTED, "not_launched"),
    Point("FP09", "worker.suspended", "worker", ACCEPTED, "not_launched"),
    Point("FP09 FP10", "run.suspended", "keeper", ACCEPTED, "not_launched"),
    Point("FP10", "worker.enrolled", "worker", ACCEPTED, "not_launched"),
    Point("FP10", "run.enrolled", "keeper", ACCEPTED, "not_launched"),
    # The launch.
    Point("FP11", "run.intent", "keeper", INTENT, "not_launched"),
    Point("FP13", "linux.launched", "worker", INTENT, "interrupted"),
    Point("FP13", "worker.launched", "worker", INTENT),
    Point("FP13 FP14", "run.launched", "keeper", INTENT),
    Point("FP33", "run.cancelled", "keeper", INTENT, None, ("cancel",), NATURAL),
    Point("FP16", "run.killing", "keeper", INTENT, None, ("long",)),
    # The end.
    Point("FP20", "worker.exited", "worker", INTENT, "boundary_error", ENDING),
    Point("FP20", "worker.exited", "worker", ENDED, "boundary_error", ("long",)),
    Point("FP20", "run.exited", "keeper", ENDED),
    Point("FP20", "run.drained", "keeper", ENDED, "boundary_error"),
    Point("FP17", "worker.cleaning", "worker", ENDED, "boundary_error"),
    Point("FP17", "linux.cleanup", "worker", ENDED, "boundary_error"),
    Point("FP17", "linux.killed", "worker", ENDED, None, ENDING),
    Point("FP16 FP17", "linux.killed", "worker", INTENT, None, ("long",)),
    Point("FP18", "linux.reaped", "worker", ENDED, "boundary_error"),
    Point("FP19", "linux.group_emptied@1", "worker", ENDED),
    Point("FP19", "run.cleaning", "keeper", ENDED, "boundary_error"),
    Point("FP19", "linux.verify", "worker", ENDED, "boundary_error"),
    Point("FP19 FP20", "run.cleaned", "keeper", ENDED, "boundary_error"),
    # What it leaves.
    Point("FP22", "worker.collecting", "worker", ENDED, "boundary_error", ENDING),
    Point("FP22", "linux.collect", "worker", ENDED, "boundary_error", ENDING),
    Point("FP22", "store.copying@2", "worker", ENDED, "boundary_error", ("fork",)),
    Point("FP23", "store.synced", "worker", ENDED, "boundary_error", ("fork",)),
    Point("FP23", "store.named", "worker", ENDED, None, ("fork",)),
    Point("FP24", "run.collected", "keeper", ENDED, "boundary_error", ENDING),
    Point("FP21", "store.copying@2", "keeper", ENDED, "boundary_error", ("loud",)),
    Point("FP21", "store.synced", "keeper", ENDED, "boundary_error", ("loud",)),
    Point("FP21", "store.named", "keeper", ENDED, None, ("loud",)),
    Point("FP24", "run.seal", "keeper", ENDED, "interrupted"),
    Point("FP25 FP26", "run.sealed", "keeper", SEALED),
)


def kill_outcome(point, mode, everything=False):
    """Who dies takes with him what is only in his memory. A worker that dies behind main's end leaves a boundary that was not verified empty
    (contract, R6), or an end that nobody heard of: what a dead worker has answered is worth nothing, so that depends on who is faster. A
    run that is submitted and has no launch intent goes on with the next keeper; the caller asks again under his key. everything: all die."""
    if point.killed:
        return {point.killed}
    if point.phase in (NOTHING, ACCEPTED) and mode == "serve":
        return {NATURAL}
    if point.phase == ENDED:
        return {"boundary_error", "interrupted"} if point.process == "worker" and not everything else {"interrupted"}
    return {{NOTHING: NO_RUN, ACCEPTED: "not_launched", INTENT: "interrupted", SEALED: NATURAL}[point.phase]}


def failure_outcome(point):
    return {point.fails or NATURAL}


def of_mode(mode):
    return [point for point in POINTS if mode in point.modes]
