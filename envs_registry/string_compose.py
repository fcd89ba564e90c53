"""``rstar2/StringCompose-v0``: predict the result of a composition of string functions, at levels 1 to 8."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, UnreadableAnswerError, knob, register
from rstar2_env.worlds.compose import compose, letters
from rstar2_env.worlds.reading import output_string, plain, unquoted
from rstar2_env.worlds.string_functions import functions

_QUESTION = """\
{known}

{program}

What does main_solution("{text}") return? Answer with that string alone, without quotation marks."""
_SHOWN, _HIDDEN = "This is a Python program:", "This Python program calls functions that you know by their names:"


@dataclass(frozen=True)
class StringCompose(Puzzle):
    r"""Predict the result of a composition of string functions.

    ## Puzzle
    ``main_solution`` nests calls of ``func_0`` to ``func_24`` to the depth ``level``. With probability 0.2 a call takes
    two strings (``+`` or an interlacing function), otherwise one string. Of the calls with one string, 1 in 50 is a
    method such as ``.upper()``; half of the others have a parameter. A leaf is the input (3 to 10 lower-case letters)
    or a literal of 3 to 6 letters. The split train uses ``func_0`` to ``func_12``, the other splits ``func_13`` to
    ``func_24``.

    ## Answer
    The exact string, case included. One pair of quotation marks around it, surrounding white space, ``\text{}`` and a
    backslash before ``_`` are ignored; ``{"output": "…"}`` is accepted too.

    ## Difficulty
    ``level=2`` (1 to 8), ``show_source=True``, ``functions="split"`` ("train", "eval", "all"), ``longest=100``. The
    first stage of "From f(x) and g(x) to f(g(x))" (arXiv 2509.25123) is ``level=1, functions="all"``; the second stage
    is ``show_source=False``, which shows only the names of the functions.

    ## Random baseline
    0.017: the player does not apply the functions, and answers with the input string. The random player earns more at
    level 1, and hardly anything at level 4.
    """

    name = "string_compose"
    random_baseline = 0.017
    level: int = knob(2, 1, 8)
    show_source: bool = knob(True)
    functions: str = knob("split", choices=("split", "train", "eval", "all"))
    longest: int = knob(100, 20, 500)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw an input and a composition of functions.

        The result is ``None`` if the composition ignores the input, or if its output is empty or too long.
        """
        chosen = self.functions if self.functions != "split" else "train" if split == "train" else "eval"
        pool = [function for function in functions().values() if chosen in ("all", function.split)]
        text = letters(rng, 3, 10)
        made = compose(text, self.level, pool, self.longest, rng)
        if made is None or not made.reads_input or not made.value:
            return None
        program, known = made.program(self.show_source), _SHOWN if self.show_source else _HIDDEN
        question = _QUESTION.format(known=known, program=program, text=text)
        titles, whole = [function.title for function in made.functions], made.program(True)
        meta = {"input": text, "output": made.value, "level": self.level, "functions": titles, "program": whole}
        return Draft(question, made.value, f"{made.expression} of {text}", meta)

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether the answer, plain, in quotation marks or in JSON, is the string that the program returns."""
        text = plain(answer)
        if not text.startswith("{"):
            return bool(meta["output"] in (text, unquoted(text)))
        if (told := output_string(text)) is None:
            raise UnreadableAnswerError(f'expected a string or {{"output": "..."}}, got {answer[:80]!r}')
        return bool(told == meta["output"])

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return the unchanged input: an answer without any knowledge of the functions."""
        return str(meta["input"])


register("rstar2/StringCompose-v0", StringCompose)
