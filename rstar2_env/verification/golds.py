"""Finds unusable gold answers, before they are used for training.

Covered: gold answers that are empty, too large, or in a notation that is not supported: only the identical text equals
such a gold answer. Reading takes linear time and evaluates nothing, so it needs no worker. Not covered: gold answers
that are wrong.
"""

from __future__ import annotations

from rstar2_env.verification.guards import too_large
from rstar2_env.verification.read.boxed import gold_answer


def gold_fault(gold: str) -> str | None:
    """Return why a gold answer cannot be read, so that only identical text equals it; ``None`` if it can be read."""
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
