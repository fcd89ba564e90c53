"""The exceptions of rstar2-env: one class for each kind of failure that a user can fix.

A bad episode is data, not an exception: what a policy does wrong comes back as text and a status. These classes are for
mistakes in how the package is called, and for the machine it runs on.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

from gymnasium.error import ResetNeeded, UnregisteredEnv

from rstar2_env.core.error_pages import raised_in, section_of


class Rstar2Error(Exception):
    """Base of every exception that this package raises on purpose.

    Attributes:
        section: The section of docs/troubleshooting.md that explains errors of this class; where the class does not
            name one, that of the part of the package that raised it (``error_pages``). A note on the exception
            says so below its message, in a traceback and on the command line: ``docs: troubleshooting#sharding``.
    """

    section: ClassVar[str] = ""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        section = self.section or section_of(raised_in(self, sys._getframe(1)))
        if section:
            self.add_note(f"docs: troubleshooting#{section}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its message, since workers send exceptions back and a subclass's ``__init__`` may differ."""
        return _rebuild, (type(self), self.args), self.__dict__ or None


def _rebuild(kind: type[Rstar2Error], args: tuple[Any, ...]) -> Rstar2Error:
    return kind.__new__(kind, *args)


class UnknownNameError(Rstar2Error, KeyError):
    """A registry was asked for a name that is not registered.

    Args:
        kind: What the name should be of ("agent"), for the message.
        name: The name.
        known: The registered names.
    """

    section = "unknown-name"

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        listing = ", ".join(known) if known else "none"
        super().__init__(f"There is no {kind} named {name!r}.{hint} Known: {listing}.")

    def __str__(self) -> str:
        """The message itself: ``KeyError`` would show it quoted."""
        return str(self.args[0])


class UnknownEnvError(UnknownNameError, UnregisteredEnv):
    """There is no environment of that name.

    Also Gymnasium's ``UnregisteredEnv``, which ``gym.make`` raises: one ``except`` gets both.
    """


class DuplicateNameError(Rstar2Error, ValueError):
    """A name was registered twice with different contents."""

    section = "unknown-name"


class ProblemFormatError(Rstar2Error, ValueError):
    """A line or record of a problem source has an invalid format."""

    section = "problems"


class RecordFormatError(Rstar2Error, ValueError):
    """A record that this package writes, such as that of an episode, has an invalid format."""

    section = "run-folder"


class ConfigurationError(Rstar2Error, ValueError):
    """Options that do not fit together, or a value out of its range.

    Args:
        message: What was expected, what was given and what to do, in full sentences.
        option: Name of the option that fixes it, where one does. Python shows it as an argument (``episodes=...``), the
            command line as the flag that sets it (``--episodes``): see ``worded``.
        value: The value that this option should get, where there is exactly one.
    """

    def __init__(self, message: str = "", *, option: str | None = None, value: str | None = None) -> None:
        super().__init__(message)
        self.option = option
        self.value = value

    def __str__(self) -> str:
        """The message, with the option as Python writes it."""
        return self.worded(lambda name, value: f"{name}={'...' if value is None else repr(value)}")

    def worded(self, write: Callable[[str, str | None], str]) -> str:
        """The message, with the option that fixes it written by ``write``, which takes its name and its value."""
        message = str(self.args[0]) if self.args else ""
        return f"{message.removesuffix('.')} ({write(self.option, self.value)})." if self.option else message


class UnknownOptionError(ConfigurationError, TypeError):
    """There is no option of that name.

    Also a ``TypeError``, which Python raises for unknown arguments: one ``except`` catches both.
    """

    section = "options"


class EpisodeOverError(Rstar2Error, ResetNeeded, RuntimeError):
    """``step`` was called after the end of the episode, or before the first ``reset``.

    Also Gymnasium's ``ResetNeeded``, which ``gym.make`` raises before the first ``reset``: one ``except`` gets both.
    """

    section = "episode-over"


class BranchError(Rstar2Error, RuntimeError):
    """An episode cannot be branched there, or its replay shows something else than the episode did."""

    section = "branching"


class SandboxUnavailableError(Rstar2Error, RuntimeError):
    """The sandbox cannot start, or cannot provide the requested isolation."""


class ServiceError(Rstar2Error, RuntimeError):
    """A server that was asked over HTTP did not answer, or refused; the message quotes its answer.

    Args:
        message: What was asked, and how it failed.
        cause: ``refused`` where a model's endpoint refused the conversation for its content, ``too_long`` where it is
            longer than the model reads, ``lost`` where the connection failed, ``passing`` where the server may answer
            another attempt, ``late`` where it took longer than allowed; else empty.
        after_s: Seconds after which the server asks to be tried again.
    """

    section = "endpoints"

    def __init__(self, message: str = "", *, cause: str = "", after_s: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.after_s = after_s


class BudgetSpentError(ServiceError):
    """The tokens or the money that a run may use at an endpoint are used up."""

    section = "budget"


class UnusableReplyError(Rstar2Error, RuntimeError):
    """A model's reply cannot be played as a turn, for a reason that says nothing of how well the model answers.

    Args:
        end: How the episode ends: ``no_text``, ``cut`` or ``refused``.
        message: What the reply was.
    """

    section = "endpoints"

    def __init__(self, end: Literal["no_text", "cut", "refused"], message: str) -> None:
        super().__init__(message)
        self.end: Literal["no_text", "cut", "refused"] = end


class MissingExtraError(Rstar2Error, ImportError):
    """An optional dependency is not installed."""

    section = "missing-extra"

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs the extra {extra!r}: pip install 'rstar2-env[{extra}]'.")
