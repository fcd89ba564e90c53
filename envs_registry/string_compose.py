"""``rstar2/StringCompose-v0``: what a composition of string functions returns ("f(g(x))"), at levels 1 to 8."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rstar2_env.errors import ConfigurationError
from rstar2_env.problems import Draft
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.compose import compose, letters
from rstar2_env.worlds.puzzle import Puzzle, UnreadableAnswerError
from rstar2_env.worlds.reading import plain, unquoted
from rstar2_env.worlds.string_functions import functions

_SETS = ("split", "train", "eval", "all")
_QUESTION = """\
{known}

{program}

What does main_solution("{text}") return? Answer with that string alone, without quotation marks."""
_SHOWN, _HIDDEN = "This is a Python program:", "This Python program calls functions that you know by their names:"


@dataclass(frozen=True)
class StringCompose(Puzzle):
    """Compositions of named string functions.

    Args:
        level: How deeply the calls are nested.
        show_source: Show the functions' definitions; else their names alone.
        functions: Which set they are drawn from: "train", "eval", "all", or "split" for "train" in the split train and
            "eval" in the others.
        longest: Longest string that any call may return, in characters.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "string_compose"
    level: int = 2
    show_source: bool = True
    functions: str = "split"
    longest: int = 100

    def __post_init__(self) -> None:
        self.require("level", 1, 8)
        self.require("longest", 20, 500)
        if self.functions not in _SETS:
            raise ConfigurationError(f"functions of {self.name} must be one of {_SETS}, not {self.functions!r}.")
        if not isinstance(self.show_source, bool):
            raise ConfigurationError(f"show_source of {self.name} must be true or false, not {self.show_source!r}.")

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw an input and a composition; ``None`` if it ignores the input, or returns nothing or too much."""
        chosen = self.functions if self.functions != "split" else "train" if split == "train" else "eval"
        pool = [function for function in functions().values() if chosen in ("all", function.split)]
        text = letters(rng, 3, 10)
        made = compose(text, self.level, pool, self.longest, rng)
        if made is None or not made.reads_input or not made.value:
            return None
        program = made.program(self.show_source)
        question = _QUESTION.format(known=_SHOWN if self.show_source else _HIDDEN, program=program, text=text)
        meta = {
            "input": text,
            "output": made.value,
            "level": self.level,
            "functions": [function.title for function in made.functions],
            "program": made.program(True),
        }
        return Draft(question, made.value, f"{made.expression} of {text}", meta)

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether the answer is the string that the program returns, letter by letter."""
        text = plain(answer)
        if text.startswith("{"):
            try:
                told = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise UnreadableAnswerError(f"expected a string or its JSON object, got {answer[:80]!r}") from error
            if not isinstance(told, dict) or not isinstance(told.get("output"), str):
                raise UnreadableAnswerError('expected {"output": "..."}')
            return bool(told["output"] == meta["output"])
        return bool(meta["output"] in (text, unquoted(text)))

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """The input as it is: what no knowledge of the functions would change."""
        return str(meta["input"])


class StringComposeEnv(PuzzleEnv):
    r"""Say what a composition of string functions returns: does learning f(x) and g(x) teach f(g(x))?

    ## Puzzle
    ``main_solution`` nests calls of ``func_0`` to ``func_24``, ``level`` deep. A node is with probability 0.2 of two
    strings (``+`` or an interlacing function), else of one (1 in 50 a method such as ``.upper()``, the others half with
    a parameter, half without); a leaf is the input (3 to 10 small letters) or a literal of 3 to 6. The functions of
    the split train (``func_0`` to ``func_12``) and of the other splits (``func_13`` to ``func_24``) are disjoint.

    ## Answer
    The string, letter by letter, case included. One pair of quotation marks around it, white space outside, ``\text{}``
    and a backslash before ``_`` do not matter; ``{"output": "…"}`` is read too.

    ## Difficulty
    ``level=2`` (1 to 8), ``show_source=True``, ``functions="split"`` ("train", "eval", "all"), ``longest=100``. F28's
    first stage is ``level=1, functions="all"``; its second ``show_source=False``, where names are all that is shown.

    ## Random baseline
    0.017: the input, unchanged; 0.026 in the split test. At level 1 0.10 and 0.14, at level 4 below 0.001.

    ## Version history
    v0: the first.
    """

    puzzle = StringCompose
    random_baseline = 0.017


register("rstar2/StringCompose-v0", StringComposeEnv)
