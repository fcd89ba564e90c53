"""Unlimited sources: every index has a problem, generated from the seed, and splits never overlap.

A family implements one function that draws an instance from a generator. The split of an instance depends only on a
hash of its content, so no seed, index or option can bring the same content into two splits. An instance that is not in
the requested split is replaced by another draw.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Seed, check_option
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.source import UnknownProblemError

SPLITS: Mapping[str, range] = {"train": range(0, 8), "validation": range(8, 9), "test": range(9, 10)}
"""For each split, the remainders (modulo 10) of a hash of a problem's content that assign the problem to the split."""

_NUMBERS = {"train": 0, "test": 1, "validation": 2}
_INDICES = 1 << 31
_REDRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A generated problem that has no id yet.

    Attributes:
        question: The text that the policy reads.
        answer: The gold answer.
        key: The content that decides the split. Instances that would reveal each other's answer (the same computation
            in other words or in another order) must have the same key.
        meta: Becomes ``Problem.meta``.
    """

    question: str
    answer: str
    key: str
    meta: Mapping[str, Any] = field(default_factory=dict)


class Draw(Protocol):
    """Function that draws one instance of a family, or returns ``None`` if the draw failed and must be repeated."""

    def __call__(self, rng: np.random.Generator, /) -> Draft | None:
        """Draw an instance, with ``rng`` as the only source of randomness."""
        ...


@dataclass(frozen=True, slots=True)
class ProceduralSource:
    """One split of a procedural family. The same seed, split and index give the same problem, in any order.

    Attributes:
        name: The family with its options; every id begins with it, so that ids of different options differ.
        draw: Draws an instance; it is pickled with the source. If it is a ``functools.partial`` that binds ``split``,
            the source replaces the bound value with its own ``split``.
        split: "train", "validation" or "test".
        seed: Seed, 0 or more; each seed gives another unlimited sequence of problems.
    """

    name: str
    draw: Draw
    split: str = "train"
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the split and the seed.

        Raises:
            ConfigurationError: The split is unknown, or the seed is negative or not an integer.
        """
        if self.split not in SPLITS:
            raise ConfigurationError(f"{self.name} has only the splits {', '.join(SPLITS)}, not {self.split!r}.")
        check_option("seed", self.seed, Seed)
        if isinstance(self.draw, partial) and self.draw.keywords.get("split", self.split) != self.split:
            object.__setattr__(self, "draw", partial(self.draw, split=self.split))

    def __getitem__(self, index: int, /) -> Problem:
        """Return the problem with this index.

        Raises:
            IndexError: The index is negative.
            ConfigurationError: The family's options leave no instance for this split.
        """
        if index < 0:
            raise IndexError(f"{self.name}: the index of a problem must be at least 0, not {index}.")
        entropy = np.random.SeedSequence(entropy=int(self.seed), spawn_key=(_NUMBERS[self.split], int(index)))
        rng = np.random.Generator(np.random.PCG64(entropy))
        for _ in range(_REDRAWS):
            draft = self.draw(rng)
            if draft is not None and split_of(draft.key) == self.split:
                return Problem(f"{self._prefix}{index}", draft.question, draft.answer, self.name, draft.meta)
        raise ConfigurationError(
            f"{self.name}: none of {_REDRAWS} random problems belongs to the split {self.split!r}, "
            "because the options allow too few different problems: allow larger numbers or a higher "
            "level."
        )

    def __iter__(self) -> Iterator[Problem]:
        """The problems from index 0 on; never ends."""
        return map(self.__getitem__, itertools.count())

    def get(self, problem_id: str) -> Problem:
        """Generate the problem with this id.

        Raises:
            UnknownProblemError: This source has no problem with that id.
        """
        index = problem_id.removeprefix(self._prefix)
        if index == problem_id or not (index.isascii() and index.isdecimal()) or (index[0] == "0" and index != "0"):
            raise UnknownProblemError(
                f"{problem_id!r} is not a problem of {self.name}, split {self.split!r}: its ids are "
                f"{self._prefix}0, {self._prefix}1 and so on."
            )
        return self[int(index)]

    def sample(self, rng: np.random.Generator) -> Problem:
        """Return the problem with a random index."""
        return self[int(rng.integers(_INDICES))]

    @property
    def _prefix(self) -> str:
        return f"{self.name}/{self.split}/"


def split_of(key: str) -> str:
    """Return the split to which ``Draft.key`` assigns a problem; it depends neither on the machine nor on Python."""
    tenth = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") % 10
    return next(split for split, tenths in SPLITS.items() if tenth in tenths)


def source_name(family: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """A family's name with the options that differ from their defaults, in the notation that ``load_problems`` reads.

    Args:
        family: The family's name.
        options: The options and their values.
        defaults: The options' default values.
    """
    changed = ",".join(f"{key}={value}" for key, value in sorted(options.items()) if value != defaults.get(key))
    return f"{family}:{changed}" if changed else family
