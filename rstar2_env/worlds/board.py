"""Games such as tic-tac-toe, against an opponent whose moves depend only on its seed and the position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from rstar2_env.worlds.game import IllegalMoveError, draw

MINE, THEIRS, FREE = "X", "O", "."


@dataclass(frozen=True, slots=True)
class Board:
    """Geometry of a board; a position is a string of ``rows * columns`` marks, row by row from the top.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        need: Number of adjacent marks in a line (a row, a column or a diagonal) that win.
        drop: Whether a move names a column, in which the mark falls to the lowest free cell; otherwise a move names a
            cell.
    """

    rows: int
    columns: int
    need: int
    drop: bool

    @property
    def empty(self) -> str:
        """The board before the first move."""
        return FREE * (self.rows * self.columns)

    def moves(self, board: str) -> list[int]:
        """Numbers of the legal moves, counted from 1."""
        return [place + 1 for place, mark in enumerate(board[: self.columns] if self.drop else board) if mark == FREE]

    def cell(self, board: str, move: int) -> int:
        """Index of the cell in which the mark of a move ends up."""
        if not self.drop:
            return move - 1
        column = board[move - 1 :: self.columns]
        return column.rindex(FREE) * self.columns + move - 1

    def place(self, board: str, move: int, mark: str) -> tuple[str, bool]:
        """Play a move.

        Args:
            board: The position.
            move: Number of the move, counted from 1.
            mark: "X" or "O".

        Returns:
            The new position, and whether the move wins.
        """
        cell = self.cell(board, move)
        after = board[:cell] + mark + board[cell + 1 :]
        lines = _lines_through(self.rows, self.columns, self.need)[cell]
        return after, any(all(after[place] == mark for place in line) for line in lines)

    def winning(self, board: str, mark: str) -> list[int]:
        """The moves with which ``mark`` would win immediately."""
        return [move for move in self.moves(board) if self.place(board, move, mark)[1]]

    def show(self, board: str) -> str:
        """The board as text; if a move names a cell, free cells show their numbers."""
        rows = []
        for row in range(self.rows):
            cells = range(row * self.columns, (row + 1) * self.columns)
            rows.append(" ".join(str(i + 1) if board[i] == FREE and not self.drop else board[i] for i in cells))
        if self.drop:
            rows.append(" ".join(str(column + 1) for column in range(self.columns)))
        return "\n".join(rows)


@dataclass(slots=True)
class BoardMatch:
    """A game on a board, between the policy ("X") and a scripted opponent ("O").

    Attributes:
        rules: The geometry of the board.
        seed: Seed of the opponent's choices.
        strength: Probability that the opponent looks for wins and threats in a position; otherwise it plays a random
            move.
        search: Number of random move sequences that the search for a win tries; ``None`` tries all sequences.
        board: The current position.
        score: 1 if the policy won, 0.5 for a draw, 0 if it lost; ``None`` until the game is over.
    """

    rules: Board
    seed: int
    strength: float
    search: int | None = None
    board: str = ""
    score: float | None = None
    _book: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the board; the opponent begins in half of the matches."""
        if not self.board:
            self.board = self.rules.empty
            if draw(self.seed, "begins") < 0.5:
                self.board, _ = self.rules.place(self.board, self.reply(self.board), THEIRS)

    @property
    def won(self) -> bool:
        """Whether the policy won."""
        return self.score == 1.0

    def position(self) -> str:
        """The board and the legal moves, as text."""
        free = ", ".join(map(str, self.rules.moves(self.board)))
        return f"The board now:\n{self.rules.show(self.board)}\nYou can play: {free}"

    def read(self, move: str) -> int:
        """Return the number of the move in the policy's text."""
        text = move.strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 3):
            raise IllegalMoveError("unparsable", "Your move is not a number.")
        if int(text) not in self.rules.moves(self.board):
            free = ", ".join(map(str, self.rules.moves(self.board)))
            raise IllegalMoveError("illegal", f"You cannot play {int(text)}; you can play {free}.")
        return int(text)

    def truths(self, move: int) -> tuple[frozenset[str], ...]:
        """Return two sets: the moves that win for the policy now, and the moves that would win for the opponent now."""
        return tuple(frozenset(map(str, self.rules.winning(self.board, mark))) for mark in (MINE, THEIRS))

    def play(self, move: int) -> str:
        """Play the policy's move and the opponent's reply; return a description of both."""
        self.board, reply, self.score = self.outcome(self.board, move)
        return f"You played {move}. " + (f"The opponent played {reply}." if reply else "")

    def outcome(self, board: str, move: int) -> tuple[str, int, float | None]:
        """Play ``move`` and then, unless it ends the game, the opponent's reply; the match itself does not change.

        Returns:
            The new board, the reply (0 if there is none), and the score (``None`` if the game has not ended).
        """
        board, wins = self.rules.place(board, move, MINE)
        if wins:
            return board, 0, 1.0
        if FREE not in board:
            return board, 0, 0.5
        reply = self.reply(board)
        board, loses = self.rules.place(board, reply, THEIRS)
        if loses:
            return board, reply, 0.0
        return board, reply, None if FREE in board else 0.5

    def reply(self, board: str) -> int:
        """The opponent's move.

        With probability ``strength``, it is a winning or else a blocking move, if there is one; otherwise it is random.
        """
        choice = self.rules.moves(board)
        if draw(self.seed, "looks", board) < self.strength:
            choice = self.rules.winning(board, THEIRS) or self.rules.winning(board, MINE) or choice
        return choice[int(draw(self.seed, "plays", board) * len(choice))]

    def best(self) -> str:
        """Return the next move of a winning sequence; if none is known, a blocking move, else the first legal move."""
        if self.board not in self._book:
            self._book |= self._line(self.board)
        return str(self._book.get(self.board) or self._safe())

    def guess(self, rng: np.random.Generator) -> str:
        """Return a random legal move."""
        moves = self.rules.moves(self.board)
        return str(moves[int(rng.integers(len(moves)))])

    def winnable(self) -> bool:
        """Whether a sequence of moves was found that wins against this opponent."""
        return self.best() != "" and self.board in self._book

    def _safe(self) -> int:
        moves = self.rules.winning(self.board, MINE) or self.rules.winning(self.board, THEIRS)
        return (moves or self.rules.moves(self.board))[0]

    def _line(self, board: str) -> dict[str, int]:
        """Search for a sequence of the policy's moves that wins from the position ``board``.

        Returns:
            The policy's move in each position of the sequence; empty if none was found.
        """
        if self.search is None:
            return self._exhaustive(board, set()) or {}
        for attempt in range(self.search):
            line: dict[str, int] = {}
            here, score = board, None
            while score is None:
                moves = self.rules.winning(here, MINE) or self.rules.moves(here)
                line[here] = moves[int(draw(self.seed, "tries", attempt, here) * len(moves))]
                here, _, score = self.outcome(here, line[here])
            if score == 1.0:
                return line
        return {}

    def _exhaustive(self, board: str, lost: set[str]) -> dict[str, int] | None:
        if board in lost:
            return None
        for move in self.rules.winning(board, MINE) or self.rules.moves(board):
            after, _, score = self.outcome(board, move)
            if score == 1.0:
                return {board: move}
            if score is None and (rest := self._exhaustive(after, lost)) is not None:
                return {board: move} | rest
        lost.add(board)
        return None


@cache
def _lines_through(rows: int, columns: int, need: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    through: list[list[tuple[int, ...]]] = [[] for _ in range(rows * columns)]
    for line in _lines(rows, columns, need):
        for cell in line:
            through[cell].append(line)
    return tuple(map(tuple, through))


def _lines(rows: int, columns: int, need: int) -> Iterator[tuple[int, ...]]:
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                last_row, last_column = row + down * (need - 1), column + right * (need - 1)
                if last_row < rows and 0 <= last_column < columns:
                    yield tuple((row + down * n) * columns + column + right * n for n in range(need))
