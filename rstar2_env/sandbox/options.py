"""The options of the ``local`` provider, checked in one place."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, get_args

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox.job import Limits
from rstar2_env.sandbox.warmups import WARMUPS

LAYERS = ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "users", "seccomp", "landlock", "scope", "cgroups")
"""Short names of the layers, for ``without``."""
Isolation = Literal["strict", "best", "none"]


@dataclass(frozen=True)
class LocalOptions:
    """How the ``local`` provider runs.

    Attributes:
        preload: Modules that the warm parent imports, so that no call pays for them.
        workers: Programs that run at once; the default is the number of usable cores.
        waiting: Children kept ready ahead of the calls; the default is ``workers``.
        isolation: ``"strict"`` refuses to start without a required layer, ``"best"`` runs with what there is and warns
            once, ``"none"`` switches isolation off, for debugging.
        readable: Further paths that programs may read, such as a folder of their own libraries.
        warmup: A program that the warm parent runs once, so that its effects on caches are there in every call;
            ``None`` runs a little of what most programs use of numpy and sympy, where they are preloaded.
        limits: The limits that most jobs will have: what is prepared ahead of a call is prepared for these.
        without: Layers to do without, by their short names; for tests of machines that lack them.
        retries: How often a call is started anew after a failure of our own.
        stall_s: Seconds without a sign of life after which the warm parent is replaced.
        max_sessions: Sessions that live at once; for one more, the least recently used that rests has to go.
        session_idle_s: Seconds that a session may rest between two cells before it is ended.
        session_memory_mb: MiB that the memory limits of all sessions may add up to; ``None`` leaves it to
            ``max_sessions``.
    """

    provider: ClassVar[str] = "local"

    preload: tuple[str, ...] = ("numpy", "sympy")
    workers: int | None = None
    waiting: int | None = None
    isolation: Isolation = "strict"
    readable: tuple[str, ...] = ()
    warmup: str | None = None
    limits: Limits = field(default_factory=Limits)
    without: tuple[str, ...] = ()
    retries: int = 1
    stall_s: float = 10.0
    max_sessions: int = 64
    session_idle_s: float = 600.0
    session_memory_mb: int | None = None

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of its range or of the wrong kind.
        """
        for name in ("preload", "readable", "without"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(item, str) for item in value):
                raise ConfigurationError(f"{name} must be a sequence of strings, not {value!r}.")
            object.__setattr__(self, name, tuple(value))
        for path in self.readable:
            if not os.path.exists(path):
                raise ConfigurationError(f"readable names {path!r}, which does not exist.")
            if os.path.realpath(path).split("/")[1] in ("tmp", "proc", "dev", "etc", ""):
                raise ConfigurationError(
                    f"readable names {path!r}; /, /etc, /tmp, /proc and /dev are the sandbox's own."
                )
        if unknown := set(self.without) - set(LAYERS):
            raise ConfigurationError(f"without knows the layers {', '.join(LAYERS)}, not {', '.join(sorted(unknown))}.")
        if self.isolation not in get_args(Isolation):
            known = ", ".join(map(repr, get_args(Isolation)))
            raise ConfigurationError(f"isolation must be one of {known}, not {self.isolation!r}.")
        for name in ("workers", "waiting", "max_sessions", "session_memory_mb"):
            value = getattr(self, name)
            if value is None and name == "max_sessions":
                raise ConfigurationError("max_sessions must be a whole number from 1, not None.")
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigurationError(f"{name} must be a whole number from 1, or None, not {value!r}.")
        if not isinstance(self.retries, int) or self.retries < 0:
            raise ConfigurationError(f"retries must be a whole number from 0, not {self.retries!r}.")
        for name in ("stall_s", "session_idle_s"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"{name} must be a positive number of seconds, not {getattr(self, name)!r}.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Options from names and values.

        Raises:
            ConfigurationError: There is no option of that name, or its value is wrong.
        """
        refuse_unknown(cls.provider, given, [option.name for option in fields(cls)])
        return cls(**given)

    def as_given(self) -> dict[str, Any]:
        """Names and values, from which the same options can be made."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @property
    def slots(self) -> int:
        """Programs that run at once."""
        return self.workers if self.workers is not None else usable_cores()

    def _default_warmup(self) -> str:
        return "".join(WARMUPS.get(name, "") for name in self.preload)

    def for_warden(self, scratch: str) -> dict[str, Any]:
        """The same as the first message to a warden."""
        return {
            "op": "start",
            "preload": list(self.preload),
            "warmup": self.warmup if self.warmup is not None else self._default_warmup(),
            "readable": [os.path.realpath(path) for path in self.readable],
            "without": list(self.without),
            "file_bytes": self.limits.file_mb << 20,
            "site_dirs": site_dirs(),
            "workers": self.slots,
            "waiting": self.waiting if self.waiting is not None else self.slots,
            "isolation": self.isolation,
            "stall_s": self.stall_s,
            "max_sessions": self.max_sessions,
            "session_idle_s": self.session_idle_s,
            "session_memory_bytes": (self.session_memory_mb or 0) << 20,
            "scratch": scratch,
        }


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def site_dirs(path: Sequence[str] | None = None) -> list[str]:
    """The folders of installed packages on the path: what a program may import, and nothing of a checkout."""
    entries = sys.path if path is None else path
    return [
        os.path.realpath(entry)
        for entry in entries
        if os.path.basename(entry.rstrip("/")) in ("site-packages", "dist-packages") and os.path.isdir(entry)
    ]


def refuse_unknown(provider: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Check the names of a provider's options.

    Raises:
        ConfigurationError: There is no option of that name; the message suggests the nearest.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigurationError(f"The {provider} sandbox has no option {name!r}.{hint} Known: {', '.join(known)}.")
