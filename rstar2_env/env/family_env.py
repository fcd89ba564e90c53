"""The common base of puzzle and game environments: knobs as options, one environment class for each family.

A knob is an option of a puzzle or game, such as its size. Covered: ``FamilyEnv``, and ``environment_class``, which
creates the class. Not covered: turns and rewards (``rstar2_env.env.puzzle_env``, ``rstar2_env.env.game_env``).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.worlds.family import Family

_HISTORY = "## Version history"


class FamilyEnv(ToolEnv):
    """Base class of environments for puzzles or games; ``environment_class`` creates one subclass per family.

    Attributes:
        family_class: The class that an author wrote, such as a ``Puzzle`` or a ``Game``.
        random_baseline: Mean reward of a random player at the default difficulty.
        shared: The sections of the specification that all families of the kind (puzzles, games) share.
        arguments: The last section of the specification, which describes the arguments.
    """

    family_class: ClassVar[type[Family]]
    random_baseline: ClassVar[float]
    shared: ClassVar[str]
    arguments: ClassVar[str]

    @classmethod
    def more_options(cls) -> tuple[type[Family], ...]:
        """Classes whose fields are further options of the environment: the family, with its difficulty options."""
        return (cls.family_class,)

    @classmethod
    def own_knobs(cls, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split options into two dicts: the knobs (difficulty options) of the family, and the other options."""
        names = cls.family_class.defaults()
        return (
            {name: value for name, value in options.items() if name in names},
            {name: value for name, value in options.items() if name not in names},
        )


EnvT = TypeVar("EnvT", bound=FamilyEnv)


def environment_class(base: type[EnvT], family: type[Family]) -> type[EnvT]:
    """Create the environment class of a family.

    The class takes its name ("GameEnv" for "Game") and its documentation from the family. It is added to the family's
    module, where pickle and Gymnasium look for it.

    Args:
        base: The base class of the environment, such as ``PuzzleEnv``.
        family: A class at the top level of its module.

    Raises:
        ConfigurationError: The family is not a frozen dataclass at the top level of a module, or lacks its name or
            its baseline.
    """
    _check(family)
    name = f"{family.__name__}Env"
    made = type(
        name,
        (base,),
        {
            "__doc__": specification(family, base),
            "__module__": family.__module__,
            "__qualname__": name,
            "family_class": family,
            "random_baseline": family.random_baseline,
        },
    )
    setattr(sys.modules[family.__module__], name, made)
    return made


def _check(family: type[Family]) -> None:
    missing = [name for name in ("name", "random_baseline") if not hasattr(family, name)]
    if missing:
        raise ConfigurationError(
            f"{family.__qualname__} does not have the class attributes {' and '.join(missing)}: add them."
        )
    # is_dataclass is also true for a subclass without the decorator, whose knobs would not be fields.
    if "__dataclass_params__" not in vars(family):
        raise ConfigurationError(f"{family.__qualname__} must be a dataclass: put @dataclass(frozen=True) above it.")
    if "." in family.__qualname__:
        raise ConfigurationError(
            f"{family.__qualname__} must be at the top level of its module, where pickle and Gymnasium can find it."
        )


def specification(family: type[Family], base: type[FamilyEnv]) -> str:
    """Return the full docstring of a family's environment: its own sections, the shared sections, the arguments."""
    own, heading, history = inspect.cleandoc(family.__doc__ or "").partition(_HISTORY)
    shared = inspect.cleandoc(base.shared)
    history = history.strip() if heading else "v0: the first."
    return f"{own.rstrip()}\n\n{shared}\n\n{_HISTORY}\n{history}\n\n{inspect.cleandoc(base.arguments)}\n"
