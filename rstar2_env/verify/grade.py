"""Grading inside a worker: the layers that need more than text.

Covered for now: math-verify on both texts. Runs only in a worker process, which may be killed at any moment.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_notify: Callable[[str], None] | None = None
_loaded = False


def on_load(notify: Callable[[str], None]) -> None:
    """Set what is called with "loading" and "loaded" around the first import of SymPy."""
    global _notify
    _notify = notify


def grade_request(request: dict[str, Any]) -> tuple[str, str]:
    """Grade one request; return the reason and the method."""
    gold, answer = str(request["gold"]), str(request["answer"])
    if request.get("alone") == "math-verify":
        return _math_verify(gold, answer)
    return _math_verify(f"\\boxed{{{gold}}}", f"\\boxed{{{answer}}}")


def _load() -> Any:
    """Import math-verify (and with it SymPy), telling the parent, whose deadline must not count it."""
    global _loaded
    if not _loaded and _notify is not None:
        _notify("loading")
    module = importlib.import_module("math_verify")  # it ships no types
    if not _loaded and _notify is not None:
        _notify("loaded")
    _loaded = True
    return module


def _math_verify(gold: str, answer: str) -> tuple[str, str]:
    library = _load()
    # The parent keeps the deadline: math-verify's own alarm does not interrupt C code, and costs signals.
    gold_parsed = library.parse(gold, parsing_timeout=None)
    if not gold_parsed:
        return "unparsable_gold", "math-verify"
    answer_parsed = library.parse(answer, parsing_timeout=None)
    if not answer_parsed:
        return "unparsable_answer", "math-verify"
    equal = library.verify(gold_parsed, answer_parsed, timeout_seconds=None)
    return ("equal" if equal else "different"), "math-verify"
