"""``ServerOptions``: the address of an MCP server, and how an environment uses the server."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.given_path import check_given
from rstar2_env.core.options.declare import option
from rstar2_env.sandbox.stdio import StdioLimits

_SCHEMES = ("http://", "https://")
_OF_A_PROGRAM = frozenset({"pass_env", *(one.name for one in fields(StdioLimits))})
"""Names of the options that apply only to a server that is a local program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(StdioLimits):
    """The address of one MCP server, the options of its tools, and, for a local program, its resource limits.

    Attributes:
        target: A Python file (``./server.py``), the address of a server over HTTP (``http://127.0.0.1:8000/mcp``), or a
            command line that starts a server on its standard input and output (``mcp-server-time``).
        lifetime: ``episode``, the default: every episode has its own program, or its own session with a server over
            HTTP, so state does not pass from one episode to the next. ``shared``: all environments of this process
            share one program or session.
        only: Names of the tools to offer; empty for all tools of the server.
        prefix: Text before the name of each tool, to distinguish the tools of several servers.
        timeout_s: Seconds that one call may take.
        start_timeout_s: Seconds within which the server must have started and answered its first request.
        max_output: Maximum length of a result that the policy is shown, in characters; a longer result is cut in the
            middle.
        pass_env: Names of further environment variables to pass to a local program; it always receives ``PATH``,
            ``HOME`` and similar variables.
        token_env: Name of the environment variable that holds the bearer token for a server over HTTP.
    """

    target: str
    lifetime: Literal["episode", "shared"] = "episode"
    only: tuple[str, ...] = ()
    prefix: str = ""
    timeout_s: float = option(30.0, above=0, unit="seconds")
    start_timeout_s: float = option(30.0, above=0, unit="seconds")
    max_output: int = option(4000, least=1)
    pass_env: tuple[str, ...] = ()
    token_env: str = ""

    _place: ClassVar[str] = "mcp."

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: An option is out of its range, the address is not complete, the file or an environment
                variable does not exist, or an option does not apply to this kind of server, local or over HTTP.
        """
        StdioLimits.__post_init__(self)
        if self.is_http:
            try:
                complete = bool(urlsplit(self.target).hostname)
            except ValueError:
                complete = False
            if not complete:
                raise ConfigurationError(
                    f"The address {self.target!r} of an MCP server must have the form http://HOST[:PORT]/PATH."
                )
        elif self.token_env:
            raise ConfigurationError(
                "The option `token_env` applies only to an MCP server over HTTP; for a local program, pass "
                "variables with pass_env."
            )
        for one in fields(self) if self.is_http else ():
            if one.name in _OF_A_PROGRAM and getattr(self, one.name) != one.default:
                raise ConfigurationError(
                    f"The option {one.name} applies only to an MCP server that is a local program, not to "
                    "one over HTTP: omit it."
                )
        for name in (*self.pass_env, *filter(None, [self.token_env])):
            if name not in os.environ:
                raise ConfigurationError(
                    f"The MCP server {self.target!r} needs the environment variable {name}, which is not set: set it."
                )
        if not self.is_http:
            self.command()

    @property
    def is_http(self) -> bool:
        """Whether the server is reached over HTTP; otherwise it is a local program."""
        return self.target.startswith(_SCHEMES)

    @property
    def is_file(self) -> bool:
        """Whether the server is a Python file."""
        written_as_file = self.target.endswith(".py") and " " not in self.target.strip()
        return not self.is_http and (written_as_file or (self.target.endswith(".py") and Path(self.target).exists()))

    def command(self) -> list[str]:
        """Return the command of a local program.

        Raises:
            ConfigurationError: The Python file does not exist, or the command line has an unclosed quote.
        """
        if self.is_file:
            check_given(Path(self.target), "give the Python file of an MCP server", kind="file")
            return [sys.executable, self.target]
        try:
            words = shlex.split(self.target)
        except ValueError as error:
            raise ConfigurationError(f"The command {self.target!r} of an MCP server cannot be read: {error}.") from None
        if not words:
            raise ConfigurationError(
                "An MCP server must be written as mcp:./server.py, mcp:http://HOST:PORT/mcp, or mcp:COMMAND."
            )
        return words
