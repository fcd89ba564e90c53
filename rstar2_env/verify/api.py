"""``verify`` and its batch and async twins: the layers that run in the caller, and the way to the workers.

In the caller run only what is linear in the text: exact text, guards, plain numbers. Everything else happens in worker
processes (see ``pool`` and ``grade``), so nothing here can hang, and no thread or event loop is a wrong one to call
from.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable
from concurrent.futures import Future
from fractions import Fraction
from typing import Any

from rstar2_env.errors import ConfigurationError
from rstar2_env.verify.extract import last_boxed, strip_dollars
from rstar2_env.verify.guards import too_large
from rstar2_env.verify.plain import read_plain, same_number
from rstar2_env.verify.pool import Reply, shared_pool
from rstar2_env.verify.verdict import Reason, Verdict

TIMEOUT_S = 1.0
"""Default deadline of one verification, in seconds of a worker's time."""

KINDS = ("auto", "number")
"""What ``kind`` may be."""


def verify(
    gold: str,
    answer: str | None,
    *,
    kind: str = "auto",
    tolerance: float | None = None,
    strict: bool = True,
    timeout: float = TIMEOUT_S,
) -> Verdict:
    r"""Say whether ``answer`` is the gold answer. Safe from any thread; never raises for what the texts hold.

    Args:
        gold: The gold answer: a number, an expression, a set, words. A ``\boxed{}`` in it is opened.
        answer: The policy's answer, as a dialect extracted it; ``None`` or blank is ``no_answer``.
        kind: How to read both: "auto" or "number".
        tolerance: Relative tolerance between numbers; ``None`` compares exactly.
        strict: Apply the rules of docs/verification.md; ``False`` is lenient where they say so.
        timeout: Seconds that a worker may compute. Exact text and plain numbers need no worker.

    Raises:
        ConfigurationError: ``kind``, ``tolerance`` or ``timeout`` is not one that can be used.
    """
    start = time.perf_counter()
    options = _options(kind, tolerance, strict, timeout)
    verdict = _decide_here(gold, answer, kind, tolerance)
    if verdict is None:
        reply = shared_pool().submit(_request(gold, answer, options), timeout).result()
        return _verdict(reply, start)
    return Verdict(verdict.reason is Reason.EQUAL, verdict.reason, verdict.method, time.perf_counter() - start)


async def averify(
    gold: str,
    answer: str | None,
    *,
    kind: str = "auto",
    tolerance: float | None = None,
    strict: bool = True,
    timeout: float = TIMEOUT_S,
) -> Verdict:
    """The same as :func:`verify` without blocking the event loop."""
    start = time.perf_counter()
    options = _options(kind, tolerance, strict, timeout)
    reply = _decide_here(gold, answer, kind, tolerance)
    if reply is None:
        reply = await asyncio.wrap_future(shared_pool().submit(_request(gold, answer, options), timeout))
    return _verdict(reply, start)


def verify_many(
    pairs: Iterable[tuple[str, str | None]],
    *,
    kind: str = "auto",
    tolerance: float | None = None,
    strict: bool = True,
    timeout: float = TIMEOUT_S,
) -> list[Verdict]:
    """Verify many ``(gold, answer)`` pairs at once, on all workers; verdicts come in the order of the pairs.

    ``Verdict.seconds`` of a pair that waited for a worker includes the wait.
    """
    options = _options(kind, tolerance, strict, timeout)
    pending: list[tuple[float, Reply | Future[Reply]]] = []
    for gold, answer in pairs:
        start = time.perf_counter()
        reply = _decide_here(gold, answer, kind, tolerance)
        if reply is None:
            pending.append((start, shared_pool().submit(_request(gold, answer, options), timeout)))
        else:
            pending.append((start - time.perf_counter(), reply))
    return [
        _verdict(reply.result(), start) if isinstance(reply, Future) else _finished(reply, -start)
        for start, reply in pending
    ]


def math_verify_alone(gold: str, answer: str | None, *, timeout: float = TIMEOUT_S) -> Verdict:
    """What math-verify says with no layer of ours before it, for comparison; under our deadline, in our workers."""
    start = time.perf_counter()
    if answer is None or not answer.strip():
        return _verdict(_NO_ANSWER, start)
    if len(answer) + len(gold) > 200_000:
        return _verdict(Reply(Reason.TOO_LARGE, "length"), start)
    request = {"alone": "math-verify", "gold": gold, "answer": answer, "timeout": timeout}
    return _verdict(shared_pool().submit(request, timeout).result(), start)


def _options(kind: str, tolerance: float | None, strict: bool, timeout: float) -> dict[str, Any]:
    if kind not in KINDS:
        raise ConfigurationError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}.")
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise ConfigurationError(f"tolerance must be a number of at least 0, or None, not {tolerance!r}.")
    if not (math.isfinite(timeout) and timeout > 0):
        raise ConfigurationError(f"timeout must be a positive number of seconds, not {timeout!r}.")
    return {"kind": kind, "tolerance": tolerance, "strict": strict, "timeout": timeout}


def _request(gold: str, answer: str | None, options: dict[str, Any]) -> dict[str, Any]:
    return {"gold": _opened(gold), "answer": _opened(answer or ""), **options}


def _opened(text: str) -> str:
    box = last_boxed(text)
    return strip_dollars(text) if box is None else box


def _verdict(reply: Reply, start: float) -> Verdict:
    return _finished(reply, time.perf_counter() - start)


def _finished(reply: Reply, seconds: float) -> Verdict:
    return Verdict(reply.reason is Reason.EQUAL, reply.reason, reply.method, seconds)


def _decide_here(gold: str, answer: str | None, kind: str, tolerance: float | None) -> Reply | None:
    """The layers that need no worker; ``None`` when one is needed."""
    if answer is None:
        return _NO_ANSWER
    gold_number = read_plain(gold)
    if gold_number is not None:
        answer_number = read_plain(answer)
        if answer_number is not None:
            same = same_number(gold_number, answer_number, Fraction(tolerance) if tolerance is not None else None)
            return _SAME_NUMBER if same else _OTHER_NUMBER
    answer = answer.strip()
    if not answer:
        return _NO_ANSWER
    gold = gold.strip()
    if not gold:
        return Reply(Reason.UNPARSABLE_GOLD, "empty")
    if gold == answer:
        return Reply(Reason.EQUAL, "exact")
    if (guard := too_large(answer)) is not None:
        return Reply(Reason.TOO_LARGE, guard)
    if (guard := too_large(gold)) is not None:
        return Reply(Reason.UNPARSABLE_GOLD, guard)
    if kind == "number":
        return Reply(Reason.UNPARSABLE_GOLD if gold_number is None else Reason.UNPARSABLE_ANSWER, "number")
    return None


_NO_ANSWER = Reply(Reason.NO_ANSWER, "empty")
_SAME_NUMBER = Reply(Reason.EQUAL, "number")
_OTHER_NUMBER = Reply(Reason.DIFFERENT, "number")
