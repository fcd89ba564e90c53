"""The family ``word_arithmetic``: word problems of three to five steps with numbers up to 999.

A problem is a story of sentences, and each sentence is one line of the program in ``meta["program"]``, whose output is
the answer. The sentences of the test split are in no other split: a policy that only knows the sentences of its traces
and of its training fails on them. No computation is in two splits either, not even with its numbers in another order.
``meta["sentences"]`` names the sentences. Not covered: fractions, negative numbers, units that must be converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeVar

import numpy as np

from rstar2_env.core.options.declare import Rule, checked
from rstar2_env.problems.families import FAMILIES
from rstar2_env.problems.procedural import Draft, ProceduralSource, source_name

T = TypeVar("T")

NAMES = ("Ava", "Omar", "Lena", "Raj", "Ines", "Paul", "Yuki", "Nora", "Hugo", "Zoe", "Ivan", "Maya")
ITEMS = (
    *("apples", "books", "bricks", "buttons", "cards", "coins", "eggs", "letters", "marbles", "pencils", "plates"),
    *("seeds", "shells", "stamps", "stickers", "tickets", "tiles", "toys"),
)

_LARGEST_VALUE = 999_999
_SHARES = range(2, 26)
_PERCENT = (10, 20, 25, 30, 40, 50, 60, 75, 80)

SENTENCES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "train": {
        "open": (
            "{name} has {a} {items}.",
            "{name} starts with {a} {items}.",
            "There are {a} {items} in {name}'s box.",
            "At first {name} owns {a} {items}.",
            "{name} counts {a} {items}.",
            "A shelf holds {a} {items} that belong to {name}.",
            "{name} collected {a} {items}.",
            "In the morning {name} has {a} {items}.",
        ),
        "open_packs": (
            "{name} has {a} boxes with {b} {items} each.",
            "{name} fills {a} bags, and each bag holds {b} {items}.",
            "There are {a} rows of {b} {items} in {name}'s room.",
            "{name} owns {a} packs of {b} {items}.",
            "{name} bought {a} crates with {b} {items} in every crate.",
        ),
        "gain": (
            "{name} gets {a} more.",
            "Then {name} buys {a} more {items}.",
            "A friend gives {name} {a} {items}.",
            "{name} finds {a} other {items}.",
            "After that, {a} {items} are added.",
            "{name} wins {a} {items} in a game.",
            "Another {a} {items} arrive.",
            "{name} picks up {a} more {items} on the way.",
        ),
        "loss": (
            "{name} gives away {a} of them.",
            "Then {name} sells {a} {items}.",
            "{a} {items} get lost.",
            "{name} uses {a} of the {items}.",
            "{name} throws away {a} broken {items}.",
            "A visitor takes {a} {items}.",
            "{name} puts {a} {items} aside for later and no longer counts them.",
            "{a} of the {items} are stolen.",
        ),
        "packs": (
            "{name} buys {a} packs of {b} {items}.",
            "Then {a} boxes arrive, each with {b} {items}.",
            "{a} friends bring {b} {items} each.",
            "{name} adds {a} bags of {b} {items}.",
            "On each of {a} days {name} gets {b} more {items}.",
        ),
        "gifts": (
            "{name} gives {b} {items} to each of {a} friends.",
            "{name} sells {a} bags of {b} {items}.",
            "For {a} days {name} uses {b} {items} a day.",
            "{a} children take {b} {items} each.",
            "{name} hands out {a} packs of {b} {items}.",
        ),
        "times": (
            "Then the number of {items} becomes {a} times as large.",
            "{name} now has {a} times as many as before.",
            "By trading, {name} multiplies the {items} by {a}.",
            "The pile grows to {a} times its size.",
        ),
        "percent": (
            "{name} sells {a}% of the {items}.",
            "{a}% of them get lost.",
            "{name} gives {a}% of the {items} to a school.",
            "{name} uses {a} percent of the {items}.",
        ),
        "share": (
            "{name} shares all of them equally among {a} people and looks at one share.",
            "All {items} are divided into {a} equal piles, and {name} keeps one pile.",
            "{name} splits the {items} evenly between {a} boxes and takes one box.",
            "The {items} are dealt out to {a} players in equal parts, and {name} is one of them.",
        ),
        "ask": (
            "How many {items} does {name} have now?",
            "How many {items} are there in the end?",
            "How many {items} is that?",
            "What is the number of {items} at the end?",
        ),
    },
    "test": {
        "open": (
            "{name}'s collection consists of {a} {items}.",
            "On Monday {a} {items} belonged to {name}.",
            "{name} keeps {a} {items} at home.",
        ),
        "open_packs": (
            "{name} stores {b} {items} in each of {a} drawers.",
            "{a} trays lie on {name}'s table, each with {b} {items} on it.",
        ),
        "gain": (
            "Later, {name} receives {a} additional {items}.",
            "An uncle sends {a} {items} to {name}.",
            "The collection increases by {a} {items}.",
        ),
        "loss": (
            "Unfortunately, {name} drops {a} of the {items} into a river.",
            "{name} returns {a} {items} to their owner.",
            "The collection decreases by {a} {items}.",
        ),
        "packs": (
            "A truck delivers {a} cartons, and every carton contains {b} {items}.",
            "{name} earns {b} {items} in each of {a} weeks.",
        ),
        "gifts": (
            "Each of {a} neighbours borrows {b} {items} and does not bring them back.",
            "{name} mails {a} parcels with {b} {items} inside each.",
        ),
        "times": (
            "Over the year the collection grows by a factor of {a}.",
            "Soon there are {a} times as many {items}.",
        ),
        "percent": (
            "A flood ruins {a}% of the {items}.",
            "{name} donates {a} percent of the collection.",
        ),
        "share": (
            "{name} and the others, {a} persons in total, each receive the same number, and only {name}'s part counts.",
            "A machine sorts the {items} into {a} equally full bins, of which {name} gets one.",
        ),
        "ask": (
            "What is the final count of {items}?",
            "With how many {items} does {name} end up?",
        ),
    },
}
"""Sentences by split and kind; ``validation`` has those of ``train``."""
_EVENTS = {"gain": 1, "loss": 1, "packs": 2, "gifts": 2, "times": 1, "percent": 2, "share": 1}
"""Operations of each kind of event; a share is the last."""


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
        seed: Chooses among unlimited sequences of problems.
        least_steps: Smallest number of arithmetic operations of a problem, 1 to 5.
        most_steps: Largest number of operations; if it is below ``least_steps``, there is no problem.
        max_number: Largest number in a question, at least 50.

    Raises:
        ConfigurationError: An option is out of its range.
    """
    options = {"least_steps": least_steps, "most_steps": most_steps, "max_number": max_number, "seed": seed}
    name = source_name("word_arithmetic", options, {"least_steps": 3, "most_steps": 5, "max_number": 999, "seed": 0})
    bound = partial(draw, split=split, least_steps=least_steps, most_steps=most_steps, max_number=max_number)
    return ProceduralSource(name, bound, split, seed)


