"""What the environments of puzzles and of games have in common: knobs among the options, and a class for every family.

Covered: ``FamilyEnv``, and how a family becomes the class of an environment. Not covered: turns and rewards
(``rstar2_env.env.puzzle_env``, ``rstar2_env.env.game_env``).
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
    """An environment over a family; ``environment_class`` makes a subclass for each.

    Attributes:
        family_class: The family's class.
        random_baseline: Mean reward of a random player at the default knobs.
        shared: The sections of the specification that all families of a kind share.
        arguments: Its last section, on the arguments.
    """

    family_class: ClassVar[type[Family]]
    random_baseline: ClassVar[float]
    shared: ClassVar[str]
    arguments: ClassVar[str]

    @classmethod
    def more_options(cls) -> tuple[type[Family], ...]:
        """Whose options are the environment's own besides those of ``__init__``: the knobs of the family."""
        return (cls.family_class,)

    @classmethod
    def own_knobs(cls, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The options that are knobs of the family, and the others."""
        names = cls.family_class.defaults()
        return (
            {name: value for name, value in options.items() if name in names},
            {name: value for name, value in options.items() if name not in names},
        )


EnvT = TypeVar("EnvT", bound=FamilyEnv)


def environment_class(base: type[EnvT], family: type[Family]) -> type[EnvT]:
    """Make the environment of a family.

    The class is named after the family ("GameEnv" of "Game"), documented by it, and put into its module, where pickle
    and Gymnasium look for it.

    Args:
        base: What to build on.
        family: A class at the top of its module.

    Raises:
        ConfigurationError: It is no frozen dataclass at the top of a module, or lacks its name or its baseline.
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
        raise ConfigurationError(f"{family.__qualname__} lacks {' and '.join(missing)}, attributes of its class.")
    # Not is_dataclass: that is true of a subclass without the decorator too, whose knobs would be no fields.
    if "__dataclass_params__" not in vars(family):
        raise ConfigurationError(f"{family.__qualname__} must be a dataclass: put @dataclass(frozen=True) above it.")
    if "." in family.__qualname__:
        raise ConfigurationError(
            f"{family.__qualname__} must stand at the top of its module, where pickle and Gymnasium can find it."
        )


def specification(family: type[Family], base: type[FamilyEnv]) -> str:
    """The whole docstring of a family's environment: the family's own sections, the shared ones, the arguments."""
    own, heading, history = inspect.cleandoc(family.__doc__ or "").partition(_HISTORY)
    shared = inspect.cleandoc(base.shared)
    history = history.strip() if heading else "v0: the first."
    return f"{own.rstrip()}\n\n{shared}\n\n{_HISTORY}\n{history}\n\n{inspect.cleandoc(base.arguments)}\n"
