"""``Family``, the base class of puzzles and games: a name, difficulty options with ranges, a measured random baseline.

A difficulty option is called a knob. Covered: checks of the knobs, and the family's name with the knobs that differ
from their defaults. Not covered: instances (``rstar2_env.worlds.puzzle``, ``rstar2_env.worlds.game``), and
environments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from rstar2_env.core.options.declare import CheckedOptions, Rule, call_with_options, check_option, option
from rstar2_env.problems import source_name

T = TypeVar("T")


def knob(default: T, least: float | None = None, most: float | None = None, *, choices: tuple[T, ...] = ()) -> T:
    """Define a difficulty option of a family: a field with its allowed values; the default determines the type.

    Args:
        default: The value at the default difficulty. ``True`` and ``False`` need no range.
        least: Smallest value of a number; ``None`` for no limit.
        most: Largest value of a number; ``None`` for no limit.
        choices: All allowed values; empty if a range applies.
    """
    return option(default, least=least, most=most, choices=choices)


@dataclass(frozen=True)
class Family(CheckedOptions):
    """A kind of puzzle or game at one difficulty. A subclass is a frozen dataclass; its fields are the knobs.

    The docstring of a subclass is the specification of its environment, without the sections that all puzzles or all
    games share.

    Attributes:
        name: The family's name for ``load_problems``; every problem's id begins with it.
        random_baseline: Measured mean reward of a random player at the default knobs; a test checks it.
    """

    name: ClassVar[str]
    random_baseline: ClassVar[float]

    @classmethod
    def with_knobs(cls, knobs: Mapping[str, Any]) -> Self:
        """The family at the difficulty given by the knobs.

        Raises:
            ConfigurationError: There is no such knob, or a value is out of range.
        """
        return call_with_options(f"family {cls.name!r}", cls, knobs)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The knobs and their defaults."""
        return {field.name: field.default for field in dataclasses.fields(cls)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The knobs and their values."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def named(self, **more: Any) -> str:
        """The family's name, with each knob that differs from its default and each value in ``more`` that is not 0."""
        return source_name(self.name, self.knobs | more, self.defaults() | dict.fromkeys(more, 0))

    def require(self, knob: str, least: float | None, most: float | None) -> None:
        """Check that a knob is a number in a range. A subclass calls this if the range depends on another knob.

        Args:
            knob: Name of the field to check.
            least: Smallest value; ``None`` for no limit.
            most: Largest value; ``None`` for no limit.

        Raises:
            ConfigurationError: The knob is not a number, or is out of range.
        """
        check_option(knob, getattr(self, knob), type(self.defaults()[knob]), Rule(least, most))
