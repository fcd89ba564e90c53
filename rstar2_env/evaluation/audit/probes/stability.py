"""Probe of reproducibility: calls are graded again, in another order, and in processes with other settings.

Covered: repetition in one process; the order of the answers, and files that the grader leaves in its folder; hash
seeds, the language, the time zone, the date, the current folder, missing environment variables, ``-O``, a thread other
than the main thread. Not covered: other machines, other versions of packages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import PLAIN_SURROUNDING, AuditBench
from rstar2_env.evaluation.audit.process import AuditCall, AuditGrade, TargetError
from rstar2_env.evaluation.audit.shrink import shrunk
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown

_CALLS = 80
_MOST_ROUNDS = 60
_FEWEST_ROUNDS = 3
_REPEAT_S = 2.0
_MOST_TRIALS = 80
_CLOCK = """
import datetime
import time

_ahead = 400 * 86400 + 12.5 * 3600
_now, _utc = time.time, datetime.datetime
time.time = lambda: _now() + _ahead


class _Later(_utc):
    @classmethod
    def now(cls, tz=None):
        return _utc.now(tz) + datetime.timedelta(seconds=_ahead)

    @classmethod
    def utcnow(cls):
        return _utc.utcnow() + datetime.timedelta(seconds=_ahead)


class _Day(datetime.date):
    @classmethod
    def today(cls):
        return _Later.now().date()