def draw(
    rng: np.random.Generator, /, *, split: str, least_steps: int, most_steps: int, max_number: int
) -> Draft | None:
    """Draw one instance; ``None`` if no sentence fits, such as a share that leaves a remainder.

    Args:
        rng: The generator of random numbers.
        split: Decides the sentences.
        least_steps: Smallest number of operations.
        most_steps: Largest number of operations.
        max_number: Largest number in the question.
    """
    if least_steps > most_steps:
        return None
    steps = int(rng.integers(least_steps, most_steps + 1))
    story = _Story(SENTENCES["test" if split == "test" else "train"], _pick(rng, NAMES), _pick(rng, ITEMS), max_number)
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
    """The sentences so far, the lines of the program, and the value."""

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
        """Begin with a number of things, or with boxes of things."""
        if packs:
            a, b = _between(rng, 2, 40), _between(rng, 2, 50)
            self._do(rng, "open_packs", (a, b), f"x={a}*{b}", a * b)
        else:
            a = _between(rng, 20, self.largest)
            self._do(rng, "open", (a,), f"x={a}", a)

    def add(self, rng: np.random.Generator, kind: str) -> bool:
        """Add an event of a kind; return ``False`` if none of that kind fits."""
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
        choices = _PERCENT if kind == "percent" else _SHARES
        fitting = [a for a in choices if (self.value * a % 100 if kind == "percent" else self.value % a) == 0]
        if not fitting:
            return False
        a = _pick(rng, fitting)
        if kind == "percent":
            return self._do(rng, kind, (a,), f"x-=x*{a}//100", self.value - self.value * a // 100)
        return self._do(rng, kind, (a,), f"x//={a}", self.value // a)

    def say(self, rng: np.random.Generator, kind: str, numbers: Sequence[int] = ()) -> None:
        """Write a sentence of a kind."""
        number = int(rng.integers(len(self.known[kind])))
        words = dict(zip("ab", numbers, strict=False))
        self.sentences.append(self.known[kind][number].format(name=self.name, items=self.items, **words))
        self.used.append(self.known[kind][number])

    def key(self) -> str:
        """The operations and the numbers, each sorted: the same for every story of the same computation."""
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
