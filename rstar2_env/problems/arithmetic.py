"""The family ``arithmetic``: short word problems whose answer is one small expression over whole numbers.

The text is plain ASCII with few distinct characters, so that a tiny character-level model can learn to read it; the
numbers are large enough that calling the tool is worthwhile. ``meta`` contains the ``expression`` whose value is the
answer, and its ``operands``. The number of objects in a story never falls below 1. Not covered: fractions, negative
numbers, more than four operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

import numpy as np

from rstar2_env.core.options.declare import Rule, checked
from rstar2_env.problems.families import FAMILIES
from rstar2_env.problems.procedural import Draft, ProceduralSource, source_name

T = TypeVar("T")

_NAMES = ("Ann", "Ben", "Mia", "Sam", "Tom")
_ITEMS = ("pens", "nuts", "figs", "eggs", "coins")
_LARGEST_FACTOR = 9
_DIVISORS = range(2, 13)


class _Level(NamedTuple):
    least: int
    most: int
    events: tuple[str, ...]


_LEVELS = {
    1: _Level(1, 1, ("gain", "loss")),
    2: _Level(2, 2, ("gain", "loss", "packs", "gifts")),
    3: _Level(2, 3, ("gain", "loss", "packs", "gifts", "times")),
    4: _Level(3, 3, ("gain", "loss", "packs", "gifts", "times", "share")),
    5: _Level(4, 4, ("gain", "loss", "packs", "gifts", "times", "share")),
}
_OPERATIONS = {"gain": 1, "loss": 1, "packs": 2, "gifts": 2, "times": 1, "share": 1}
_WORDS = {
    "gain": ("gets {0} more", "buys {0} more", "finds {0} more"),
    "loss": ("loses {0}", "sells {0}", "gives away {0}"),
    "packs": ("gets {0} bags of {1}", "buys {0} packs of {1}"),
    "gifts": ("gives {0} friends {1} each", "sells {0} bags of {1}"),
    "times": ("then has {0} times as many",),
    "share": ("makes {0} equal piles", "shares all among {0} kids"),
}
_PER_SHARE = ("in each pile", "per kid")


@checked
def arithmetic(
    *,
    split: str = "train",
    seed: int = 0,
    level: Annotated[int, Rule(least=1, most=5)] = 2,
    max_number: Annotated[int, Rule(least=2)] = 99,
) -> ProceduralSource:
    """Return one split of the family ``arithmetic``.

    Args:
        split: "train", "validation" or "test". Two splits never share an expression, not even with its operands in
            another order, in another story, at another level or from another seed.
        seed: Seed, 0 or more; each seed gives another unlimited sequence of problems.
        level: 1 (one operation) to 5 (four operations with parentheses and division).
        max_number: Largest number in a question, at least 2. The answer can be larger.

    Raises:
        ConfigurationError: An option is out of its range.
    """
    name = source_name(
        "arithmetic",
        {"level": level, "max_number": max_number, "seed": seed},
        {"level": 2, "max_number": 99, "seed": 0},
    )
    return ProceduralSource(name, partial(draw, level=level, max_number=max_number), split, seed)


def draw(rng: np.random.Generator, /, *, level: int, max_number: int) -> Draft | None:
    """Draw one instance; ``None`` if a drawn event does not fit, such as a loss of more objects than there are.

    Args:
        rng: The generator of random numbers.
        level: 1 (one operation) to 5 (four operations with parentheses and division).
        max_number: Largest number in the question.
    """
    rules = _LEVELS[level]
    operations = _between(rng, rules.least, rules.most)
    name, items = _pick(rng, _NAMES), _pick(rng, _ITEMS)
    story = _Story(expression="", value=0, operands=[], events=[])
    story.start(rng, name, items, max_number, rates=operations <= 3)
    question = _pick(rng, (f"How many {items} now?", f"How many {items} has {name}?"))
    while (left := operations - len(story.operands) + 1) > 0:
        kinds = [kind for kind in rules.events if _OPERATIONS[kind] <= left and (kind != "share" or left == 1)]
        kind = _pick(rng, kinds)
        if not story.add(rng, kind, max_number):
            return None
        if kind == "share":
            # The event "share" has two wordings, and each needs its own question.
            question = f"How many {items} {_PER_SHARE[story.wording]}?"
    return Draft(
        question=f"{story.text()} {question}",
        answer=str(story.value),
        key=story.key(),
        meta={
            "expression": story.expression,
            "operands": list(story.operands),
            "operations": operations,
            "level": level,
        },
    )


@dataclass(slots=True)
class _Story:
    """A word problem while it is generated: its events in words, the expression so far, and the expression's value."""

    expression: str
    value: int
    operands: list[int]
    events: list[str]
    wording: int = 0

    def start(self, rng: np.random.Generator, name: str, items: str, largest: int, *, rates: bool) -> None:
        """Begin the story: the person ``name`` has 2 to ``largest`` objects, such as "pens" (``items``).

        With ``rates``, a third of the stories begin with several bags of equally many objects; the expression then
        begins with a product.
        """
        a = _between(rng, 2, largest)
        if rates and rng.integers(3) == 0:
            b = _factor(rng, largest)
            self.expression, self.value, self.operands = f"{a}*{b}", a * b, [a, b]
            self.events.append(f"{name} has {a} bags of {b} {items}")
        else:
            self.expression, self.value, self.operands = str(a), a, [a]
            self.events.append(f"{name} has {a} {items}")

    def add(self, rng: np.random.Generator, kind: str, largest: int) -> bool:
        """Add an event of a kind ("gain", "loss", ...); return ``False`` if there are too few objects for it."""
        numbers: tuple[int, ...]
        if kind == "gain":
            numbers = (_between(rng, 2, largest),)
            self.expression, self.value = f"{self.expression}+{numbers[0]}", self.value + numbers[0]
        elif kind == "loss":
            if self.value < 3:
                return False
            numbers = (_between(rng, 2, min(largest, self.value - 1)),)
            self.expression, self.value = f"{self.expression}-{numbers[0]}", self.value - numbers[0]
        elif kind == "packs":
            numbers = (_between(rng, 2, largest), _factor(rng, largest))
            self.expression = f"{self.expression}+{numbers[0]}*{numbers[1]}"
            self.value += numbers[0] * numbers[1]
        elif kind == "gifts":
            each = _factor(rng, largest)
            if self.value <= 2 * each:
                return False
            numbers = (_between(rng, 2, min(largest, (self.value - 1) // each)), each)
            self.expression = f"{self.expression}-{numbers[0]}*{numbers[1]}"
            self.value -= numbers[0] * numbers[1]
        elif kind == "times":
            numbers = (_factor(rng, largest),)
            self.expression, self.value = f"{self._grouped()}*{numbers[0]}", self.value * numbers[0]
        else:
            fitting = [number for number in _DIVISORS if number <= largest and self.value % number == 0]
            if not fitting:
                return False
            numbers = (_pick(rng, fitting),)
            self.expression, self.value = f"{self._grouped()}//{numbers[0]}", self.value // numbers[0]
        self.wording = int(rng.integers(len(_WORDS[kind])))
        self.events.append(_WORDS[kind][self.wording].format(*numbers))
        self.operands.extend(numbers)
        return True

    def text(self) -> str:
        """The events as one sentence."""
        if len(self.events) == 1:
            return f"{self.events[0]}."
        return f"{', '.join(self.events[:-1])} and {self.events[-1]}."

    def key(self) -> str:
        """Sorted operations and sorted operands; equal for all stories of the same computation."""
        signs = sorted(sign for sign in self.expression if sign in "+-*/")
        return f"{''.join(signs)} {','.join(map(str, sorted(self.operands)))}"

    def _grouped(self) -> str:
        return f"({self.expression})" if "+" in self.expression or "-" in self.expression else self.expression


def _between(rng: np.random.Generator, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def _factor(rng: np.random.Generator, largest: int) -> int:
    return _between(rng, 2, min(_LARGEST_FACTOR, largest))


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


FAMILIES.register("arithmetic", arithmetic)
