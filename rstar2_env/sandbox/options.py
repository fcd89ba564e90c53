"""Options of the provider ``local``, and their checks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

from rstar2_env.core.cores import usable_cores
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, call_with_options, option
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.warmups import WARMUPS

LAYERS = (
    *("pid", "mount", "net", "ipc", "uts", "cgroup", "user"),
    *("users", "seccomp", "landlock", "scope", "cgroups", "autogroup"),
)
"""Short names of the isolation layers, for the option ``without``."""
IsolationMode = Literal["strict", "best", "none"]
PACKAGES = ("numpy", "sympy", "mpmath", "scipy", "pandas", "networkx")
"""Packages that programs can import by default, if they are installed."""

_ROOT_NAMES = frozenset(
    {"bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "packages", "proc", "python"}
    | {"sandbox", "sbin", "tmp", "usr"}
)
"""Names that ``root_folders`` cannot contain, since a program's root folder can have entries with these names."""
_UNCHANGED = (
    "preload",
    "parents",
    "without",
    "deprioritize",
    "isolation",
    "stall_timeout_s",
    "max_sessions",
    "session_timeout_s",
    "root_folders",
)
"""Names of the options that the warden receives unchanged."""


def can_be_root_folder(name: str) -> bool:
    """Whether ``root_folders`` may contain this name: it is a valid folder name and not already taken at ``/``."""
    return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) is not None and name not in _ROOT_NAMES


@dataclass(frozen=True)
class ProviderOptions(CheckedOptions):
    """Base class of the options of a provider.

    Attributes:
        provider: Name under which the provider is registered.
    """

    provider: ClassVar[str]

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Create options from names and values.

        Raises:
            ConfigurationError: An option is unknown, or its value is invalid.
        """
        return call_with_options(f"{cls.provider} sandbox", cls, given)

    def as_given(self) -> dict[str, Any]:
        """Return the options as a dictionary, from which equal options can be constructed."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


@dataclass(frozen=True)
class LocalOptions(ProviderOptions):
    """Options of the provider ``local``.

    Attributes:
        packages: Installed packages that programs can import, by their pip names, with their requirements; other
            packages are hidden. Packages that are not installed are skipped. ``("*",)`` makes all packages visible.
        preload: Modules to import in advance. A program is forked from a parent process that has imported, of these
            modules, only those that the program's source names. Modules that the program imports only indirectly,
            through other modules, are imported at run time.
        parents: Largest number of parent processes, at least 1. One parent has imported no module of ``preload``;
            others are started when programs need them. With 1, the only parent has imported all modules of ``preload``.
        workers: Number of programs that run concurrently, not counting deprioritized ones; the default is the number of
            usable cores.
        deprioritize: Largest number of deprioritized programs that run in addition to ``workers``. A program that has
            run for a quarter of a second gets a lower CPU weight and no longer counts as a worker, so that the
            next call starts. 0 by default; four per worker is a good value if calls can arrive faster than they end.
        waiting: Number of child processes that are kept ready for future calls; the default is ``workers``.
        isolation: ``"strict"``, the default, refuses to start without a required layer, ``"best"`` runs with the
            available layers and warns once, ``"none"`` switches isolation off, for debugging.
        readable: Additional paths that programs can read, such as a folder with libraries.
        root_folders: Names of folders in the working folder that programs also find at the root: with ``("app",)``,
            ``/app`` is a link to the folder ``app`` in the working folder. A program must create this folder. The links
            need a mount namespace.
        warmup: Program that each parent with preloaded modules runs once to fill caches; ``None`` calls common
            functions of numpy and sympy, if they are preloaded.
        limits: The limits that most jobs have; child processes that wait for a job already have a file system of this
            ``file_mb``.
        without: Isolation layers to omit, by their short names; for tests of machines that lack them.
        retries: How many times a call is retried after a failure of the sandbox itself.
        stall_timeout_s: Seconds after which the warden (the process that supervises programs) is replaced, if the
            warden, or a process from which programs are forked, does not respond.
        max_sessions: Largest number of sessions; beyond it, the least recently used idle session is ended.
        session_timeout_s: Seconds after which an idle session is ended.
        session_memory_mb: Largest sum of all sessions' memory limits, in MiB; with ``None``, only ``max_sessions``
            limits the sessions.
    """

    provider: ClassVar[str] = "local"

    packages: tuple[str, ...] = PACKAGES
    preload: tuple[str, ...] = ("numpy", "sympy")
    parents: int = option(4, least=1)
    workers: int | None = option(None, least=1)
    deprioritize: int = option(0, least=0)
    waiting: int | None = option(None, least=1)
    isolation: IsolationMode = "strict"
    readable: tuple[str, ...] = ()
    root_folders: tuple[str, ...] = ()
    warmup: str | None = None
    limits: Limits = field(default_factory=Limits)
    without: tuple[str, ...] = ()
    retries: int = option(1, least=0)
    stall_timeout_s: float = option(10.0, above=0, unit="seconds", finite=False)
    max_sessions: int = option(64, least=1)
    session_timeout_s: float = option(600.0, above=0, unit="seconds", finite=False)
    session_memory_mb: int | None = option(None, least=1)

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of range or has the wrong type.
        """
        super().__post_init__()
        for path in self.readable:
            if not os.path.exists(path):
                raise ConfigurationError(f"The option `readable` contains {path!r}, which does not exist.")
            if os.path.realpath(path).split("/")[1] in ("tmp", "proc", "dev", "etc", ""):
                raise ConfigurationError(
                    f"The option `readable` contains {path!r}, but /, /etc, /tmp, /proc and /dev cannot "
                    "be made visible, because the sandbox has folders of its own there: copy the files elsewhere."
                )
        for name in self.root_folders:
            if not can_be_root_folder(name):
                raise ConfigurationError(
                    f"The option `root_folders` contains {name!r}; expected a name that the root of the "
                    "sandbox does not use already, such as app."
                )
        if unknown := set(self.without) - set(LAYERS):
            raise ConfigurationError(
                f"The option `without` contains {', '.join(sorted(unknown))}; expected layers of isolation: "
                f"{', '.join(LAYERS)}."
            )

    @property
    def slots(self) -> int:
        """Return the number of programs that run concurrently, not counting deprioritized ones."""
        return self.workers if self.workers is not None else usable_cores()

    @property
    def prepared(self) -> int:
        """Return the number of child processes that are kept ready for future calls."""
        return self.waiting if self.waiting is not None else self.slots

    def for_warden(self, scratch: str) -> dict[str, Any]:
        """Return the options as the first message to a warden, which may use the temporary folder ``scratch``."""
        return {
            **{name: getattr(self, name) for name in _UNCHANGED},
            "op": "start",
            "packages": [*self.packages, *(name.partition(".")[0] for name in self.preload)],
            "warmup": WARMUPS if self.warmup is None else {"": self.warmup},
            "readable": [os.path.realpath(path) for path in self.readable],
            "file_bytes": self.limits.file_mb << 20,
            "site_dirs": site_dirs(),
            "workers": self.slots,
            "waiting": self.prepared,
            "session_memory_bytes": (self.session_memory_mb or 0) << 20,
            "scratch": scratch,
        }


def site_dirs() -> list[str]:
    """Return the folders of installed packages (``site-packages``) on this process's import path."""
    return [
        os.path.realpath(entry)
        for entry in sys.path
        if os.path.basename(entry.rstrip("/")) in ("site-packages", "dist-packages") and os.path.isdir(entry)
    ]
