"""Lets a package load its names on first use, so that importing the package loads none of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter


def lazy_names(package: str, where: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Create the functions ``__getattr__`` and ``__dir__`` of a package.

    A package assigns them where a type checker does not see them, since a type checker that sees ``__getattr__``
    accepts any name::

        if not TYPE_CHECKING:
            __getattr__, __dir__ = lazy_names(__name__, {"Job": "sandbox.job"})

    Args:
        package: The ``__name__`` of the package.
        where: The module that defines each name: relative to the package, or absolute if it starts with
            ``rstar2_env.``. If the module uses another name, append ``:attribute`` with that name, which may be dotted.

    Returns:
        ``__getattr__``, which loads and caches a name, and ``__dir__``, which lists loaded and unloaded names.
    """

    def load(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = where[name].partition(":")
        value = attrgetter(attribute or name)(
            importlib.import_module(module if module.startswith("rstar2_env.") else f"{package}.{module}")
        )
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return load, names
