"""``rstar2/Connect4-v0``: connect four against a scripted opponent, with graded intermediate answers."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.env.game_env import Game, knob, register
from rstar2_env.worlds.board import Board, BoardMatch

_RULES = """\
Connect four. The board has six rows and seven columns, numbered 1 to 7 from the left. You are X, the opponent is O, \
and you take turns. A mark falls to the lowest free cell of its column. Four of one's own marks in a row, column or \
diagonal win.
In every turn, before your move, answer two questions about the position in front of you, each on a line of its own, \
with column numbers separated by commas, or with the word none:
[Intermediate Thinking Results 1: the columns with which you would win at once]
[Intermediate Thinking Results 2: the columns with which the opponent would win at once, if it were to move]
Then give the number of a column that is not full as your move."""

_TRIES = 200
"""Maximum number of random move sequences to try in the search for one that wins; most matches need fewer than ten."""


@dataclass(frozen=True)
class Connect4(Game):
    r"""Connect four over several turns, each with two verifiable intermediate questions.

    ## Game
    A move is a column from 1 to 7. The intermediate questions (as in GAMEBoT, arXiv 2412.13602) ask for the columns
    with which the policy, and the opponent, would win in one move. The outcome is 1 for a win, 0.5 for a draw, 0 for a
    loss.

    ## Difficulty
    ``strength=0.8`` (0 to 1): probability that the opponent looks for a winning move or, without one, for a move
    that blocks the policy's win. If the opponent does not look for these moves, or finds none, its move is random. A
    player that can predict the opponent's moves earns 1.0: matches without a known winning sequence of moves are not
    used.

    ## Random baseline
    0.06: the player makes random legal moves, gives no intermediate answers, and wins 0.07 of the matches. Measured
    over 300 matches.
    """

    name = "connect4"
    random_baseline = 0.06
    rules = _RULES
    turns = 30
    strength: float = knob(0.8, 0, 1)

    def start(self, seed: int) -> BoardMatch | None:
        """Return the match that a seed generates; ``None`` if no winning sequence of moves was found."""
        match = BoardMatch(Board(6, 7, 4, drop=True), seed, self.strength, search=_TRIES)
        return match if match.winnable() else None


register("rstar2/Connect4-v0", Connect4)
