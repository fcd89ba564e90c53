"""``rstar2/TicTacToe-v0``: tic-tac-toe against a scripted opponent, with graded intermediate answers (GAMEBoT, F30)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from rstar2_env.errors import ConfigurationError
from rstar2_env.tools import Tool
from rstar2_env.vector_env import vector_entry_point

from ._board import Board, BoardMatch
from ._game import GameEnv

_RULES = """\
Tic-tac-toe. The board has nine cells, numbered 1 to 9 row by row from the top left. You are X, the opponent is O, and \
you take turns. Three of one's own marks in a row, column or diagonal win.
In every turn, before your move, answer two questions about the position in front of you, each on a line of its own, \
with cell numbers separated by commas, or with the word none:
[Intermediate Thinking Results 1: the cells with which you would win at once]
[Intermediate Thinking Results 2: the cells with which the opponent would win at once, if it were to move]
Then give the number of a free cell as your move."""


@dataclass(frozen=True, slots=True)
class TicTacToe:
    """The rules, and how strong the opponent is.

    Attributes:
        strength: Chance that the opponent looks for wins and blocks in a position, from 0 to 1.
    """

    strength: float = 0.5
    name = "tictactoe"
    rules = _RULES

    def __post_init__(self) -> None:
        """Refuse what is no chance.

        Raises:
            ConfigurationError: The strength is not from 0 to 1.
        """
        if not 0 <= self.strength <= 1:
            raise ConfigurationError(f"strength must be from 0 to 1, not {self.strength!r}.")

    def start(self, seed: int) -> BoardMatch | None:
        """The match of that seed; none where the opponent cannot be beaten."""
        match = BoardMatch(Board(3, 3, 3, drop=False), seed, self.strength)
        return match if match.winnable() else None


class TicTacToeEnv(GameEnv):
    r"""Tic-tac-toe over several turns, each with two questions that can be checked.

    ## Action space
    Any string: the policy's whole turn. The move is the dialect's answer (``<answer>\boxed{5}</answer>``), a cell from
    1 to 9. Intermediate answers stand in ``[Intermediate Thinking Results 1: ...]`` and ``... 2: ...``.

    ## Observation space
    Any string: the rules and the board; then the opponent's move and the board.

    ## Reward
    At the end ``(1 - intermediate_weight) * outcome + intermediate_weight * F1``. The outcome is 1 for a win, 0.5 for a
    draw, 0 for a loss; F1 is that of all cells named in the intermediate answers of the game, where a question that was
    not answered misses at least one. A game that is forfeited or not finished earns 0. ``correct`` means won.

    ## Episode end
    ``terminated``: the game is over (``answered``), or ``illegal_moves`` moves could not be played (``no_answer``). A
    turn with a legal move goes on, which is how this world differs from those with one question. ``truncated``:
    ``turns``, ``tokens``, ``time`` or ``unavailable``.

    ## Information
    As in ``rstar2/MathTool-v0``; beside it ``move`` (``text``; ``status``: ``ok``, ``illegal`` or ``unparsable``),
    ``intermediate`` (``tp``, ``fp``, ``fn``, ``tn``, ``missing``, ``f1``: of the turn, and at the end of the game), and
    at the end ``outcome``, ``illegal_moves`` and ``reward_components`` (``outcome``, ``intermediate``).
    ``answer_tags`` is that of the last turn.

    ## Difficulty
    ``strength=0.5`` (0 to 1). A player who knows the opponent earns 1.0: matches that nobody can win are not drawn.

    ## Random baseline
    0.24: any legal move, no intermediate answers; 0.21 of the matches are won. Over 300 matches.

    ## Version history
    v0: the first.

    Args:
        strength: Chance that the opponent looks for wins and blocks in a position, from 0 to 1.
        split: "train", "validation" or "test"; no match is in two of them.
        tools: Tools that the policy may call on the way.
        illegal_moves: Moves that cannot be played after which the game is lost.
        intermediate_weight: Share of the reward that the intermediate answers decide.
        **options: What ``ToolEnv`` takes: ``max_turns``, ``dialect``, ...
    """

    random_baseline = 0.24

    def __init__(
        self,
        *,
        strength: float = 0.5,
        split: str = "train",
        tools: Sequence[Tool] = (),
        illegal_moves: int = 3,
        intermediate_weight: float = 0.2,
        **options: Any,
    ) -> None:
        super().__init__(
            TicTacToe(strength),
            defaults={"strength": 0.5},
            options={"strength": strength},
            split=split,
            tools=tools,
            illegal_moves=illegal_moves,
            intermediate_weight=intermediate_weight,
            more={"max_turns": 10, **options},
        )


gym.register(
    "rstar2/TicTacToe-v0",
    entry_point="rstar2_env.envs_registry.tictactoe:TicTacToeEnv",
    vector_entry_point=vector_entry_point("rstar2/TicTacToe-v0"),
)
