"""The family ``word_arithmetic``: word problems of three to five steps with numbers up to 999.

A problem is a story and a question. Each sentence of the story is one line of the program in ``meta["program"]``, whose
output is the answer. The sentences of the test split are in no other split, so the test split measures whether a policy
understands sentences that occurred neither in traces nor in training. No computation is in two splits either, not even
with its numbers in another order. ``meta["sentences"]`` lists the templates of the problem's sentences. Not covered:
fractions, negative numbers, units that must be converted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeVar

import numpy as np

from rstar2_env.core.options.declare import Rule, checked
from rstar2_env.problems.families import FAMILIES
from rstar2_env.problems.procedural import Draft, ProceduralSource, source_name
from rstar2_env.problems.word_sentences import ITEMS, NAMES, SENTENCES

T = TypeVar("T")

_CHOICE = re.compile(r"\[(.*?)\]")
"""Matches the alternatives in a sentence, as in ``[one|another]``."""
_LARGEST_VALUE = 999_999
_SHARES = range(2, 26)
_PERCENT = (10, 20, 25, 30, 40, 50, 60, 75, 80)

_EVENTS = {"gain": 1, "loss": 1, "packs": 2, "gifts": 2, "times": 1, "percent": 2, "share": 1}
"""Number of arithmetic operations that each kind of event needs; ``share`` can only be the last event of a story."""


@checked
def word_arithmetic(
    *,
    split: str = "train",
    seed: int = 0,
    least_steps: Annotated[int, Rule(least=1, most=5)] = 3,
    most_steps: Annotated[int, Rule(least=1, most=5)] = 5,
    max_number: Annotated[int, Rule(least=50)] = 999,
) -> ProceduralSource:
    """Return one split of the family ``word_arithmetic``.

    Args:
        split: "train", "validation" or "test". Two splits never share a computation; "test" shares no sentence with the
            other two.
        seed: Seed, 0 or more; each seed gives another unlimited sequence of problems.
        least_steps: Smallest number of arithmetic operations of a problem, 1 to 5.
        most_steps: Largest number of operations; if it is below ``least_steps``, no problem can be generated.
        max_number: Largest number in a question, at least 50.

    Raises:
        ConfigurationError: An option is out of its range.
    """
    options = {"least_steps": least_steps, "most_steps": most_steps, "max_number": max_number, "seed": seed}
    name = source_name("word_arithmetic", options, {"least_steps": 3, "most_steps": 5, "max_number": 999, "seed": 0})
    bound = partial(draw, split=split, least_steps=least_steps, most_steps=most_steps, max_number=max_number)
    return ProceduralSource(name, bound, split, seed)


def draw(
    rng: np.random.Generator,
    /,
    *,
    split: str,
    least_steps: int,
    most_steps: int,
    max_number: int,
    sentences: Mapping[str, Sequence[str]] | None = None,
) -> Draft | None:
    """Draw one instance; ``None`` if a drawn event does not fit, such as equal shares that leave a remainder.

    Args:
        rng: The generator of random numbers.
        split: The split; "test" has its own sentences.
        least_steps: Smallest number of operations.
        most_steps: Largest number of operations.
        max_number: Largest number in the question.
        sentences: Sentences by kind of event; ``None`` means the sentences of the split.
    """
    if least_steps > most_steps:
        return None
    steps = int(rng.integers(least_steps, most_steps + 1))
    known = sentences or SENTENCES["test" if split == "test" else "train"]
    story = _Story(known, _pick(rng, NAMES), _pick(rng, ITEMS), max_number)
    story.open(rng, packs=bool(rng.integers(4) == 0))
    while story.steps < steps:
        kinds = [kind for kind, cost in _EVENTS.items() if story.steps + cost <= steps]
        kinds = [kind for kind in kinds if kind != "share" or story.steps + 1 == steps]
        if not story.add(rng, _pick(rng, kinds)):
            return None
    story.say(rng, "ask")
    return Draft(
        question=" ".join(story.sentences),
        answer=str(story.value),
        key=story.key(),
        meta={
            "program": "\n".join([*story.lines, "print(x)"]),
            "operands": list(story.operands),
            "steps": steps,
            "sentences": list(story.used),
        },
    )


@dataclass(slots=True)
class _Story:
    """A word problem while it is generated: its sentences, the program that solves it, and the value so far."""

    known: Mapping[str, Sequence[str]]
    name: str
    items: str
    largest: int
    value: int = 0
    steps: int = 0
    sentences: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    operands: list[int] = field(default_factory=list)
    used: list[str] = field(default_factory=list)

    def open(self, rng: np.random.Generator, *, packs: bool) -> None:
        """Begin the story with a number of objects or, if ``packs`` is true, with boxes of objects (a product)."""
        if packs:
            a, b = _between(rng, 2, 40), _between(rng, 2, 50)
            self._do(rng, "open_packs", (a, b), f"x={a}*{b}", a * b)
        else:
            a = _between(rng, 20, self.largest)
            self._do(rng, "open", (a,), f"x={a}", a)

    def add(self, rng: np.random.Generator, kind: str) -> bool:
        """Add an event of a kind ("gain", "loss", ...); return ``False`` if none fits the value so far."""
        if kind in ("gain", "times"):
            a = _between(rng, 2, self.largest if kind == "gain" else 12)
            line, value = (f"x+={a}", self.value + a) if kind == "gain" else (f"x*={a}", self.value * a)
            return self._do(rng, kind, (a,), line, value)
        if kind == "loss":
            most = min(self.largest, self.value - 1)
            a = _between(rng, 2, most) if most >= 2 else 0
            return bool(a) and self._do(rng, kind, (a,), f"x-={a}", self.value - a)
        if kind == "packs":
            a, b = _between(rng, 2, 40), _between(rng, 2, 50)
            return self._do(rng, kind, (a, b), f"x+={a}*{b}", self.value + a * b)
        if kind == "gifts":
            a, b = _between(rng, 2, 20), _between(rng, 2, 50)
            return self._do(rng, kind, (a, b), f"x-={a}*{b}", self.value - a * b)
        choices = [a for a in (_PERCENT if kind == "percent" else _SHARES) if a <= self.largest]
        fitting = [a for a in choices if (self.value * a % 100 if kind == "percent" else self.value % a) == 0]
        if not fitting:
            return False
        a = _pick(rng, fitting)
        if kind == "percent":
            return self._do(rng, kind, (a,), f"x-=x*{a}//100", self.value - self.value * a // 100)
        return self._do(rng, kind, (a,), f"x//={a}", self.value // a)

    def say(self, rng: np.random.Generator, kind: str, numbers: Sequence[int] = ()) -> None:
        """Add a sentence for an event of a kind ("gain", "loss", ...) with the event's one or two numbers."""
        form = _pick(rng, self.known[kind])
        words = dict(zip("ab", numbers, strict=False))
        drawn = _CHOICE.sub(lambda found: _pick(rng, found[1].split("|")), form)
        self.sentences.append(drawn.format(name=self.name, items=self.items, **words))
        self.used.append(form)

    def key(self) -> str:
        """Sorted operations and sorted numbers; equal for all stories of the same computation."""
        signs = sorted(sign for line in self.lines for sign in line if sign in "+-*/")
        return f"{''.join(signs)} {','.join(map(str, sorted(self.operands)))}"

    def _do(self, rng: np.random.Generator, kind: str, numbers: tuple[int, ...], line: str, value: int) -> bool:
        if not 1 <= value <= _LARGEST_VALUE:
            return False
        self.say(rng, kind, numbers)
        self.lines.append(line)
        self.operands.extend(numbers)
        self.value = value
        self.steps += 1 if kind == "open_packs" else _EVENTS.get(kind, 0)
        return True


def _between(rng: np.random.Generator, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


FAMILIES.register("word_arithmetic", word_arithmetic)
