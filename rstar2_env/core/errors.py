"""The exceptions of rstar2-env: one class for each kind of failure that a user can fix.

A bad episode is data, not an exception: a policy's mistakes are returned as text and a status. These classes are for
incorrect uses of the package, and for problems of the machine.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

from gymnasium.error import ResetNeeded, UnregisteredEnv

from rstar2_env.core.command.error_pages import raised_in, section_of


class Rstar2Error(Exception):
    """Base of every exception that this package raises on purpose.

    Attributes:
        section: The section of docs/troubleshooting.md that explains errors of this class; if the class does not name
            one, the section about the module that raised the error (``error_pages``). A note below the
            message, in a traceback and on the command line, names the section: ``docs: rstar2 help
            troubleshooting#sharding``.
    """

    section: ClassVar[str] = ""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        section = self.section or section_of(raised_in(self, sys._getframe(1)))
        if section:
            self.add_note(f"docs: rstar2 help troubleshooting#{section}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the exception without calling ``__init__`` on loading, because each subclass has its own arguments."""
        return _rebuild, (type(self), self.args), self.__dict__ or None


def _rebuild(kind: type[Rstar2Error], args: tuple[Any, ...]) -> Rstar2Error:
    return kind.__new__(kind, *args)


MOST_LISTED = 24
"""Maximum number of names that the error about an unknown name lists; if there are more, the error names the
command that lists them."""


class UnknownNameError(Rstar2Error, KeyError):
    """A name is not in its registry.

    Args:
        kind: Kind of part that the name should refer to ("agent"), for the error message.
        name: The name that is not registered.
        known: All registered names; the message suggests the nearest.
        cutoff: Least similarity of a suggested name, as in ``difflib.get_close_matches``.
        listed_by: Command that lists the names, if there is one; the message names it instead of more than
            ``MOST_LISTED`` names.
    """

    section = "unknown-name"

    def __init__(
        self, kind: str, name: object, known: Iterable[str], *, cutoff: float = 0.5, listed_by: str = ""
    ) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=cutoff)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        if listed_by and len(known) > MOST_LISTED:
            listing = f"`{listed_by}` lists all {len(known)}"
        else:
            listing = f"Known: {', '.join(known) if known else 'none'}"
        super().__init__(f"There is no {kind} named {name!r}.{hint} {listing}.")

    def __str__(self) -> str:
        """Return the message itself; ``KeyError`` would quote it."""
        return str(self.args[0])


class UnknownEnvError(UnknownNameError, UnregisteredEnv):
    """No environment with the given name is registered.

    It is a subclass of Gymnasium's ``UnregisteredEnv``, which ``gym.make`` raises: one ``except`` catches both.
    """


class DuplicateNameError(Rstar2Error, ValueError):
    """A name was registered twice, for different objects."""

    section = "unknown-name"


class ProblemFormatError(Rstar2Error, ValueError):
    """A line or record of a problem source has an invalid format."""

    section = "problems"


class RecordFormatError(Rstar2Error, ValueError):
    """A record that this package writes, such as an episode's record, has an invalid format."""

    section = "run-folder"


class ConfigurationError(Rstar2Error, ValueError):
    """Options are incompatible, or the value of an option is invalid.

    Args:
        message: The expected value, the given value and the fix, in full sentences.
        option: Name of the option that fixes the error, if there is one, or names of several options of which any one
            fixes it. Python shows it as an argument (``episodes=...``), the command line as its flag (``--episodes``):
            see ``worded``.
        value: Value to show for the option: the value that fixes the error, or a placeholder such as ``NAME``; ``None``
            shows ``...``.
    """

    def __init__(
        self, message: str = "", *, option: str | tuple[str, ...] | None = None, value: str | None = None
    ) -> None:
        super().__init__(message)
        self.option = option
        self.value = value

    def __str__(self) -> str:
        """Return the message, which shows the option as a Python argument: ``episodes=...``."""
        return self.worded(lambda name, value: f"{name}={'...' if value is None else repr(value)}")

    def worded(self, write: Callable[[str, str | None], str]) -> str:
        """Return the message, with each option written by ``write``, which receives its name and value.

        An option for which ``write`` returns an empty text is left out.
        """
        message = str(self.args[0]) if self.args else ""
        if not self.option:
            return message
        names = (self.option,) if isinstance(self.option, str) else self.option
        written = [text for name in names if (text := write(name, self.value))]
        return f"{message.removesuffix('.')} ({' or '.join(written)})." if written else message


class DiskFullError(Rstar2Error):
    """The disk is full, or a quota is exhausted; data written before the error is kept.

    Args:
        path: The file or folder that could not be written.
    """

    section = "disk-full"

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} cannot be written, because its disk is full. The part that was already "
            "written is kept. Free some space, raise a quota or `ulimit -f`, or choose another disk; then repeat the "
            "command (with --resume if it continues earlier output)."
        )


class UnknownOptionError(ConfigurationError, TypeError):
    """No option with the given name exists.

    It is a subclass of ``TypeError``, which Python raises for unknown arguments: one ``except`` catches both.
    """

    section = "options"


class EpisodeOverError(Rstar2Error, ResetNeeded, RuntimeError):
    """``step`` was called after the end of the episode, or before the first ``reset``.

    It is a subclass of Gymnasium's ``ResetNeeded``, which environments of ``gym.make`` raise before the first
    ``reset``: one ``except`` catches both.
    """

    section = "episode-over"


class BranchError(Rstar2Error, RuntimeError):
    """An episode cannot be branched at the requested point, or its replay differs from the episode."""

    section = "branching"


class SandboxUnavailableError(Rstar2Error, RuntimeError):
    """The sandbox cannot start, or cannot provide the isolation that was requested."""


class ServiceError(Rstar2Error, RuntimeError):
    """An HTTP server did not answer, or refused a request; the message quotes the server's answer.

    Args:
        message: The request, and how it failed.
        cause: ``refused`` if a model's endpoint refused the conversation for its content, ``too_long`` if the
            conversation exceeds the model's context, ``lost`` if the connection failed, ``passing`` if another attempt
            may succeed, ``late`` if the request timed out; otherwise empty.
        after_s: Seconds to wait before another attempt, as the server requested; ``None`` if it did not request a wait.
    """

    section = "endpoints"

    def __init__(self, message: str = "", *, cause: str = "", after_s: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.after_s = after_s


class ToolServerError(ServiceError):
    """An MCP server did not start, cannot be reached, or did not answer."""

    section = "mcp-servers"


class EndpointBudgetError(ServiceError):
    """A run has spent its budget of tokens or money at an endpoint."""

    section = "budget"


class UnusableReplyError(Rstar2Error, RuntimeError):
    """A model's reply cannot be played as a turn, for a reason unrelated to the quality of the answer.

    Args:
        end: How the episode ends: ``no_text``, ``cut`` or ``refused``.
        message: Description of the reply.
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
