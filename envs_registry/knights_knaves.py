"""``rstar2/KnightsKnaves-v0``: find out who tells the truth and who lies, from their statements about each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, knob, register, split_of
from rstar2_env.worlds import knights
from rstar2_env.worlds.puzzle import shuffled

_QUESTION = """\
On an island everybody is a knight, who always tells the truth, or a knave, who always lies. {who} live there.
{said}
Who is what? Answer with each name and its kind, like this: {example}."""


@dataclass(frozen=True)
class KnightsKnaves(Puzzle):
    r"""Find out who is a knight (always truthful) and who is a knave (always lying) from their statements.

    ## Puzzle
    Each of ``people`` persons makes one statement. It combines claims that a person is a knight or a knave with "not",
    "and", "or", "if" and "if and only if", up to the nesting depth ``depth``. An exhaustive solver finds exactly one
    solution.

    ## Answer
    Each name once with its kind, in any order and any case: ``Ann: knight, Ben: knave`` or ``Ann is a knight and Ben is
    a knave``. Digits (``1.``), the characters ``, : ; . = > - * ( )`` and the words "is", "are", "a", "the" and "and"
    are ignored; anything else makes the answer wrong.

    ## Difficulty
    ``people=3`` (2 to 8), ``depth=2`` (2 to 4; at depth 1, the opposite of every solution would be a solution too).

    ## Random baseline
    0.125: the player draws a random kind for each of three people. In general, the player earns 1 / 2^``people``.
    """

    name = "knights_knaves"
    random_baseline = 0.125
    people: int = knob(3, 2, 8)
    depth: int = knob(2, 2, 4)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw statements once; return ``None`` if they belong to another split or lack a unique solution."""
        statements = [knights.random_statement(speaker, self.people, self.depth, rng) for speaker in range(self.people)]
        key = knights.signature(statements)
        if split_of(key) != split or len(found := knights.solutions(statements)) != 1:
            return None
        names = shuffled(rng, knights.NAMES)[: self.people]
        said = "\n".join(knights.speech(name, said, names) for name, said in zip(names, statements, strict=True))
        who = f"{', '.join(names[:-1])} and {names[-1]}"
        example = knights.written(names, [bool(place % 2) for place in range(self.people)])
        meta = {"names": names, "statements": statements}
        return Draft(_QUESTION.format(who=who, said=said, example=example), knights.written(names, found[0]), key, meta)

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether the kinds that the answer gives to the people satisfy all statements."""
        return knights.read_kinds(answer, meta["names"]) in knights.solutions(meta["statements"])

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return an answer that makes each person a knight or a knave at random."""
        return knights.written(meta["names"], [bool(bit) for bit in rng.integers(2, size=len(meta["names"]))])


register("rstar2/KnightsKnaves-v0", KnightsKnaves)
