"""``GameEnv``: a game over several turns against a scripted opponent, and ``register`` to give it a name.

An author writes a ``Game`` (knobs, rules, ``start``) whose docstring is the specification, and one ``register``.
Covered: the turn loop, illegal and unparsable moves, the F1 of the intermediate answers, the reward. Not covered: games
of several policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.core.text import encodable
from rstar2_env.dialects import make_dialect
from rstar2_env.env.family_env import FamilyEnv, environment_class
from rstar2_env.env.turn_result import Ended, GoesOn
from rstar2_env.problems import Draft, ProceduralSource
from rstar2_env.tools import Tool
from rstar2_env.worlds.family import knob
from rstar2_env.worlds.game import Game, IllegalMoveError, Match, Tally, read_intermediates, write_intermediate

__all__ = ["Game", "GameEnv", "IllegalMoveError", "Match", "knob", "register"]

_SYSTEM = "You play a game against an opponent. Read the rules, think, and give one move in each turn."
_PLACE = "your move"
_SHOWN = 80

_COMMON = r"""
## Action space
Any string: the policy's whole turn. The move is the dialect's answer (``<answer>\boxed{...}</answer>``). Intermediate
answers stand in ``[Intermediate Thinking Results 1: ...]``, ``... 2: ...``.

## Observation space
Any string: the rules and the position; then what the opponent did, and the position.

## Reward
At the end ``(1 - intermediate_weight) * outcome + intermediate_weight * F1``. The outcome is from 0 to 1; F1 is that of
all intermediate answers of the game, where a question that was not answered misses at least one. A game that is
forfeited or not finished earns 0. ``correct`` means won.

## Episode end
``terminated``: the game is over (``answered``), or ``illegal_moves`` moves could not be played (``no_answer``). A turn
with a legal move goes on, which is how games differ from worlds with one question. ``truncated``: ``turns``,
``tokens``, ``time`` or ``unavailable``.

## Information
As in ``rstar2/MathTool-v0``; beside it ``move`` (``text``; ``status``: ``ok``, ``illegal`` or ``unparsable``),
``intermediate`` (``tp``, ``fp``, ``fn``, ``tn``, ``missing``, ``f1``: of the turn, and at the end of the game), and at
the end ``outcome``, ``illegal_moves`` and ``reward_components`` (``outcome``, ``intermediate``). ``answer_tags`` is
that of the last turn. There is no ``verdict``: the game itself says how it went.
"""

_ARGS = """
Args:
    split: "train", "validation" or "test"; no match is in two of them.
    tools: Tools that the policy may call on the way.
    illegal_moves: Moves that cannot be played after which the game is lost.
    intermediate_weight: Share of the reward that the intermediate answers decide.
    **options: The knobs, and what ``ToolEnv`` takes: ``max_turns``, ``dialect``, ...

Raises:
    ConfigurationError: An option is out of its range.
