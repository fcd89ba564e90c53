"""Where the time of a sandboxed call goes: CPU time by process, and page faults, from what the kernel counts.

Works on the local sandbox, whose processes are on this machine. A child's time is cut where it said that it was ready:
before, it isolates itself, ahead of the call; after, it reads its job, compiles and runs it, reports and exits.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.sandbox import Job, LocalSandbox

_SETTLE_S = 0.5
_TICK = 1e3 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Breakdown:
    """What one call takes, on average, in milliseconds of CPU.

    Attributes:
        program: What was run.
        caller: In this process: the job encoded and sent, the outcome decoded.
        warden: In the warden: the job handed over, output read, the verdict made.
        parent: In the parents: forks of the child and of pid 1 above it, their namespaces, their ends.
        isolation: In the child until every layer is in force.
        program_and_exit: In the child from then to its end: reading, compiling, running, reporting, exiting.
        parent_faults: Page faults of the parents, most of which copy a page that a child shares.
        child_faults: Page faults of the child.
    """

    program: str
    caller: float
    warden: float
    parent: float
    isolation: float
    program_and_exit: float
    parent_faults: float
    child_faults: float


@dataclass(frozen=True)
class _Counts:
    own_ms: float
    children_ms: float
    own_faults: int
    children_faults: int


def break_down(sandbox: LocalSandbox, program: str, code: str, calls: int) -> Breakdown:
    """Run a program so many times, one call after the other.

    Args:
        sandbox: A local sandbox.
        program: What to call it.
        code: Its source.
        calls: How many times.
    """
    for _ in range(10):
        sandbox.run(Job(code))
    time.sleep(_SETTLE_S)
    before, after_ready = _count(sandbox), 0.0
    for _ in range(calls):
        after_ready += sandbox.run(Job(code)).cpu_s * 1e3
    time.sleep(_SETTLE_S)  # until the children that replace those that ran are ready
    caller, warden, parents = (
        _Counts(*(new - old for new, old in zip(vars(now).values(), vars(then).values(), strict=True)))
        for now, then in zip(_count(sandbox), before, strict=True)
    )
    return Breakdown(
        program=program,
        caller=caller.own_ms / calls,
        warden=warden.own_ms / calls,
        parent=parents.own_ms / calls,
        isolation=(parents.children_ms - after_ready) / calls,
        program_and_exit=after_ready / calls,
        parent_faults=parents.own_faults / calls,
        child_faults=parents.children_faults / calls,
    )


def parents_of(sandbox: LocalSandbox) -> list[int]:
    """Process ids of the parents: the zygote's children."""
    connection = sandbox._connection
    assert connection is not None
    zygote = int(Path(f"/proc/{connection.zygote_pid}/stat").read_text().rpartition(")")[2].split()[1])
    return [int(pid) for pid in Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()]


def shared_mb(pids: list[int]) -> float:
    """Memory of processes in MiB, pages that several have counted in shares."""
    kib = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib / 1024


def show_breakdowns(found: list[Breakdown]) -> None:
    """Print a table."""
    names = ("caller", "warden", "parent", "isolation", "program_and_exit")
    print(f"{'CPU ms a call':14} {' '.join(f'{name:>16}' for name in names)} {'faults: parent':>16} {'child':>8}")
    for one in found:
        times = " ".join(f"{getattr(one, name):16.2f}" for name in names)
        print(f"{one.program:14} {times} {one.parent_faults:16.0f} {one.child_faults:8.0f}")


def _count(sandbox: LocalSandbox) -> tuple[_Counts, _Counts, _Counts]:
    """The counts of the caller, of the warden, and of all parents together."""
    connection = sandbox._connection
    assert connection is not None
    each = [_counts_of(pid) for pid in parents_of(sandbox)]
    together = _Counts(*(sum(values) for values in zip(*(vars(one).values() for one in each), strict=True)))
    return _counts_of(os.getpid()), _counts_of(connection.warden_pid), together


def _counts_of(pid: int) -> _Counts:
    fields = [int(field) for field in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7:15]]
    faults, children_faults, _, _, user, system, children_user, children_system = fields
    return _Counts((user + system) * _TICK, (children_user + children_system) * _TICK, faults, children_faults)
