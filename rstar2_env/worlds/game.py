"""Games: rules with knobs (difficulty options), a match against a scripted opponent, graded intermediate answers.

The intermediate answers, which answer questions about the position, follow GAMEBoT (arXiv 2412.13602). Covered: the
protocols; how intermediate answers are read, written and counted; the opponent's random numbers. Not covered: the turn
loop and the reward (``rstar2_env.env.game_env``), and the rules of the games (each game has a file of its own).
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from rstar2_env.worlds.family import Family

# The length is bounded; otherwise a text of many opening brackets would be scanned to its end for each of them.
_INTERMEDIATE = re.compile(r"\[Intermediate Thinking Results (\d{1,2}): ([^\[\]\n]{0,200})\]")


class IllegalMoveError(Exception):
    """The policy's text is not a move, or the move is against the rules.

    Args:
        status: ``"unparsable"`` or ``"illegal"``.
        message: The reason, as text for the policy.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Match(Protocol):
    """A game in progress; it is always the policy's turn."""

    score: float | None
    """The policy's result, from 0 to 1; ``None`` while the game is in progress."""

    @property
    def won(self) -> bool:
        """Whether the result counts as a win."""
        ...

    def position(self) -> str:
        """The position as the policy sees it."""
        ...

    def read(self, move: str) -> Any:
        """Read a move from the policy's text.

        Raises:
            IllegalMoveError: The text is not a move, or the move cannot be played.
        """
        ...

    def truths(self, move: Any) -> tuple[frozenset[str], ...]:
        """The right answer to each intermediate question, in the position in which ``move`` is played."""
        ...

    def play(self, move: Any) -> str:
        """Play a move and the opponent's reply; return a description of both."""
        ...

    def best(self) -> str:
        """The move of a player who knows the opponent's replies in advance."""
        ...


@dataclass(frozen=True)
class Game(Family, ABC):
    """The rules of a game at one difficulty."""

    @property
    @abstractmethod
    def rules(self) -> str:
        """The rules, with the intermediate questions and the notation of moves, without the dialect's tags."""

    @property
    @abstractmethod
    def turns(self) -> int:
        """Default number of turns of an episode, slightly more than a match needs."""

    @abstractmethod
    def start(self, seed: int) -> Match | None:
        """Return the match with this seed; ``None`` if no way to win it is known, so that another seed must be used."""


@dataclass(slots=True)
class IntermediateCounts:
    """Counts of the policy's answers to a game's intermediate questions, in one turn or one game.

    An intermediate question is about the position, and its answer is a set of items.

    Attributes:
        tp: Number of correct items that the policy gave.
        fp: Number of wrong items that it gave.
        fn: Number of correct items that it did not give.
        tn: Number of questions that it correctly answered with "none".
        missing: Number of questions that it did not answer.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0
    missing: int = 0

    def add(self, given: Mapping[int, frozenset[str]], truths: Sequence[frozenset[str]]) -> None:
        """Count the answers of one turn.

        Args:
            given: The policy's answers, keyed by the number of the question (from 1). A missing answer counts as
                missing every item of the right answer, or one item if the right answer is empty.
            truths: The right answer to each question.
        """
        for number, truth in enumerate(truths, 1):
            answer = given.get(number)
            if answer is None:
                self.missing += 1
                self.fn += max(1, len(truth))
                continue
            self.tp += len(answer & truth)
            self.fp += len(answer - truth)
            self.fn += len(truth - answer)
            self.tn += not answer and not truth

    def join(self, other: IntermediateCounts) -> None:
        """Add the counts of ``other`` to these counts."""
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)

    @property
    def f1(self) -> float:
        """``2 TP / (2 TP + FP + FN)``; if all three are 0: 1 if a question was correctly answered "none", else 0."""
        wrong = self.fp + self.fn
        if not self.tp and not wrong:
            return float(self.tn > 0)
        return 2 * self.tp / (2 * self.tp + wrong)

    def record(self) -> dict[str, Any]:
        """The counts by name and the F1 score, as stored in the environment's ``info``."""
        return {**asdict(self), "f1": self.f1}


def read_intermediates(turn: str) -> dict[int, frozenset[str]]:
    """The answers to intermediate questions in a turn, keyed by question number; the last answer to each counts."""
    return {int(number): _items(text) for number, text in _INTERMEDIATE.findall(turn)}


def write_intermediate(number: int, items: frozenset[str]) -> str:
    """The answer to intermediate question ``number``, in the form that the rules ask for; no items mean "none"."""
    return f"[Intermediate Thinking Results {number}: {', '.join(sorted(items)) or 'none'}]"


def draw(seed: int, *what: object) -> float:
    """A pseudorandom number in [0, 1) that depends only on the arguments and is therefore the same in every replay."""
    data = "|".join(map(str, (seed, *what))).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "big") / 2**56


def _items(text: str) -> frozenset[str]:
    words = [word for word in re.split(r"[\s,;]+", text.strip().lower()) if word]
    if words in ([], ["none"]):
        return frozenset()
    return frozenset(word.lstrip("0") or "0" if word.isascii() and word.isdigit() else word for word in words)
