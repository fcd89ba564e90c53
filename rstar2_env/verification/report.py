"""Grades a file of answers and summarises the results, for ``rstar2 verify``.

Covered: reading JSONL with errors by line and field, grading in parallel, and the summary (counts, accuracy, times).
Not covered: printing the summary on a terminal (see ``rstar2_env.cli.verify``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from rstar2_env.core.errors import ProblemFormatError
from rstar2_env.verification.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of a file of answers to grade: an answer, and its gold answer.

    Attributes:
        id: The ``id`` of the line, or "line N".
        gold: The gold answer.
        pred: The answer to grade; ``None`` if the model gave no answer.
        expected: Whether the answer is right according to the file; ``None`` if the file does not say so.
        categories: Categories of the line; the summary has a part for each category.
        question: The question; a formula copied from it does not count as an answer. ``None`` if the line has none.
    """

    id: str
    gold: str
    pred: str | None
    expected: bool | None = None
    categories: tuple[str, ...] = ()
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Graded:
    """A pair, and the verdict on its answer."""

    pair: Pair
    verdict: Verdict

    @property
    def wrong(self) -> bool:
        """Whether the verdict differs from the file's ``expected``."""
        return self.pair.expected is not None and self.pair.expected is not self.verdict.correct


MOST_FAULTS = 10
"""Largest number of invalid lines that an error message lists."""


def read_pairs(path: Path) -> list[Pair]:
    """Read a JSONL file of ``{"gold", "pred"[, "question", "expected", "id", "categories"]}``; blank lines are skipped.

    Raises:
        ProblemFormatError: The file has no pairs, or some of its lines are not such objects. The message names the
            file, and the number and the field of each invalid line, up to ``MOST_FAULTS`` lines.
        OSError: The file cannot be read.
    """
    pairs: list[Pair] = []
    faults: list[str] = []
    # Not splitlines(): it would also break at the separators that JSON strings may hold, such as U+2028.
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix("\ufeff") if number == 1 else line
            if not line.strip():
                continue
            try:
                pairs.append(_read_pair(line, path, number))
            except ProblemFormatError as error:
                faults.append(str(error))
            if len(faults) == MOST_FAULTS:
                faults.append("and perhaps more: the rest of the file was not read.")
                break
    if not pairs and not faults:
        raise ProblemFormatError(f'{path} does not contain any pairs: expected lines of {{"gold", "pred"}}.')
    if faults:
        raise ProblemFormatError("\n  ".join([f"{path} cannot be graded:", *faults] if faults[1:] else faults))
    return pairs


_FIELDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "gold": ("a string or a number", (str, int, float)),
    "pred": ("a string, a number or null", (str, int, float, NoneType)),
    "question": ("a string", (str, NoneType)),
    "expected": ("true or false", (bool, NoneType)),
    "categories": ("a list of strings", (str, list, NoneType)),
}
"""For each field in a line of the answers file: a description of its types, for error messages, and the types."""


def _read_pair(line: str, path: Path, number: int) -> Pair:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProblemFormatError(f"{path}, line {number}: the line is not valid JSON ({error}).") from error
    if not isinstance(record, dict):
        raise ProblemFormatError(f"{path}, line {number}: expected a JSON object, got {type(record).__name__}.")
    record.setdefault("categories", record.get("category"))
    for field, (said, types) in _FIELDS.items():
        value = record.get(field, "nothing")
        fits = field in record or field not in ("gold", "pred")
        if isinstance(value, list):
            fits = fits and all(isinstance(name, str) for name in value)
        if not fits or (field in record and type(value) not in types):
            shown = value if isinstance(value, str) else json.dumps(value, default=repr)
            raise ProblemFormatError(f"{path}, line {number}: the field {field!r} must be {said}, got {shown[:80]}.")
    pred, categories = record["pred"], record["categories"]
    return Pair(
        id=str(record.get("id", f"line {number}")),
        gold=str(record["gold"]),
        pred=None if pred is None else str(pred),
        expected=record.get("expected"),
        categories=(categories,) if isinstance(categories, str) else tuple(categories or ()),
        question=record.get("question"),
    )


def grade_pairs(
    pairs: Sequence[Pair],
    grade: Callable[[Pair], Verdict],
    *,
    threads: int,
    on_done: Callable[[], None] | None = None,
) -> list[Graded]:
    """Grade pairs in parallel; return the results in the order of the pairs.

    Args:
        pairs: The pairs to grade.
        grade: Returns the verdict on one pair; called from several threads.
        threads: Number of pairs graded at a time.
        on_done: Called after each pair.
    """

    def one(pair: Pair) -> Graded:
        graded = Graded(pair, grade(pair))
        if on_done is not None:
            on_done()
        return graded

    with ThreadPoolExecutor(threads, thread_name_prefix="grade") as pool:
        return list(pool.map(one, pairs))


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value v such that at least ``share`` (0 to 1) of the values are <= v; 0.0 without values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def summarise(graded: Sequence[Graded]) -> dict[str, Any]:
    """Return the summary of all graded pairs, as ``--json`` prints it.

    Returns:
        The counts ``n``, ``labelled`` (pairs with ``expected``), ``correct``, ``unparsable``, ``timeouts`` and
        ``unavailable``; ``reasons`` (counts by reason); ``accuracy``, ``recall``, ``false_positives`` and
        ``false_negatives`` of the labelled pairs; ``by_category``, for each category the number ``n``, the accuracy and
        the false verdicts of its labelled pairs; ``wrong``, the ids of the pairs whose verdict differs from
        ``expected``; and ``p50_ms``, ``p99_ms`` and ``max_ms``, percentiles and maximum of the time for one pair. A
        share whose denominator is 0 is ``None``.
    """
    labelled = [item for item in graded if item.pair.expected is not None]
    positives = [item for item in labelled if item.pair.expected]
    seconds = [item.verdict.seconds for item in graded]
    reasons = {reason.value: sum(item.verdict.reason is reason for item in graded) for reason in Reason}
    return {
        "n": len(graded),
        "labelled": len(labelled),
        "correct": sum(item.verdict.correct for item in graded),
        **_errors(labelled),
        "recall": _share(sum(item.verdict.correct for item in positives), len(positives)),
        "unparsable": reasons[Reason.UNPARSABLE_ANSWER] + reasons[Reason.UNPARSABLE_GOLD],
        "timeouts": reasons[Reason.TIMEOUT],
        "unavailable": reasons[Reason.UNAVAILABLE],
        "reasons": {name: count for name, count in reasons.items() if count},
        "p50_ms": round(percentile(seconds, 0.50) * 1000, 4),
        "p99_ms": round(percentile(seconds, 0.99) * 1000, 4),
        "max_ms": round(max(seconds, default=0.0) * 1000, 4),
        "by_category": _by_category(labelled),
        "wrong": [item.pair.id for item in labelled if item.wrong],
    }


def _by_category(labelled: Sequence[Graded]) -> dict[str, dict[str, Any]]:
    names = sorted({name for item in labelled for name in item.pair.categories})
    members = {name: [item for item in labelled if name in item.pair.categories] for name in names}
    return {name: {"n": len(items), **_errors(items)} for name, items in members.items()}


def _errors(labelled: Sequence[Graded]) -> dict[str, Any]:
    return {
        "accuracy": _share(sum(not item.wrong for item in labelled), len(labelled)),
        "false_positives": sum(item.wrong and item.verdict.correct for item in labelled),
        "false_negatives": sum(item.wrong and not item.verdict.correct for item in labelled),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
