"""Games against a scripted opponent, with graded intermediate answers (after GAMEBoT, F30): what they have in common.

Covered: the turn loop, illegal and unparsable moves, the F1 of the intermediate answers, the reward. Not covered: the
rules of a game, which are its own file's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rstar2_env.dialects import make_dialect
from rstar2_env.encodable import encodable
from rstar2_env.errors import ConfigurationError
from rstar2_env.grading import GoldGrader
from rstar2_env.problems import Draft, ProceduralSource, source_name
from rstar2_env.text_env import ToolEnv
from rstar2_env.tools import Tool, ToolResult

_Step = tuple[str, float, bool, bool, dict[str, Any]]

# Bounded on purpose: an opening bracket repeated without end must not be scanned from each of its places.
_INTERMEDIATE = re.compile(r"\[Intermediate Thinking Results (\d{1,2}): ([^\[\]\n]{0,200})\]")
_SYSTEM = "You play a game against an opponent. Read the rules, think, and give one move in each turn."
_PLACE = "your move"
_SHOWN = 80


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


class Game(Protocol):
    """The rules of a game. A frozen dataclass, whose fields are the game's options."""

    @property
    def name(self) -> str:
        """Begins every problem's id."""
        ...

    @property
    def rules(self) -> str:
        """The rules, with the intermediate questions and how a move is written, but for the dialect's tags."""
        ...

    def start(self, seed: int) -> Match | None:
        """The match of that seed; ``None`` where it would be unfair."""
        ...


@dataclass(frozen=True, slots=True)
class _Draw:
    game: Game
    form: str

    def __call__(self, rng: np.random.Generator, /) -> Draft | None:
        seed = int(rng.integers(2**31))
        match = self.game.start(seed)
        if match is None:
            return None
        question = f"{self.game.rules} {self.form}\n\n{match.position()}"
        return Draft(question, match.best(), str(seed), {"game": seed})


class GameEnv(ToolEnv):
    """A game as an environment; each game's own class documents it in full.

    Args:
        game: The rules.
        defaults: Options of the game as it is by default; others become part of the problems' ids.
        options: The game's options.
        split: Which matches: "train", "validation" or "test".
        tools: Tools that the policy may use on the way; none by default.
        illegal_moves: Moves that cannot be played after which the game is lost.
        intermediate_weight: Share of the reward that the intermediate answers decide.
        more: What ``ToolEnv`` takes.

    Raises:
        ConfigurationError: An option is out of its range.
    """

    def __init__(
        self,
        game: Game,
        *,
        defaults: Mapping[str, Any],
        options: Mapping[str, Any],
        split: str,
        tools: Sequence[Tool],
        illegal_moves: int,
        intermediate_weight: float,
        more: Mapping[str, Any],
    ) -> None:
        if isinstance(illegal_moves, bool) or not isinstance(illegal_moves, int) or illegal_moves < 1:
            raise ConfigurationError(f"illegal_moves must be a positive integer, not {illegal_moves!r}.")
        if not 0 <= intermediate_weight <= 1:
            raise ConfigurationError(f"intermediate_weight must be from 0 to 1, not {intermediate_weight!r}.")
        settings = dict(more)
        name, written = settings.pop("dialect", "rstar2"), settings.pop("dialect_options", None)
        if name == "rstar2" and written is None:
            # The dialect's own words are about mathematical problems; how to call tools only its system message says.
            written = {"instruction": "%s"} if tools else {"system": _SYSTEM, "instruction": "%s"}
        dialect = make_dialect(name, **(written or {}))
        form = f"Write your move like this: {dialect.format_answer(_PLACE)}"
        source = ProceduralSource(source_name(game.name, options, defaults), _Draw(game, form), split)
        super().__init__(problems=source, tools=tools, grader=GoldGrader(), dialect=dialect, **settings)
        self.game = game
        self.match: Match | None = None
        self._illegal_limit, self._weight = illegal_moves, intermediate_weight
        self._illegal = 0
        self._tally = Tally()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a match; see ``ToolEnv.reset``.

        Raises:
            ConfigurationError: A problem that was given names no match.
        """
        text, info = super().reset(seed=seed, options=options)
        number = self.problem.meta.get("game")
        match = self.game.start(number) if isinstance(number, int) and number >= 0 else None
        if match is None:
            self._over = True
            raise ConfigurationError(
                f"Problem {self.problem.id!r} is no match of {self.game.name}: meta['game'] is {number!r}, expected "
                "the seed of a match, as env.unwrapped.problems has it."
            )
        self.match, self._illegal, self._tally = match, 0, Tally()
        return text, info

    def _grade(self, action: str) -> _Step:
        assert self.match is not None
        move = self.dialect.answer([action])
        extra: dict[str, Any] = {"move": {"text": None if move is None else encodable(move[:_SHOWN])}}
        try:
            if move is None:
                raise IllegalMoveError("unparsable", "There is no move in your turn.")
            read = self.match.read(move.strip())
        except IllegalMoveError as error:
            self._illegal += 1
            extra["move"]["status"] = error.status
            left = self._illegal_limit - self._illegal
            if left <= 0:
                return self._end(action, "no_answer", extra=extra)
            form = self.dialect.format_answer(_PLACE)
            text = f"{error} Write it like this: {form} (mistakes left before you lose: {left})\n\n"
            return self._go_on(action, text + self.match.position(), extra)
        extra["move"]["status"] = "ok"
        turn = Tally()
        turn.add(read_intermediates(action), self.match.truths(read))
        self._tally.join(turn)
        extra["intermediate"] = turn.record()
        said = self.match.play(read)
        if self.match.score is not None:
            return self._end(action, "answered", answer=encodable(move), correct=self.match.won, extra=extra)
        return self._go_on(action, f"{said}\n\n{self.match.position()}", extra)

    def _go_on(self, action: str, text: str, extra: dict[str, Any]) -> _Step:
        self._count(text)
        if (end := self._budget_spent()) is not None:
            return self._end(action, end, extra=extra)
        self._transcript.turn(action, (), text)
        self._show()
        return text, 0.0, False, False, self._info(()) | extra

    def _end(
        self,
        action: str,
        end: str,
        results: Sequence[ToolResult] = (),
        *,
        answer: str | None = None,
        correct: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> _Step:
        text, _, terminated, truncated, info = super()._end(action, end, results, answer=answer, correct=correct)
        score = self.match.score if self.match is not None and self.match.score is not None else 0.0
        parts = {"outcome": 0.0, "intermediate": 0.0}
        if end == "answered":
            parts = {"outcome": (1 - self._weight) * score, "intermediate": self._weight * self._tally.f1}
        info |= dict(extra or {})
        info |= {
            "outcome": score,
            "intermediate": self._tally.record(),
            "illegal_moves": self._illegal,
            "reward_components": parts,
            # One answer a turn is what the rules ask for, so an episode's sum would look like a broken format.
            "answer_tags": self.dialect.answer_tags(self._turns[-1:]),
        }
        return text, sum(parts.values()), terminated, truncated, info

    def oracle_turn(self) -> str:
        """The turn of a player who knows the opponent: all intermediate answers right, and the best move.

        For tests and for reference figures: it looks into the match, which no agent may.
        """
        assert self.match is not None
        move = self.match.best()
        truths = self.match.truths(self.match.read(move))
        lines = [write_intermediate(number, truth) for number, truth in enumerate(truths, 1)]
        return "\n".join([*lines, self.dialect.format_answer(move)])


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
