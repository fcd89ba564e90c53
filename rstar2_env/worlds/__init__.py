"""Procedural puzzles and games: the base classes of families, and the solvers and parsers that families share."""

from __future__ import annotations

from rstar2_env.worlds.family import Family, knob
from rstar2_env.worlds.puzzle import Puzzle, PuzzleGrader, UnreadableAnswerError
from rstar2_env.worlds.reading import plain

__all__ = ["Family", "Puzzle", "PuzzleGrader", "UnreadableAnswerError", "knob", "plain"]
