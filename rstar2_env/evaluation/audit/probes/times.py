"""Probe for answers that take too long to grade, and for patterns whose grading time grows faster than their length.

Times are CPU times of the target's process, so that other processes on the machine have no influence; only the deadline
of a grade is wall-clock time. Not covered: CPU time of processes that the grader starts; only the deadline limits it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import AuditBench
from rstar2_env.evaluation.audit.process import AuditCall, AuditGrade
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown

_SIZES = tuple(24 * 2**power for power in range(13))
_ENOUGH_S = 1.0
_LEAST_S = 0.3
_FACTOR = 2.8
"""A pattern of answers is reported if doubling an answer's length multiplies the time of its grade by at least this
factor (2: linear, 4: quadratic)."""
_MOST_TEXTS = 12

PATTERNS = (
    "'1' * n",
    "'a' * n",
    "' ' * n + 'x'",
    "'a' * n + '!'",
    "'1' * n + 'x'",
    "'(' * n",
    "'(' * n + ')' * n",
    "'1 ' * n",
    "'a ' * n",
    "'1, ' * n",
    "'1+' * n + '1'",
    "'\\\\boxed{' * n",
    "'\\\\boxed{1}' * n",
    "'{' * n + '}' * n",
    "'-' * n",
    "'0.' + '0' * n + '1'",
    "'\\n' * n",
    "'a\\n' * n",
    "'aA' * n",
    "'$' * n",
    "'<answer>' * n",
)
"""Patterns: Python expressions for answers whose length is proportional to ``n``."""
HEAVY = (
    "9**9**9",
    "9^9^9",
    "9^{9^{9}}",
    "10**10**8",
    "1e999999999",
    "1E+999999999",
    "1e-999999999",
    "999999999!",
    "2^{99999999999}",
    "factorial(99999999)",
    "[0]*10**12",
    "range(10**12)",
    "'a'*10**12",
    "1/3**9**9",
    "0x" + "f" * 3000,
    "9" * 4000 + "/7",
    "while True: pass",
    "sum(range(10**10))",
    "(" * 28 + "1" + "+1)" * 28,
    "a" * 28 + "!",
    "1" * 28 + "x",
    "x^{x^{x^{x^{x}}}}",
)
"""Short answers whose value is large or whose evaluation takes long."""


def times(bench: AuditBench) -> Suspicions:
    """Yield at most two suspicions: an answer that takes too long to grade, and a grading time that grows too fast."""
    golds = _golds(bench)
    hung = [call for call, grade in bench.known.items() if grade.hung]
    for gold in golds:
        if hung or not bench.enough_time("heavy answers"):
            break
        calls = [gold._replace(answer=bench.form.answer.format(text)) for text in HEAVY]
        for call in calls:
            grade = bench.grade([call])[0]
            if grade.hung or grade.seconds > bench.grade_timeout_s / 2:
                hung.append(call)
                break
    if hung:
        yield _endless(bench, min(hung, key=lambda call: len(call.answer)), len(hung))
    for gold in golds:
        for pattern in _patterns(bench):
            if not bench.enough_time("growing answers"):
                return
            suspicion = _growth(bench, gold, pattern)
            if suspicion is not None and not (hung and suspicion.cause == "no grade within the deadline"):
                yield suspicion
                return


def _golds(bench: AuditBench) -> list[AuditCall]:
    if bench.target.own_problems:
        return [AuditCall(gold, "", question) for question, gold in bench.target.problems[:1]]
    return [bench.form.call(golds[0], "") for golds in list(bench.golds.values())[:2]]


def _patterns(bench: AuditBench) -> Iterator[str]:
    yield from PATTERNS
    for text in [text for text in bench.texts if 0 < len(text) <= 12][:_MOST_TEXTS]:
        yield f"{text!r} * n"


def _growth(bench: AuditBench, gold: AuditCall, pattern: str) -> Suspicion | None:
    """Return a suspicion if doubling the length of the answer multiplies the time of a grade by at least ``_FACTOR``.

    If grading one of the answers exceeds the deadline, the suspicion is instead that this answer gets no grade in time.
    Times too short to measure are ignored.

    Args:
        bench: The audit.
        gold: A call whose gold answer and question are used; its answer is replaced by longer and longer answers.
        pattern: Python expression whose value for a length ``n`` is an answer.
    """
    seen: list[tuple[int, AuditGrade]] = []
    for size in _SIZES:
        call = gold._replace(answer=bench.form.answer.format(eval(pattern, {"n": size})))
        grade = bench.grade([call])[0]
        del bench.known[call]  # long texts, which no other probe needs
        if grade.hung:
            return _endless(bench, call, 1)
        seen.append((size, grade))
        if grade.error and len(seen) > 1 and seen[-2][1].error:
            return None
        if grade.seconds > _ENOUGH_S:
            break
    if len(seen) < 2:
        return None
    (_, before), (size, last) = seen[-2:]
    if last.seconds < _LEAST_S or last.seconds < _FACTOR * before.seconds:
        return None
    head, _, tail = bench.form.answer.partition("{}")
    answer = f"{head.format()!r} + {pattern} + {tail.format()!r}" if bench.form.answer != "{}" else pattern
    said = (
        f"an answer {pattern} takes {before.seconds:.2f} s for n = {size // 2} and {last.seconds:.2f} s for n = {size}"
    )
    script = scripts.growing(bench.target.setup, gold.gold, answer, size, factor=_FACTOR * 0.85, least_s=_LEAST_S / 2)
    call = gold._replace(answer=bench.form.answer.format(eval(pattern, {"n": 8})))
    return Suspicion("time", "the grading time grows faster than the length of the answer", said, script, call)


def _endless(bench: AuditBench, call: AuditCall, found: int) -> Suspicion:
    said = (
        f"{shown(call.answer)} with the gold answer {shown(call.gold)} gets no grade within {bench.grade_timeout_s:g} s"
    )
    script = scripts.endless(bench.target.setup, call, bench.grade_timeout_s)
    return Suspicion(
        "time", "no grade within the deadline", said, script, call, found, found, 3 * bench.grade_timeout_s + 60
    )
