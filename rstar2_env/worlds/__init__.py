"""The procedural worlds: what a puzzle family is, and the solvers and parsers that families share."""

from __future__ import annotations

from rstar2_env.worlds.puzzle import Puzzle, PuzzleGrader, UnreadableAnswerError
from rstar2_env.worlds.reading import plain

__all__ = ["Puzzle", "PuzzleGrader", "UnreadableAnswerError", "plain"]
