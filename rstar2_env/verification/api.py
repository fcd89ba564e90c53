"""``verify`` and its batch and async forms; quick comparisons run in the calling process, others in a worker.

Work that is linear in the length of the text runs in the calling process: finding boxes, comparing exact texts and
plain numbers, checking size limits. Everything else runs in worker processes (see ``pool`` and ``grade``), so these
functions cannot hang and may be called from any thread or event loop. No text makes any of them raise an exception.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterable
from concurrent.futures import Future
from fractions import Fraction
from typing import Unpack

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.options.renamed import with_new_names
from rstar2_env.verification.compare.plain import read_plain, same_number
from rstar2_env.verification.guards import MAX_TEXT_CHARS, too_large
from rstar2_env.verification.options import DEFAULTS, TIMEOUT_S, OptionFields, VerifyOptions
from rstar2_env.verification.read.boxed import boxed_answer, gold_answer, last_boxed, without_tool_text
from rstar2_env.verification.verdict import Reason, Verdict
from rstar2_env.verification.workers.pool import WorkerReply, shared_pool


def verify(
    gold: str,
    answer: str | None,
    *,
    question: str | None = None,
    **options: Unpack[OptionFields],
) -> Verdict:
    r"""Compare an answer with the gold answer; may be called from any thread and any process.

    Args:
        gold: The gold answer: a number, an expression, a set, words. If it has a ``\boxed{}``, the content of the box
            counts.
        answer: The policy's answer, as a dialect extracted it; ``None`` and blank text give the reason ``no_answer``.
        question: The question; if given, an expression copied from it gets the reason ``no_answer``.
        **options: The fields of :class:`~rstar2_env.verification.options.VerifyOptions`: ``kind``, ``tolerance``,
            ``strict``, ``undone``, ``timeout_s``.

    Raises:
        ConfigurationError: An option is not among its allowed values or out of range, or an answer is not a string.
    """
    return verify_with(_checked(options), gold, answer, question)


async def averify(
    gold: str,
    answer: str | None,
    *,
    question: str | None = None,
    **options: Unpack[OptionFields],
) -> Verdict:
    """Compare an answer as :func:`verify` does, without blocking the event loop.

    Cancelling the call stops the wait; a computation that has started runs to its end or its deadline.

    Args:
        gold: The gold answer.
        answer: The policy's answer, as a dialect extracted it; ``None`` and blank text give the reason ``no_answer``.
        question: The question; if given, an expression copied from it gets the reason ``no_answer``.
        **options: The fields of :class:`~rstar2_env.verification.options.VerifyOptions`.

    Raises:
        ConfigurationError: An option is not among its allowed values, or outside its range.
    """
    import asyncio  # callers of this have it loaded already; other imports stay fast

    checked = _checked(options)
    start = time.perf_counter()
    reply = _begin(checked, gold, answer, question)
    if isinstance(reply, Future):
        reply = await asyncio.wrap_future(reply)
    return _verdict(reply, time.perf_counter() - start)


def verify_many(
    pairs: Iterable[tuple[str, str | None]],
    **options: Unpack[OptionFields],
) -> list[Verdict]:
    """Verify many ``(gold, answer)`` pairs in parallel on all workers.

    Args:
        pairs: Gold answers with the answers to grade.
        **options: The options of :func:`verify`.

    Returns:
        One verdict for each pair, in the order of the pairs. ``Verdict.seconds`` counts from a pair's submission, so it
        includes the wait for a worker.

    Raises:
        ConfigurationError: An option is not among its allowed values, or outside its range.
    """
    checked = _checked(options)
    begun = [(time.perf_counter(), _begin(checked, *pair, None), time.perf_counter()) for pair in pairs]
    return [
        _verdict(reply.result(), time.perf_counter() - start)
        if isinstance(reply, Future)
        else _verdict(reply, stop - start)
        for start, reply, stop in begun
    ]


def verify_response(
    gold: str,
    response: str | None,
    *,
    question: str | None = None,
    **options: Unpack[OptionFields],
) -> Verdict:
    """Grade a whole response against a gold text or worked solution; for files of responses, not for rewards.

    Programs and tool results are removed from the response. Then both texts are compared as bare answers. If they
    differ and at least one is longer than a bare answer, an answer is extracted from each text (see
    ``read.response_answer``), and these answers are compared. An environment, in contrast, grades only the answer that
    its dialect extracts.

    Args:
        gold: A gold answer or a worked solution.
        response: The whole response; ``None`` gives the reason ``no_answer``.
        question: The question; if given, an expression copied from it gets the reason ``no_answer``.
        **options: The options of :func:`verify`.

    Raises:
        ConfigurationError: An option is not among its allowed values, or outside its range.
    """
    # Imported here because its patterns take longer to compile than everything else in this module.
    from rstar2_env.verification.read.response_answer import extract_answer, is_response

    checked = _checked(options)
    response = without_tool_text(response) if isinstance(response, str) else response
    first = verify_with(checked, gold, response, question)
    if first.correct or response is None or not (is_response(gold) or is_response(response)):
        return first
    inner_gold, inner = extract_answer(gold, gold=True), extract_answer(response)
    if inner_gold is None or (inner_gold == gold and inner == response):
        return first
    second = verify_with(checked, inner_gold, inner, question)
    return Verdict(second.correct, second.reason, second.method, first.seconds + second.seconds)


def verify_with(options: VerifyOptions, gold: str, answer: str | None, question: str | None = None) -> Verdict:
    """Compare an answer with the gold answer, as :func:`verify` does, with options that have already been checked.

    Args:
        options: The options of the comparison.
        gold: The gold answer.
        answer: The policy's answer; ``None`` and blank text give the reason ``no_answer``.
        question: The question; if given, an expression copied from it gets the reason ``no_answer``.
    """
    start = time.perf_counter()
    reply = _begin(options, gold, answer, question)
    if isinstance(reply, Future):
        reply = reply.result()
    return _verdict(reply, time.perf_counter() - start)


def gold_fault(gold: str) -> str | None:
    """Return the reason why a gold answer cannot be read; ``None`` if it can be read.

    Only an identical text equals a gold answer that cannot be read. Reading takes linear time and evaluates nothing, so
    it needs no worker. A wrong gold answer is not detected.
    """
    inner = gold_answer(gold)
    if not inner:
        return "it is empty"
    if (guard := too_large(inner)) is not None:
        return f"it is too large to read ({guard})"
    # Imported here because loading the tables of units and words takes time.
    from rstar2_env.verification.read.lexer import ReadError
    from rstar2_env.verification.read.readings import readings

    try:
        readings(inner)
    except ReadError as error:
        return f"only an answer with exactly the same text can match it ({error})"
    return None


def math_verify_alone(gold: str, answer: str | None, *, timeout_s: float = TIMEOUT_S) -> Verdict:
    """Grade with the package math-verify alone, to compare it with this package; runs in a worker with a deadline.

    Args:
        gold: The gold answer.
        answer: The answer to grade; ``None`` or blank text counts as no answer.
        timeout_s: Seconds that the comparison may take.

    Raises:
        MissingExtraError: math-verify is not installed.
    """
    if importlib.util.find_spec("math_verify") is None:
        raise MissingExtraError("math-verify", "Comparing with math-verify")
    start = time.perf_counter()
    if answer is None or not answer.strip():
        return _verdict(_NO_ANSWER, 0.0)
    if len(answer) + len(gold) > MAX_TEXT_CHARS:
        return _verdict(WorkerReply(Reason.TOO_LARGE, "length"), 0.0)
    request = {"alone": "math-verify", "gold": gold, "answer": answer, "timeout_s": timeout_s}
    reply = shared_pool().submit(request, timeout_s).result()
    return _verdict(reply, time.perf_counter() - start)


def _checked(options: OptionFields) -> VerifyOptions:
    return VerifyOptions(**with_new_names(options, OptionFields.__annotations__)) if options else DEFAULTS


def _verdict(reply: WorkerReply, seconds: float) -> Verdict:
    return Verdict(reply.reason is Reason.EQUAL, reply.reason, reply.method, seconds)


def _begin(
    options: VerifyOptions, gold: str, answer: str | None, question: str | None
) -> WorkerReply | Future[WorkerReply]:
    """Return the verdict if no worker is needed; otherwise submit a request to a worker and return the future reply."""
    if not (isinstance(gold, str) and isinstance(answer, str | None)):
        name, value = ("gold", gold) if not isinstance(gold, str) else ("answer", answer)
        allowed = "a string" if name == "gold" else "a string or None"
        raise ConfigurationError(
            f"{name} must be {allowed}, not {value!r} ({type(value).__name__}). "
            f"Write it as a string, such as {str(value)!r}."
        )
    if answer is None:
        return _NO_ANSWER
    if (reply := _same_plain(options, gold, answer, question)) is not None:
        return reply
    if len(gold) > MAX_TEXT_CHARS or len(answer) > MAX_TEXT_CHARS:
        return WorkerReply(Reason.TOO_LARGE if len(answer) > MAX_TEXT_CHARS else Reason.UNPARSABLE_GOLD, "length")
    if "box" in answer and last_boxed(answer) is not None:
        answer = boxed_answer(answer) or ""
    gold, answer = gold_answer(gold) if "box" in gold else gold.strip(), answer.strip()
    if (reply := _decide_here(options, gold, answer, question)) is not None:
        return reply
    request = options.request(gold, answer, question if question is None else question[:MAX_TEXT_CHARS])
    return shared_pool().submit(request, options.timeout_s)


def _decide_here(options: VerifyOptions, gold: str, answer: str, question: str | None) -> WorkerReply | None:
    """Apply the checks that need no worker; return ``None`` if they do not decide, so that a worker is needed."""
    if not answer:
        return _NO_ANSWER
    if not gold:
        return WorkerReply(Reason.UNPARSABLE_GOLD, "empty")
    if gold == answer:
        return WorkerReply(Reason.EQUAL, "exact")
    if (guard := too_large(answer)) is not None:
        return WorkerReply(Reason.TOO_LARGE, guard)
    if (guard := too_large(gold)) is not None:
        return WorkerReply(Reason.UNPARSABLE_GOLD, guard)
    if (reply := _same_plain(options, gold, answer, question)) is not None:
        return reply
    if options.kind == "number" and (read_plain(gold) is None or read_plain(answer) is None):
        return WorkerReply(Reason.UNPARSABLE_GOLD if read_plain(gold) is None else Reason.UNPARSABLE_ANSWER, "number")
    return None


def _same_plain(options: VerifyOptions, gold: str, answer: str, question: str | None) -> WorkerReply | None:
    """Compare two plain numbers.

    Returns:
        ``None`` if a text is not a plain number. ``None`` also if the answer equals the gold answer, but may be copied
        from the question, or contain a division that was not computed.
    """
    if options.kind not in ("auto", "number"):
        return None
    if (gold_number := read_plain(gold)) is None or (answer_number := read_plain(answer)) is None:
        return None
    tolerance = None if options.tolerance is None else Fraction(options.tolerance)
    if not same_number(gold_number, answer_number, tolerance):
        return _OTHER_NUMBER
    asked = question is not None and answer_number.form != "integer"  # for example, to reduce 8/12
    undecided = gold != answer and (asked or not (answer_number.is_reduced or gold_number.form == "fraction"))
    return None if undecided else _SAME_NUMBER


_NO_ANSWER = WorkerReply(Reason.NO_ANSWER, "empty")
_SAME_NUMBER = WorkerReply(Reason.EQUAL, "number")
_OTHER_NUMBER = WorkerReply(Reason.DIFFERENT, "number")

__all__ = ["averify", "gold_fault", "math_verify_alone", "verify", "verify_many", "verify_response", "verify_with"]
