"""What is wrong with a gold answer, found before anyone trains on it.

Covered: golds that are empty, out of proportion, or in no notation known here, so that only the very same text can earn
the reward. Reading is linear and evaluates nothing, so this needs no worker. Not covered: golds that are wrong.
"""

from __future__ import annotations

from rstar2_env.verification.guards import too_large
from rstar2_env.verification.read.extract import gold_answer


def gold_fault(gold: str) -> str | None:
    """Say why a gold answer can be matched at most by the same text, or ``None`` if it can be read."""
    inner = gold_answer(gold)
    if not inner:
        return "it is empty"
    if (guard := too_large(inner)) is not None:
        return f"it is out of proportion ({guard})"
    # The reader needs the units and words, but neither SymPy nor a worker.
    from rstar2_env.verification.read.lexer import ReadError
    from rstar2_env.verification.read.readings import readings

    try:
        readings(inner)
    except ReadError as error:
        return f"it can be matched only word for word ({error})"
    return None