datetime.datetime, datetime.date = _Later, _Day
"""


@dataclass(frozen=True, slots=True)
class Surrounding:
    """Settings of a process in which earlier calls of the audit are graded again.

    Attributes:
        name: Name of the settings in the report.
        variables: Environment variables; ``None`` removes a variable.
        flags: Flags of the interpreter.
        before: Python source that runs before the setup of the target.
        thread: Whether the calls run in another thread.
    """

    name: str
    variables: Mapping[str, str | None] = field(default_factory=dict)
    flags: Sequence[str] = ()
    before: str = ""
    thread: bool = False


SURROUNDINGS = (
    Surrounding("another process"),
    *(Surrounding(f"hash seed {seed}", {"PYTHONHASHSEED": str(seed)}) for seed in (1, 2, 3)),
    Surrounding("language C", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Surrounding("another time zone", {"TZ": "Pacific/Apia"}),
    Surrounding("another date", before=_CLOCK),
    Surrounding("another current folder", before="import os\nos.makedirs('elsewhere')\nos.chdir('elsewhere')"),
    Surrounding("/ as current folder", before="import os\nos.chdir('/')"),
    Surrounding("without assertions", flags=("-O",)),
    Surrounding("another thread", thread=True),
)
_KEPT = (
    "PATH",
    "HOME",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "PYTHONDONTWRITEBYTECODE",
    "VIRTUAL_ENV",
    "TMPDIR",
    "LANG",
    "LC_ALL",
)


def sample(bench: AuditBench) -> list[AuditCall]:
    """Return earlier calls of the audit to grade again, alternating between accepted and rejected answers."""
    paid = [call for call, grade in bench.known.items() if bench.paid(grade)]
    refused = [call for call, grade in bench.known.items() if not bench.paid(grade) and not grade.hung]
    chance = Random(bench.seed)
    halves = [chance.sample(one, min(len(one), _CALLS // 2)) for one in (paid, refused)]
    calls = [call for two in zip(*halves, strict=False) for call in two]
    return calls + [call for half in halves for call in half if call not in calls]


def repeated(bench: AuditBench) -> Suspicions:
    """Repeat calls in one process; yield a suspicion if the grade of a call changes."""
    calls = sample(bench)
    if not bench.enough_time("repetition"):
        return
    until, rounds = time.monotonic() + _REPEAT_S, 0
    changed: dict[AuditCall, None] = {}
    first: list[AuditGrade] | None = None
    with bench.process("repeated") as process:
        while rounds < _MOST_ROUNDS and (rounds < _FEWEST_ROUNDS or time.monotonic() < until) and not changed:
            grades = process.grade(call for call in calls for _ in range(2))
            rounds += 2
            first = first or grades[::2]
            for call, was, one, other in zip(calls, first, grades[::2], grades[1::2], strict=True):
                if len({was.verdict, one.verdict, other.verdict}) > 1 and not (was.hung or one.hung or other.hung):
                    changed[call] = None
    least = min(changed, key=lambda call: len(call.gold) + len(call.answer), default=None)
    if least is not None and _varies(bench, least):
        bench.unsteady = True
        said = (
            f"{shown(least.answer)} with the gold answer {shown(least.gold)} gets different grades when it is "
            "graded twice in one process"
        )
        script = scripts.varying(bench.target.setup, least, 50 * _MOST_ROUNDS)
        yield Suspicion("determinism", "repetition", said, script, least, len(changed), len(calls))


def _varies(bench: AuditBench, call: AuditCall) -> bool:
    """Whether repeating a call in a fresh process that grades nothing else gives different grades."""
    with bench.process(f"order {bench.next_folder()}") as process:
        return len({grade.verdict for grade in process.grade([call] * (10 * _MOST_ROUNDS))}) > 1


def ordered(bench: AuditBench) -> Suspicions:
    """Grade calls in other orders, and in a folder that earlier grades used; yield a suspicion if a grade changes."""
    calls = sample(bench)
    if bench.unsteady or not bench.enough_time("order"):
        return
    with bench.process("one by one") as process:
        plain = process.grade(calls)
    known = list(bench.known)
    for call, grade in zip(calls, plain, strict=True):
        if grade.verdict != bench.known[call].verdict and not (grade.hung or bench.known[call].hung):
            before = known[: known.index(call)]
            near = [one for one in before if {one.gold, one.answer} & {call.gold, call.answer}]
            yield from _order_of(bench, (near, before, calls[: calls.index(call)]), call)
            return
    orders = {"reversed": calls[::-1], "shuffled": Random(bench.seed).sample(calls, len(calls))}
    for name, order in orders.items():
        with bench.process(name) as process:
            grades = dict(zip(order, process.grade(order), strict=True))
        for at, call in enumerate(order):
            if grades[call].verdict != plain[calls.index(call)].verdict:
                yield from _order_of(bench, (order[:at], calls[: calls.index(call)]), call)
                return
    with bench.process("one by one") as process:  # the folder has the files of the first process
        again = process.grade(calls[::-1])[::-1]
    for call, was, now in zip(calls, plain, again, strict=True):
        if was.verdict != now.verdict:
            said = (
                f"{shown(call.answer)} with the gold answer {shown(call.gold)} gets a different grade after "
                "earlier grades left files in the current folder"
            )
            script = scripts.in_used_folder(bench.target.setup, calls, call)
            yield Suspicion("writable", "files of earlier grades", said, script, call, 1, len(calls))
            return


def surroundings(bench: AuditBench) -> Suspicions:
    """Repeat calls in processes with other settings, such as another hash seed or time zone.

    Yield a suspicion for each setting that changes a grade. The settings are those in ``SURROUNDINGS``, and one that
    removes all environment variables except those in ``_KEPT``.
    """
    import os

    calls = sample(bench)
    if bench.unsteady or not bench.enough_time("surroundings"):
        return
    with bench.process("plain surrounding") as process:
        plain = process.grade(calls)
    bare = dict.fromkeys((name for name in os.environ if name not in _KEPT), None)
    for setting in (*SURROUNDINGS, Surrounding("a bare environment", bare)):
        if not bench.enough_time(f"surrounding: {setting.name}"):
            return
        setup = f"{setting.before}\n{bench.target.setup}".lstrip()
        variables = {**PLAIN_SURROUNDING, **setting.variables}
        with bench.process(
            f"in {setting.name}", setup=setup, variables=variables, flags=setting.flags, thread=setting.thread
        ) as process:
            try:
                grades = process.grade(calls)
            except TargetError as error:
                bench.unfinished.append(f"{setting.name} (the target cannot be loaded there: {str(error)[:80]})")
                continue
        changed = [
            call
            for call, was, now in zip(calls, plain, grades, strict=True)
            if was.verdict != now.verdict and not (was.hung or now.hung)
        ]
        if changed:
            call = min(changed, key=lambda call: len(call.gold) + len(call.answer))
            said = (
                f"{shown(call.answer)} with the gold answer {shown(call.gold)} gets a different grade with "
                f"{setting.name}"
            )
            settings = [
                ("plain", {}, (), "", False),
                (setting.name, setting.variables, setting.flags, setting.before, setting.thread),
            ]
            script = scripts.in_settings(bench.target.setup, call, settings)
            kind = "determinism" if setting.name == "another process" else "portability"
            yield Suspicion(kind, setting.name, said, script, call, len(changed), len(calls))


def _order_of(bench: AuditBench, histories: Sequence[Sequence[AuditCall]], call: AuditCall) -> Iterator[Suspicion]:
    """Find earlier calls that change the grade of ``call``; yield a suspicion with as few earlier calls as possible.

    Args:
        bench: The audit.
        histories: Sequences of earlier calls, tried in this order until one changes the grade; nothing is yielded if
            none does.
        call: The call whose grade changed.
    """
    alone = _last(bench, [], call)

    def changes(fewer: list[AuditCall]) -> bool:
        return _last(bench, fewer, call).verdict != alone.verdict

    before = next((history for history in histories if changes(list(history))), None)
    if before is None:
        return
    needed = shrunk(before, changes, most=_MOST_TRIALS)
    said = (
        f"{shown(call.answer)} with the gold answer {shown(call.gold)} gets a different grade after {len(needed)} "
        "other calls"
    )
    script = scripts.in_order(bench.target.setup, needed, call)
    yield Suspicion("writable", "earlier answers", said, script, call)


def _last(bench: AuditBench, before: Sequence[AuditCall], call: AuditCall) -> AuditGrade:
    with bench.process(f"order {bench.next_folder()}") as process:
        return process.grade([*before, call])[-1]
