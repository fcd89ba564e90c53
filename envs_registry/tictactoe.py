"""``rstar2/TicTacToe-v0``: tic-tac-toe against a scripted opponent, with graded intermediate answers."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.env.game_env import Game, knob, register
from rstar2_env.worlds.board import Board, BoardMatch

_RULES = """\
Tic-tac-toe. The board has nine cells, numbered 1 to 9 row by row from the top left. You are X, the opponent is O, and \
you take turns. Three of one's own marks in a row, column or diagonal win.
In every turn, before your move, answer two questions about the position in front of you, each on a line of its own, \
with cell numbers separated by commas, or with the word none:
[Intermediate Thinking Results 1: the cells with which you would win at once]
[Intermediate Thinking Results 2: the cells with which the opponent would win at once, if it were to move]
Then give the number of a free cell as your move."""


@dataclass(frozen=True)
class TicTacToe(Game):
    r"""Tic-tac-toe over several turns, each with two verifiable intermediate questions.

    ## Game
    A move is a cell from 1 to 9. The intermediate questions (as in GAMEBoT, arXiv 2412.13602) ask for the cells with
    which the policy, and the opponent, would win in one move. The outcome is 1 for a win, 0.5 for a draw, 0 for a loss.

    ## Difficulty
    ``strength=0.5`` (0 to 1): probability that the opponent looks for a winning move or, without one, for a move
    that blocks the policy's win. If the opponent does not look for these moves, or finds none, its move is random. A
    player that can predict the opponent's moves earns 1.0: matches that cannot be won are not used.

    ## Random baseline
    0.24: the player makes random legal moves, gives no intermediate answers, and wins 0.21 of the matches. Measured
    over 300 matches.
    """

    name = "tictactoe"
    random_baseline = 0.24
    rules = _RULES
    turns = 10
    strength: float = knob(0.5, 0, 1)

    def start(self, seed: int) -> BoardMatch | None:
        """Return the match that a seed generates; ``None`` if the opponent cannot be beaten in it."""
        match = BoardMatch(Board(3, 3, 3, drop=False), seed, self.strength)
        return match if match.winnable() else None


register("rstar2/TicTacToe-v0", TicTacToe)
