"""Names of a package that are loaded when they are first used, so that importing the package loads none of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter


def lazy_names(package: str, where: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    A package assigns them where a type checker does not look, since it would then take any name::

        if not TYPE_CHECKING:
            __getattr__, __dir__ = lazy_names(__name__, {"Job": "sandbox.job"})

    Args:
        package: Its ``__name__``.
        where: For each name its module below the package, or its full name if it starts with ``rstar2_env.``; with
            ``:attribute`` if it has another name there. The attribute may be dotted.

    Returns:
        ``__getattr__``, which loads a name and keeps it, and ``__dir__``, which lists what is there and what would be.
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
