"""``GameEnv``: a game over several turns against a scripted opponent. ``register`` gives a game its Gymnasium id.

An author writes a ``Game`` (knobs, rules, ``start``) whose docstring is the specification, and calls ``register`` once.
Covered: the turn loop, illegal and unparsable moves, the F1 score of the intermediate answers (answers to questions
about the position), the reward. Not covered: games with several policies.
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
from rstar2_env.tools.by_name import ToolChoice
from rstar2_env.worlds.family import knob
from rstar2_env.worlds.game import (
    Game,
    IllegalMoveError,
    IntermediateCounts,
    Match,
    read_intermediates,
    write_intermediate,
)

__all__ = ["Game", "GameEnv", "IllegalMoveError", "Match", "knob", "register"]

_SYSTEM = "You play a game against an opponent. Read the rules, think, and give one move in each turn."
_PLACE = "your move"
_SHOWN = 80

_COMMON = r"""
## Action space
Any string: the policy's whole turn. The move is the dialect's answer (``<answer>\boxed{...}</answer>``). Intermediate
answers are written as ``[Intermediate Thinking Results 1: ...]``, ``... 2: ...``.

## Observation space
Any string. ``reset`` returns the rules and the position; ``step`` returns the opponent's move and the new position.

## Reward
At the end ``(1 - intermediate_weight) * outcome + intermediate_weight * F1``. The outcome is between 0 and 1. F1 is
computed over all intermediate answers of the game; an unanswered question counts as at least one miss. A game that is
forfeited or not finished earns 0. ``correct`` means won.

## Episode end
``terminated``: the game is over (``answered``), or the policy made ``illegal_moves`` moves that could not be played
(``no_answer``). A legal move does not end the episode, unlike an answer in a world with one question. ``truncated``:
``turns``, ``tokens``, ``time`` or ``unavailable``.

## Information
As in ``rstar2/MathTool-v0``, and in addition ``move`` (``text``; ``status``: ``ok``, ``illegal`` or ``unparsable``) and
``intermediate`` (``tp``, ``fp``, ``fn``, ``tn``, ``missing``, ``f1``: for the turn, and for the whole game at the end).
At the end also ``outcome``, ``illegal_moves`` and ``reward_components`` (``outcome``, ``intermediate``).
``answer_tags`` counts the last turn only. There is no ``verdict``: the game itself decides the result.
"""

_ARGS = """
Args:
    split: "train", "validation" or "test"; no match is in two splits.
    tools: Tools that the policy may call before it moves: tools, ``python``, or an MCP server (``mcp:./server.py``).
    illegal_moves: Number of moves that cannot be played after which the game is lost.
    intermediate_weight: Weight of the intermediate answers in the reward, in [0, 1].
    **options: The knobs, and the options of ``ToolEnv``: ``max_turns``, ``dialect``, ...

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
    """A game as an environment; ``register`` creates one subclass per game, with the game's docstring.

    Attributes:
        match: The match of the running episode. Agents must not read it.
    """

    family_class: ClassVar[type[Game]]
    shared = _COMMON
    arguments = _ARGS

    @checked
    def __init__(
        self,
        *,
        split: str = "train",
        tools: Sequence[ToolChoice] = (),
        illegal_moves: Count = 3,
        intermediate_weight: Annotated[float, Rule(least=0, most=1)] = 0.2,
        max_turns: Count | None = None,
        **options: Any,
    ) -> None:
        knobs, options = self.own_knobs(options)
        self.family = self.family_class.with_knobs(knobs)
        name, written = options.pop("dialect", "rstar2"), options.pop("dialect_options", None)
        if name == "rstar2" and written is None:
            # Replace the dialect's user message, which is about math; its system message is only needed with tools.
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
        self._tally = IntermediateCounts()

    def begin(self, options: Mapping[str, Any]) -> None:
        """Start the problem's match.

        Raises:
            ConfigurationError: The given problem does not describe a game of this family.
        """
        number = self.problem.meta.get("game")
        match = self.family.start(number) if isinstance(number, int) and number >= 0 else None
        if match is None:
            raise ConfigurationError(
                f"The problem {self.problem.id!r} does not describe a game of {self.family.name}: "
                f"meta['game'] must be the seed of a game, as in env.unwrapped.problems; got {number!r}."
            )
        self.match, self._illegal, self._tally = match, 0, IntermediateCounts()

    def answer_turn(self, turn: str) -> Ended | GoesOn:
        """Play the turn's move and the opponent's reply."""
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
        said = IntermediateCounts()
        said.add(read_intermediates(turn), self.match.truths(read))
        self._tally.join(said)
        info = {"move": played | {"status": "ok"}, "intermediate": said.record()}
        news = self.match.play(read)
        if self.match.score is None:
            return GoesOn(f"{news}\n\n{self.match.position()}", info)
        return Ended(encodable(move), sum(self._parts("answered").values()), self.match.won, info=info)

    def end_info(self, end: str) -> Mapping[str, Any]:
        """Return the ``info`` of the whole game: outcome, intermediate answers, illegal moves, reward components."""
        return {
            "outcome": self._outcome,
            "intermediate": self._tally.record(),
            "illegal_moves": self._illegal,
            "reward_components": self._parts(end),
        }

    def answer_tags(self) -> int:
        """Count the answers of the last turn only, since the rules require one answer per turn."""
        return self.dialect.answer_tags(self.turns[-1:])

    @property
    def _outcome(self) -> float:
        return self.match.score if self.match is not None and self.match.score is not None else 0.0

    def _parts(self, end: str) -> dict[str, float]:
        if end != "answered":
            return {"outcome": 0.0, "intermediate": 0.0}
        return {"outcome": (1 - self._weight) * self._outcome, "intermediate": self._weight * self._tally.f1}

    def oracle_turn(self) -> str:
        """Return the turn of a player that knows the opponent: correct intermediate answers and the best move.

        This method is only for tests and reference scores: the player reads the match, which agents must not do.
        """
        assert self.match is not None
        move = self.match.best()
        truths = self.match.truths(self.match.read(move))
        lines = [write_intermediate(number, truth) for number, truth in enumerate(truths, 1)]
        return "\n".join([*lines, self.dialect.format_answer(move)])

    def random_turn(self, rng: np.random.Generator) -> str:
        """Return the turn of the random baseline: a random legal move without intermediate answers.

        If the match has no ``guess(rng)``, return a random integer, which may not be a legal move.
        """
        guess = getattr(self.match, "guess", None)
        return self.dialect.format_answer(guess(rng) if callable(guess) else str(int(rng.integers(100))))


def register(env_id: str, game: type[Game]) -> type[GameEnv]:
    """Create the environment of a game and register its Gymnasium id.

    Args:
        env_id: The Gymnasium id, such as "rstar2/TicTacToe-v0".
        game: A class at the top level of its module. The environment's class (``TicTacToeEnv`` for ``TicTacToe``) is
            added to the same module.
    """
    env = environment_class(GameEnv, game)
    gym.register(env_id, entry_point=f"{env.__module__}:{env.__qualname__}")
    return env