"""


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


class GameEnv(FamilyEnv):
    """A game as an environment; ``register`` makes a class of each game, which documents it in full.

    Attributes:
        match: The match of the running episode; no agent may look into it.
    """

    family_class: ClassVar[type[Game]]
    shared = _COMMON
    arguments = _ARGS

    @checked
    def __init__(
        self,
        *,
        split: str = "train",
        tools: Sequence[Tool] = (),
        illegal_moves: Count = 3,
        intermediate_weight: Annotated[float, Rule(least=0, most=1)] = 0.2,
        max_turns: Count | None = None,
        **options: Any,
    ) -> None:
        knobs, options = self.own_knobs(options)
        self.family = self.family_class.with_knobs(knobs)
        name, written = options.pop("dialect", "rstar2"), options.pop("dialect_options", None)
        if name == "rstar2" and written is None:
            # The dialect's own words are about mathematical problems; how to call tools only its system message says.
            written = {"instruction": "%s"} if tools else {"system": _SYSTEM, "instruction": "%s"}
        dialect = make_dialect(name, **(written or {}))
        form = f"Write your move like this: {dialect.format_answer(_PLACE)}"
        super().__init__(
            problems=ProceduralSource(self.family.named(), _Draw(self.family, form), split),
            tools=tools,
            grader=None,
            dialect=dialect,
            max_turns=self.family.turns if max_turns is None else max_turns,
            **options,
        )
        self.match: Match | None = None
        self._illegal_limit, self._weight = illegal_moves, intermediate_weight
        self._illegal = 0
        self._tally = Tally()

    def begin(self, options: Mapping[str, Any]) -> None:
        """Start the problem's match.

        Raises:
            ConfigurationError: A problem that was given names no match.
        """
        number = self.problem.meta.get("game")
        match = self.family.start(number) if isinstance(number, int) and number >= 0 else None
        if match is None:
            raise ConfigurationError(
                f"Problem {self.problem.id!r} is no match of {self.family.name}: meta['game'] is {number!r}, expected "
                "the seed of a match, as env.unwrapped.problems has it."
            )
        self.match, self._illegal, self._tally = match, 0, Tally()

    def answer_turn(self, turn: str) -> Ended | GoesOn:
        """Play the move of the turn, and have the opponent reply."""
        assert self.match is not None
        move = self.dialect.answer([turn])
        played: dict[str, Any] = {"text": None if move is None else encodable(move[:_SHOWN])}
        try:
            if move is None:
                raise IllegalMoveError("unparsable", "There is no move in your turn.")
            read = self.match.read(move.strip())
        except IllegalMoveError as error:
            self._illegal += 1
            played["status"] = error.status
            left = self._illegal_limit - self._illegal
            if left <= 0:
                return Ended(None, end="no_answer", info={"move": played})
            form = self.dialect.format_answer(_PLACE)
            text = f"{error} Write it like this: {form} (mistakes left before you lose: {left})\n\n"
            return GoesOn(text + self.match.position(), {"move": played})
        said = Tally()
        said.add(read_intermediates(turn), self.match.truths(read))
        self._tally.join(said)
        info = {"move": played | {"status": "ok"}, "intermediate": said.record()}
        news = self.match.play(read)
        if self.match.score is None:
            return GoesOn(f"{news}\n\n{self.match.position()}", info)
        return Ended(encodable(move), sum(self._parts("answered").values()), self.match.won, info=info)

    def end_info(self, end: str) -> Mapping[str, Any]:
        """How the game went."""
        return {
            "outcome": self._outcome,
            "intermediate": self._tally.record(),
            "illegal_moves": self._illegal,
            "reward_components": self._parts(end),
        }

    def answer_tags(self) -> int:
        """Those of the last turn: the rules ask for one a turn, and their sum would look like a broken format."""
        return self.dialect.answer_tags(self.turns[-1:])

    @property
    def _outcome(self) -> float:
        return self.match.score if self.match is not None and self.match.score is not None else 0.0

    def _parts(self, end: str) -> dict[str, float]:
        if end != "answered":
            return {"outcome": 0.0, "intermediate": 0.0}
        return {"outcome": (1 - self._weight) * self._outcome, "intermediate": self._weight * self._tally.f1}

    def oracle_turn(self) -> str:
        """The turn of a player who knows the opponent: all intermediate answers right, and the best move.

        For tests and for reference figures: it looks into the match, which no agent may.
        """
        assert self.match is not None
        move = self.match.best()
        truths = self.match.truths(self.match.read(move))
        lines = [write_intermediate(number, truth) for number, truth in enumerate(truths, 1)]
        return "\n".join([*lines, self.dialect.format_answer(move)])

    def random_turn(self, rng: np.random.Generator) -> str:
        """A random legal move, without intermediate answers: the player of the random baseline.

        A match without ``guess(rng)`` gets a random whole number, which may be no legal move.
        """
        guess = getattr(self.match, "guess", None)
        return self.dialect.format_answer(guess(rng) if callable(guess) else str(int(rng.integers(100))))


def register(env_id: str, game: type[Game]) -> type[GameEnv]:
    """Give a game an environment and its Gymnasium id.

    Args:
        env_id: Like "rstar2/TicTacToe-v0".
        game: A class at the top of its module. The environment's class (``TicTacToeEnv`` of ``TicTacToe``) is put
            beside it.
    """
    env = environment_class(GameEnv, game)
    gym.register(env_id, entry_point=f"{env.__module__}:{env.__qualname__}")
    return env
