"""``rstar2/KnightsKnaves-v0``: who tells the truth and who lies, from what they say of each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rstar2_env.problems import Draft, split_of
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.knights import random_statement, signature, solutions, words
from rstar2_env.worlds.puzzle import Puzzle, UnreadableAnswerError, shuffled
from rstar2_env.worlds.reading import plain

_NAMES = (
    "Ann",
    "Ben",
    "Cal",
    "Dee",
    "Eve",
    "Fay",
    "Gus",
    "Hal",
    "Ida",
    "Jim",
    "Kay",
    "Lou",
    "Mia",
    "Ned",
    "Oda",
    "Pia",
)
_ROLES = ("knave", "knight")
_FILLERS = {"is", "a", "and", "the", "are"}
_WORD = re.compile(r"[^\W\d_]+")
_MARKS = re.compile(r"[\s\d,:;.=>()*-]*")

_QUESTION = """\
On an island everybody is a knight, who always tells the truth, or a knave, who always lies. {who} live there.
{said}
Who is what? Answer with each name and its kind, like this: {example}."""


@dataclass(frozen=True)
class KnightsKnaves(Puzzle):
    """People who each make one statement, such that there is exactly one solution.

    Args:
        people: How many.
        depth: How deeply "not", "and", "or", "if" and "if and only if" may be nested, from 2 on: simple statements
            alone leave every solution its opposite.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "knights_knaves"
    people: int = 3
    depth: int = 2

    def __post_init__(self) -> None:
        self.require("people", 2, 8)
        self.require("depth", 2, 4)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw statements until the solver finds exactly one solution."""
        statements = [random_statement(speaker, self.people, self.depth, rng) for speaker in range(self.people)]
        key = signature(statements)
        if split_of(key) != split or len(found := solutions(statements)) != 1:
            return None
        names = shuffled(rng, _NAMES)[: self.people]
        said = "\n".join(
            f'{name} says: "{_sentence(words(said, names))}"' for name, said in zip(names, statements, strict=True)
        )
        who = f"{', '.join(names[:-1])} and {names[-1]}"
        example = ", ".join(f"{name}: {_ROLES[place % 2]}" for place, name in enumerate(names))
        meta = {"names": names, "statements": statements}
        return Draft(_QUESTION.format(who=who, said=said, example=example), _written(names, found[0]), key, meta)

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether the kinds are a solution of the statements."""
        text = plain(answer).lower()
        words_told = [word for word in _WORD.findall(text) if word not in _FILLERS]
        names = [name.lower() for name in meta["names"]]
        told = dict(zip(words_told[::2], words_told[1::2], strict=False))
        each_once = sorted(words_told[::2]) == sorted(names) and len(words_told) == 2 * len(names)
        if not each_once or set(told.values()) - set(_ROLES) or not _MARKS.fullmatch(_WORD.sub("", text)):
            raise UnreadableAnswerError(f"expected {meta['names']}, each once with its kind, got {answer[:80]!r}")
        return [told[name] == "knight" for name in names] in solutions(meta["statements"])

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """A random kind for each."""
        return _written(meta["names"], [bool(bit) for bit in rng.integers(2, size=len(meta["names"]))])


def _written(names: list[str], knights: list[bool]) -> str:
    return ", ".join(f"{name}: {_ROLES[knight]}" for name, knight in zip(names, knights, strict=True))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


class KnightsKnavesEnv(PuzzleEnv):
    r"""Find out who is a knight (always truthful) and who a knave (always lying) from what they say.

    ## Puzzle
    Each of ``people`` makes one statement about who is a knight or a knave, joined by "not", "and", "or", "if" and "if
    and only if" up to ``depth``. A solver that tries every world finds exactly one solution.

    ## Answer
    Each name once with its kind, in any order and any case: ``Ann: knight, Ben: knave`` or ``Ann is a knight and Ben is
    a knave``. Digits (``1.``), the marks ``, : ; . = > - * ( )`` and the words is, are, a, the, and do not matter;
    anything else makes it wrong.

    ## Difficulty
    ``people=3`` (2 to 8), ``depth=2`` (2 to 4).

    ## Random baseline
    0.125: a random kind for each of three; 2^-people in general.

    ## Version history
    v0: the first.
    """

    puzzle = KnightsKnaves
    random_baseline = 0.125


register("rstar2/KnightsKnaves-v0", KnightsKnavesEnv)
