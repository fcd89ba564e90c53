"""The family ``gsm_symbolic``: reasoning-gym's templates of GSM8K (arXiv 2410.05229), split by template.

Each of the 85 templates whose answers reasoning-gym marks as reliable belongs to one split, so no story of the test
split is known from training, not even with other numbers. ``meta["program"]`` computes the answer if it can be read
from the equations in reasoning-gym's worked solution; otherwise ``meta`` has no ``program``. Not covered: units, and
the templates with doubtful answers.
"""

from __future__ import annotations

import importlib
import re
from fractions import Fraction
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np

from rstar2_env.core.errors import MissingExtraError
from rstar2_env.core.options.declare import checked
from rstar2_env.problems.families import FAMILIES
from rstar2_env.problems.procedural import Draft, ProceduralSource, source_name

_EQUATION = re.compile(
    r"(?P<left>[\d(][\d.,$()+\-*/×÷ ]*[+\-*/×÷][\d.,$()+\-*/×÷ ]*?)\s*=\s*\$?(?P<right>\d[\d,]*(?:\.\d+)?)"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_COMMON = frozenset({"1", "2", "3", "4", "5", "6", "7", "10", "12", "24", "30", "52", "60", "100", "365"})
"""Numbers that a solution may use although the question does not state them: days of a week, dozens, percent."""
_SPELLING = str.maketrans({"×": "*", "÷": "/", "$": None, ",": None, " ": None})


@checked
def gsm_symbolic(*, split: str = "train", seed: int = 0) -> ProceduralSource:
    """Return one split of the family ``gsm_symbolic``.

    Args:
        split: "train", "validation" or "test". Two splits never share a template.
        seed: Seed, 0 or more; each seed gives another unlimited sequence of problems.

    Raises:
        ConfigurationError: The split is unknown.
        MissingExtraError: reasoning-gym is not installed.
    """
    _module()
    name = source_name("gsm_symbolic", {"seed": seed}, {"seed": 0})
    return ProceduralSource(name, partial(draw, split=split), split, seed)


def templates(split: str) -> tuple[int, ...]:
    """Return the numbers of a split's templates in reasoning-gym: validation has a tenth of them, test two tenths.

    Args:
        split: "train", "validation" or "test".

    Raises:
        MissingExtraError: reasoning-gym is not installed.
    """
    places = {"validation": (9,), "test": (3, 7)}.get(split, (0, 1, 2, 4, 5, 6, 8))
    return tuple(number for at, number in enumerate(sorted(_module().tasks_ok)) if at % 10 in places)


def draw(rng: np.random.Generator, /, *, split: str) -> Draft | None:
    """Draw one instance of a template of the split.

    Args:
        rng: The generator of random numbers.
        split: The split whose templates are used.
    """
    numbers = templates(split)
    template = numbers[int(rng.integers(len(numbers)))]
    entry = _generators()[template](Random(int(rng.integers(2**62))), 1.0)
    question, answer = str(entry["question"]), str(entry["answer"])
    meta: dict[str, Any] = {"template": template}
    program = program_of(str(entry["metadata"].get("answer_cot") or ""), answer, question)
    if program is not None:
        meta["program"] = program
    return Draft(question, answer, question, meta)


def program_of(solution: str, answer: str, question: str) -> str | None:
    """Return a program that repeats the equations of a worked solution; ``None`` if they do not lead to the answer.

    A number that an earlier equation produced is replaced with that equation's variable. Equations that are not true
    are left out, and so are equations on which the result does not depend.

    Args:
        solution: The solution, with equations such as ``35 × 3 = 105``.
        answer: The answer that the program must print.
        question: The question. Every number of the program must occur in it or be a common number, such as 7 or
            100; otherwise the result is ``None``.
    """
    results: dict[Fraction, str] = {}
    lines: list[tuple[str, str]] = []
    last = None
    for match in _EQUATION.finditer(solution):
        left = match["left"].translate(_SPELLING).strip("+-*/")
        right = Fraction(match["right"].replace(",", ""))
        if _value(left) != right or right in results:
            continue
        name = chr(ord("a") + len(lines))
        lines.append((name, _NUMBER.sub(lambda number: results.get(Fraction(number[0]), number[0]), left)))
        results[right] = name
        if right == _fraction(answer):
            last = len(lines)
        if len(lines) == 20:
            break
    if last is None:
        return None
    needed, kept = {lines[last - 1][0]}, list[str]()
    for name, left in reversed(lines[:last]):
        if name in needed:
            needed |= set(re.findall(r"[a-z]", left))
            kept.append(f"{name}={left}")
    known = _COMMON | set(_NUMBER.findall(question.replace(",", "")))
    if not all(number in known for line in kept for number in _NUMBER.findall(line)):
        return None
    value = kept[0].partition("=")[2]
    return "\n".join([*reversed(kept[1:]), f"print({value})" if "/" not in value else f"print(round({value}, 6))"])


def _value(expression: str) -> Fraction | None:
    """Return the exact value of an expression of numbers, brackets and the four operations; else ``None``."""
    if not re.fullmatch(r"[\d.()+\-*/]{1,80}", expression) or "**" in expression or "//" in expression:
        return None
    try:
        found = eval(_NUMBER.sub(lambda number: f"F('{number[0]}')", expression), {"__builtins__": {}}, {"F": Fraction})
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError):
        return None
    return found if isinstance(found, Fraction) else None


def _fraction(text: str) -> Fraction | None:
    try:
        return Fraction(text.replace(",", ""))
    except ValueError:
        return None


def _module() -> Any:
    try:
        return importlib.import_module("reasoning_gym.arithmetic.gsm_symbolic.gsm_symbolic")
    except ImportError as error:
        raise MissingExtraError("reasoning-gym", "The family 'gsm_symbolic'") from error


@cache
def _generators() -> Any:
    return importlib.import_module("reasoning_gym").create_dataset("gsm_symbolic", seed=0, size=1).generators


FAMILIES.register("gsm_symbolic", gsm_symbolic)
