"""``Registry``: names for parts that users can swap: trainers, agents, dialects, problem families, sandboxes.

One class serves all kinds of parts. On first use, a registry imports the modules of its package, which register their
parts, and loads the parts of other distributions through the entry-point group ``rstar2_env.<kind>``. The core packages
therefore import no plugin. A name may also refer to user code, ``module:Name`` or ``./file.py:Name`` (see
``user_code``). Environments are in Gymnasium's registry.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from rstar2_env.core.errors import ConfigurationError, DuplicateNameError, UnknownNameError
from rstar2_env.core.options.entry_points import load_entry_points
from rstar2_env.core.options.user_code import Shape, find_user_code, user_code_name

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from names to parts of one kind, filled on first use.

    Args:
        kind: Singular name of the kind of parts, for error messages ("trainer").
        package: Package whose modules register their parts when they are imported, or ``None``.
        entry_points: Entry-point group of other distributions' parts, or ``None``.
        shape: Recognizes a part in a user's file, if the user gives only the file without the part's name.
        listed_by: Command that lists the parts; the error about an unknown name refers to it if there are many parts.
        named_alone: Whether parts of this kind are always named without options; used in the error about
            ``name:option=value``.
    """

    def __init__(
        self,
        kind: str,
        package: str | None = None,
        entry_points: str | None = None,
        *,
        shape: Shape | None = None,
        listed_by: str = "",
        named_alone: bool = False,
    ) -> None:
        self.kind = kind
        self._named_alone = named_alone
        self._listed_by = listed_by
        self._shape = shape
        self._package = package
        self._entry_points = entry_points
        self._parts: dict[str, T] = {}
        self._loaded = package is None and entry_points is None
        self._loading = False
        self._lock = threading.RLock()

    def register(self, name: str, part: T | None = None) -> Callable[[T], T]:
        """Register ``part`` under ``name``; without ``part``, return a decorator that registers a part.

        Raises:
            DuplicateNameError: Another part already has the name.
        """

        def add(value: T) -> T:
            if self._parts.get(name, value) is not value:
                raise DuplicateNameError(f"The {self.kind} {name!r} is registered already; choose another name.")
            self._parts[name] = value
            return value

        if part is not None:
            add(part)
        return add

    def get(self, name: str) -> T:
        """Return a registered part, or a part in user code (``module:Name``, ``./file.py:Name`` or ``./file.py``).

        Raises:
            UnknownNameError: The name is not registered; the message suggests the nearest names.
            ConfigurationError: The user code does not exist, fails on import, or has no such part.
        """
        self._load()
        if name in self._parts:
            return self._parts[name]
        head, colon, rest = name.partition(":")
        if colon and head in self._parts:
            if self._named_alone or "=" in rest:  # an "=" after the colon means that the caller accepts only a name
                raise ConfigurationError(
                    f"Expected only the name of the {self.kind} {head!r}, without options; got {name!r}."
                )
            raise ConfigurationError(f"Expected the options of the {self.kind} {head!r} as name=value, got {rest!r}.")
        if (own := user_code_name(name)) is not None:
            found: T = find_user_code(own, self.kind, self._shape, self._parts)
            return found
        raise UnknownNameError(self.kind, name, self._parts, listed_by=self._listed_by)

    def names(self) -> list[str]:
        """Return every registered name, sorted."""
        self._load()
        return sorted(self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._parts

    def _load(self) -> None:
        if self._loaded:
            return
        # Other threads wait here until everything is loaded. If a module that the loading thread imports requests a
        # name, that thread enters again, and sees the parts registered so far.
        with self._lock:
            if self._loaded or self._loading:
                return
            self._loading = True
            try:
                if self._package is not None:
                    import_modules(self._package)
                if self._entry_points is not None:
                    list(load_entry_points(self._entry_points, self.kind))
                self._loaded = True
            finally:
                self._loading = False


def import_modules(package: str) -> None:
    """Import every public module of ``package``, so that each registers its parts."""
    module = importlib.import_module(package)
    for info in pkgutil.iter_modules(module.__path__):
        if not info.name.startswith("_"):
            importlib.import_module(f"{package}.{info.name}")
