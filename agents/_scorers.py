"""Scorers, with which ``best_of_k`` rates turns: bundled scorers, found by name, and the user's own.

A scorer is called with three arguments: an ``Asked``, which sends requests to the inner agent, the question, and the
turn. It returns a number; larger is better. A user's own scorer is named ``./file.py:Name``: a function, or a class
with callable instances.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.core.options.parts import make_part, read_part
from rstar2_env.core.options.registry import Registry

from ._asked import Asked

_YES = re.compile(r"\b(?:(yes)|no)\b", re.IGNORECASE)
RIGHT = "{question}\n\nProposed solution:\n{turn}\n\nIs this solution right? Reply Yes or No."


class Scorer(Protocol):
    """Function that rates a candidate turn for a question, with requests through ``asked``."""

    def __call__(self, asked: Asked, question: str, turn: str) -> float:
        """Return the score of the turn; larger is better."""
        ...


SCORERS: Registry[Callable[..., Any]] = Registry("scorer")


def make_scorer(written: Any) -> Scorer:
    """Return the scorer with the given name, or the user's own scorer; a function is returned unchanged.

    Raises:
        UnknownNameError: No scorer has this name.
        ConfigurationError: The scorer does not accept its options.
    """
    if callable(written) and not isinstance(written, type):
        return written  # type: ignore[no-any-return] # the types of a user's function are unknown
    part = read_part(written, "scorer")
    found = part.made_by or SCORERS.get(part.name)
    if not isinstance(found, type) and not part.options:
        return found
    scorer: Scorer = make_part(SCORERS, part)
    return scorer


def share_of_yes(asked: Asked, prompt: str, votes: int) -> float:
    """Send a prompt ``votes`` times; return the share of replies in which "yes" occurs before any "no", in [0, 1]."""
    replies = [_YES.search(asked.ask(prompt)) for _ in range(votes)]
    return sum(reply is not None and reply[1] is not None for reply in replies) / votes


class SaysYes:
    """Scorer that asks the inner agent whether a solution is right.

    Args:
        votes: Number of times to ask.
    """

    @checked
    def __init__(self, votes: Count = 1) -> None:
        self._votes = votes

    def __call__(self, asked: Asked, question: str, turn: str) -> float:
        """Ask the inner agent ``votes`` times whether the turn's solution is right; return the share of Yes replies."""
        return share_of_yes(asked, RIGHT.format(question=question, turn=turn), self._votes)


SCORERS.register("yes", SaysYes)
