"""``Family``: what puzzles and games have in common: a name, difficulty knobs with ranges, a stated baseline.

Covered: knobs that check themselves, the family's name with the knobs that were changed. Not covered: what an instance
is (``rstar2_env.worlds.puzzle``, ``rstar2_env.worlds.game``), and the environment around it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from rstar2_env.core.options import CheckedOptions, Rule, call_with_options, check_option, option
from rstar2_env.problems import source_name

T = TypeVar("T")


def knob(default: T, least: float | None = None, most: float | None = None, *, choices: tuple[T, ...] = ()) -> T:
    """A field of a family, with the values that it may have; its default says of which type they are.

    Args:
        default: The value at the default difficulty. ``True`` and ``False`` need no range.
        least: Least value of a number.
        most: Largest value of a number.
        choices: All values that there are.
    """
    return option(default, least=least, most=most, choices=choices)


@dataclass(frozen=True)
class Family(CheckedOptions):
    """Worlds of one kind at one difficulty. A subclass is a frozen dataclass; its fields are the knobs.

    Its docstring is the specification of its environment, but for the sections that all environments of its kind share.

    Attributes:
        name: The family's name, as ``load_problems`` knows it; it begins every problem's id.
        random_baseline: Mean reward of a random player at the default knobs, as measured; a test holds it.
    """

    name: ClassVar[str]
    random_baseline: ClassVar[float]

    @classmethod
    def with_knobs(cls, knobs: Mapping[str, Any]) -> Self:
        """The family at the difficulty that the knobs say.

        Raises:
            ConfigurationError: There is no such knob, or a value is out of its range.
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
        """The name, with the knobs that are not the defaults; what comes beside them is 0 by default."""
        return source_name(self.name, self.knobs | more, self.defaults() | dict.fromkeys(more, 0))

    def require(self, knob: str, least: float | None, most: float | None) -> None:
        """Refuse a knob that is not a number in its range; for ranges that depend on another knob.

        Raises:
            ConfigurationError: It is not.
        """
        check_option(knob, getattr(self, knob), type(self.defaults()[knob]), Rule(least, most))
