"""What a game is: rules with knobs, a match against a scripted opponent, graded intermediate answers (GAMEBoT, F30).

Covered: the protocols, how intermediate answers are read, written and counted, the opponent's dice. Not covered: the
turn loop and the reward (``rstar2_env.env.game_env``), and the rules of a game, which are its own file's.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rstar2_env.worlds.family import Family

# Bounded on purpose: an opening bracket repeated without end must not be scanned from each of its places.
_INTERMEDIATE = re.compile(r"\[Intermediate Thinking Results (\d{1,2}): ([^\[\]\n]{0,200})\]")


class IllegalMoveError(Exception):
    """A move that cannot be played; the message tells the policy why.

    Args:
        status: ``"unparsable"`` or ``"illegal"``.
        message: For the policy.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Match(Protocol):
    """One game that is being played; the policy is always to move."""

    score: float | None
    """What the policy has reached, from 0 to 1; ``None`` while the game goes on."""

    @property
    def won(self) -> bool:
        """Whether the game went as it should."""
        ...

    def position(self) -> str:
        """The position as the policy sees it."""
        ...

    def read(self, move: str) -> Any:
        """The move that a text means; raises ``IllegalMoveError``."""
        ...

    def truths(self, move: Any) -> tuple[frozenset[str], ...]:
        """The right answer to each intermediate question, in the position in which ``move`` is played."""
        ...

    def play(self, move: Any) -> str:
        """Play a move and the opponent's reply; says what happened."""
        ...

    def best(self) -> str:
        """The move of a player who knows what the opponent will do."""
        ...


@dataclass(frozen=True)
class Game(Family, ABC):
    """The rules of a game at one difficulty."""

    @property
    @abstractmethod
    def rules(self) -> str:
        """The rules, with the intermediate questions and how a move is written, but for the dialect's tags."""

    @property
    @abstractmethod
    def turns(self) -> int:
        """Turns that an episode allows by default, some more than a match takes."""

    @abstractmethod
    def start(self, seed: int) -> Match | None:
        """The match of that seed; ``None`` where it would be unfair."""


@dataclass(slots=True)
class Tally:
    """Counts of intermediate answers: right and wrong items, missed ones, and questions rightly answered "none"."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0
    missing: int = 0

    def add(self, given: Mapping[int, frozenset[str]], truths: Sequence[frozenset[str]]) -> None:
        """Count the answers of one turn; a question that was not answered misses at least one item."""
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

    def join(self, other: Tally) -> None:
        """Add another's counts."""
        for name in ("tp", "fp", "fn", "tn", "missing"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def f1(self) -> float:
        """``2 TP / (2 TP + FP + FN)``; where there was nothing to find, 1 for having said so."""
        wrong = self.fp + self.fn
        if not self.tp and not wrong:
            return float(self.tn > 0)
        return 2 * self.tp / (2 * self.tp + wrong)

    def record(self) -> dict[str, Any]:
        """As ``info`` shows it."""
        return {
            "tp": self.tp,
            "fp": self.fp,
            "fn": self.fn,
            "tn": self.tn,
            "missing": self.missing,
            "f1": self.f1,
        }


def read_intermediates(turn: str) -> dict[int, frozenset[str]]:
    """The intermediate answers of a turn by their number; the last one of a number counts."""
    return {int(number): _items(text) for number, text in _INTERMEDIATE.findall(turn)}


def write_intermediate(number: int, items: frozenset[str]) -> str:
    """An intermediate answer as the rules ask for it."""
    return f"[Intermediate Thinking Results {number}: {', '.join(sorted(items)) or 'none'}]"


def draw(seed: int, *what: object) -> float:
    """A number from 0 up to 1 that depends on the arguments alone: the opponent's dice, the same in every replay."""
    data = "|".join(map(str, (seed, *what))).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "big") / 2**56


def _items(text: str) -> frozenset[str]:
    words = [word for word in re.split(r"[\s,;]+", text.strip().lower()) if word]
    if words in ([], ["none"]):
        return frozenset()
    return frozenset(word.lstrip("0") or "0" if word.isascii() and word.isdigit() else word for word in words)
