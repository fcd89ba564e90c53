"""What says how good a turn is: scorers of ``best_of_k``, by name or one's own.

A scorer is called with what it may ask (``Asked``), the question and the turn, and returns a number, the larger the
better. One's own is ``./file.py:Name``, a function, or a class whose objects are called so.
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
    """Says how good a turn is."""

    def __call__(self, asked: Asked, question: str, turn: str) -> float:
        """The larger, the better."""
        ...


SCORERS: Registry[Callable[..., Any]] = Registry("scorer")


def make_scorer(written: Any) -> Scorer:
    """The scorer of that name or of one's own; a function is taken as it is.

    Raises:
        UnknownNameError: There is no scorer of that name.
        ConfigurationError: It does not take its options.
    """
    if callable(written) and not isinstance(written, type):
        return written  # type: ignore[no-any-return] # whoever gives a function says what it takes
    part = read_part(written, "scorer")
    found = part.made_by or SCORERS.get(part.name)
    if not isinstance(found, type) and not part.options:
        return found
    scorer: Scorer = make_part(SCORERS, part)
    return scorer


def share_of_yes(asked: Asked, prompt: str, votes: int) -> float:
    """How many of some replies say Yes before they say No, as a share."""
    replies = [_YES.search(asked.ask(prompt)) for _ in range(votes)]
    return sum(reply is not None and reply[1] is not None for reply in replies) / votes


class SaysYes:
    """Asks the agent itself whether a solution is right.

    Args:
        votes: How often.
    """

    @checked
    def __init__(self, votes: Count = 1) -> None:
        self._votes = votes

    def __call__(self, asked: Asked, question: str, turn: str) -> float:
        """The share of Yes."""
        return share_of_yes(asked, RIGHT.format(question=question, turn=turn), self._votes)


SCORERS.register("yes", SaysYes)
