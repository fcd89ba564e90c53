"""``McpServer``: the tools of one MCP server for one environment. Each result has a ``ToolStatus``.

The status is ``exception`` if the server marks the result as an error, ``timeout`` if the call takes too long, and
``invalid_arguments`` if the schema or the server rejects the arguments. Every other failure is ``unavailable``, which
is never the policy's error: the server ended, cannot be reached, or breaks the protocol or its own schema.

Covered: one server for each episode, or a shared one; the seed of each call, as ``rstar2-env/seed`` in ``_meta``;
copies of an environment, which start their own local program and repeat the episode's calls in it. Not covered: state
that a server over HTTP keeps outside of its session; copies and episodes share this state.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jsonschema
from referencing import Registry

from rstar2_env.core.errors import (
    ConfigurationError,
    SandboxUnavailableError,
    ToolServerError,
    UnknownNameError,
)
from rstar2_env.core.secret import hidden
from rstar2_env.core.status import ToolStatus
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec
from rstar2_env.tools.cut import cut_middle
from rstar2_env.tools.mcp.options import ServerOptions
from rstar2_env.tools.mcp.results import result_text
from rstar2_env.tools.mcp.session import InvalidAnswerError, LostError, McpSession, RefusedError
from rstar2_env.tools.sandboxed import call_seed

_log = logging.getLogger(__name__)
_RESTARTED = "The tool was restarted: what earlier calls changed in it is gone."
_ATTEMPTS = 2
"""Number of attempts to start the server; if all fail, the call is ``unavailable``."""


class McpServer:
    """The tools of one MCP server, for one environment.

    The tools are listed once in each process, when the first environment is made, and again if the server's Python file
    has changed since. The server starts at the first call of an episode; a shared server starts at the first call in
    the process.

    Args:
        options: Address and options of the server.

    Raises:
        ToolServerError: The server does not start or does not answer.
        ConfigurationError: The server has no tools, or a tool's schema is not valid.
        UnknownNameError: ``only`` names a tool that the server does not have.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._session: McpSession | None = None
        self._left: list[McpSession] = []
        self._calls: list[tuple[str, Mapping[str, Any], CallContext]] = []
        self._why = ""
        self.tools = [McpTool(self, name, spec) for name, spec in _listing(options)]

    def call(self, name: str, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Call a tool by the server's own name for it, without ``prefix``; the result carries this name too."""
        began = time.monotonic()
        try:
            self._connect(context)
            result = self._send(name, arguments, context)
        except TimeoutError:
            found = self._overran(name)
        except RefusedError as error:
            status = ToolStatus.INVALID_ARGUMENTS if error.arguments else ToolStatus.UNAVAILABLE
            found = ToolResult(name, status, f"The tool refused the call: {error}", error_type=str(status))
            if not error.arguments and self._session is not None and not self._session.answers():
                self._leave(lost=True)
        except (LostError, ToolServerError, SandboxUnavailableError) as error:
            lost = self._leave(lost=True)
            found = self._unavailable(name, f"{str(error).removesuffix('.')}.{lost.said() if lost is not None else ''}")
        except InvalidAnswerError as error:
            found = self._unavailable(name, f"its answer is not valid: {error}")
        else:
            self._why = ""
            found = self._found(name, result)
            self._calls.append((name, arguments, context))
        # A server may repeat the token, and the policy may be a model of another service.
        return replace(found, text=hidden(found.text), wall_s=time.monotonic() - began)

    def end_episode(self) -> None:
        """End the episode's own server; a shared server keeps running."""
        self._calls = []
        if self._options.lifetime == "episode":
            self._leave()

    def close(self) -> None:
        """Stop using the server, and wait for the end of every session that no other environment uses."""
        self._calls = []
        self._leave()
        for session in self._left:
            if not session.usable:
                session.wait_closed()
        self._left = []

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the session: the copy opens a session of its own."""
        return {**self.__dict__, "_session": None, "_left": []}

    def _connect(self, context: CallContext) -> None:
        if self._session is not None and self._session.usable:
            return
        self._leave(lost=self._session is not None)
        for attempt in range(_ATTEMPTS):
            try:
                if self._options.lifetime == "shared":
                    self._session = _SHARED.join(self._options)
                else:
                    self._session = McpSession(self._options, context.seed)
                    self._session.open()
                break
            except ToolServerError:
                self._leave()
                if attempt == _ATTEMPTS - 1:
                    raise
        if self._options.lifetime == "episode" and not self._options.is_http:
            for call in self._calls:  # this environment is a copy, or the server was lost and the episode continues
                self._repeat(*call)

    def _repeat(self, name: str, arguments: Mapping[str, Any], context: CallContext) -> None:
        """Repeat an earlier call of the episode in a newly started server program.

        Raises:
            LostError: The call failed this time, so the program does not have the state of the episode.
        """
        try:
            self._send(name, arguments, context)
        except (TimeoutError, RefusedError, InvalidAnswerError, LostError) as error:
            late = f"it took longer than {self._options.timeout_s:g} s" if isinstance(error, TimeoutError) else error
            raise LostError(
                f"its program was started again, and the earlier call of {name!r} could not be repeated: {late}"
            ) from error

    def _send(self, name: str, arguments: Mapping[str, Any], context: CallContext) -> Any:
        assert self._session is not None  # _connect has run
        meta = {"rstar2-env/seed": call_seed(context), "rstar2-env/call": context.number}
        return self._session.call(name, arguments, meta)

    def _overran(self, name: str) -> ToolResult:
        """Return the result of a call that took too long.

        A local program that no other environment uses is ended. A shared server, or a server over HTTP, keeps running.
        The status is ``timeout``, or ``unavailable`` if a server that keeps running does not answer other requests.
        """
        options, session = self._options, self._session
        message = f"The call was stopped: it took longer than {options.timeout_s:g} s."
        own_program = options.lifetime == "episode" and not options.is_http
        if own_program:
            self._leave()
            message = f"{message} {_RESTARTED}" if self._calls else message
            self._calls = []
        elif session is None or not session.answers():
            self._leave(lost=True)
            return self._unavailable(name, f"it did not answer within {options.timeout_s:g} s")
        return ToolResult(name, ToolStatus.TIMEOUT, message, error_type="timeout")

    def _unavailable(self, name: str, why: str) -> ToolResult:
        """Return the result of a call that the server did not carry out; log ``why`` unless it was just logged."""
        if why != self._why:
            _log.warning("The tool %r of the MCP server %r is not available: %s", name, self._options.target, why)
            self._why = why
        return ToolResult(name, ToolStatus.UNAVAILABLE, f"The tool is not available: {why}", error_type="unavailable")

    def _found(self, name: str, result: Any) -> ToolResult:
        # Before the text is cut, which could leave a part of the token.
        text, left_out = cut_middle(hidden(result_text(result)), self._options.max_output)
        if result.is_error:
            text = text or "The tool failed without a message."
            return ToolResult(name, ToolStatus.EXCEPTION, text, error_type="ToolError", truncated=left_out > 0)
        if not text:
            return ToolResult(name, ToolStatus.EMPTY, "The tool returned nothing.")
        return ToolResult(name, ToolStatus.OK, text, truncated=left_out > 0)

    def _leave(self, *, lost: bool = False) -> McpSession | None:
        """Stop using the current session: close it, or release it if it is shared.

        Args:
            lost: Whether the session is broken, so that other environments cannot use it either.

        Returns:
            The session, or ``None`` if there was none.
        """
        session, self._session = self._session, None
        if session is None:
            return None
        if self._options.lifetime == "shared":
            _SHARED.leave(session, lost=lost)
        else:
            session.close()
        self._left = [*(one for one in self._left if not one.ended), session]
        return session


class McpTool:
    """One tool of an MCP server, as a tool of an environment.

    Args:
        server: The environment's connection to the server.
        theirs: The server's own name for the tool.
        spec: The name (with the option ``prefix``), description and schema that the policy sees.
    """

    def __init__(self, server: McpServer, theirs: str, spec: ToolSpec) -> None:
        self._server, self._theirs, self.spec = server, theirs, spec

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Check the arguments against the tool's full JSON schema, and call the tool."""
        # The registry is empty, so that a schema cannot make this process fetch another schema.
        validator = jsonschema.Draft202012Validator(dict(self.spec.parameters), registry=Registry())
        fault = jsonschema.exceptions.best_match(validator.iter_errors(dict(arguments)))
        if fault is not None:
            message = f"The arguments do not fit {self.spec.name}: {fault.json_path.replace('$', 'arguments', 1)}: "
            message += f"{cut_middle(fault.message, 400)[0]}. Nothing was run."
            return ToolResult(self.spec.name, ToolStatus.INVALID_ARGUMENTS, message, error_type="invalid_arguments")
        return replace(self._server.call(self._theirs, arguments, context), name=self.spec.name)

    def end_episode(self) -> None:
        """End the episode's own server; a shared server keeps running."""
        self._server.end_episode()

    def close(self) -> None:
        """Stop using the server; it ends if no other environment uses it."""
        self._server.close()


@dataclass(slots=True)
class _Share:
    """A shared session, and the number of environments that use it."""

    session: McpSession
    users: int = 0


class _Shared:
    """The shared sessions of this process, one per distinct ``ServerOptions``; the last user of a session closes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: dict[ServerOptions, _Share] = {}

    def join(self, options: ServerOptions) -> McpSession:
        """Return the shared session with these options, or open one if none is usable; count one more user.

        Raises:
            ToolServerError: The server does not start or does not answer.
        """
        with self._lock:
            share = self._shares.get(options)
            if share is None or not share.session.usable:
                session = McpSession(options)
                session.open()
                share = self._shares[options] = _Share(session)
            share.users += 1
            return share.session

    def leave(self, session: McpSession, *, lost: bool) -> None:
        """Stop using a session; close it if it is lost or if no other environment uses it."""
        with self._lock:
            share = self._shares.get(session.options)
            if share is not None and share.session is session:
                share.users -= 1
                if share.users > 0 and not lost:
                    return
                del self._shares[session.options]
                session.close()


_SHARED = _Shared()
_listings: dict[tuple[ServerOptions, int], list[tuple[str, ToolSpec]]] = {}
"""The tools of each server, keyed by its options and, if it is a Python file, the file's modification time (ns)."""
_listing_lock = threading.Lock()


def _after_fork() -> None:
    """Replace the locks, which a thread of the parent may have held, and the sessions, which belong to the parent."""
    global _SHARED, _listing_lock
    _SHARED, _listing_lock = _Shared(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _listing(options: ServerOptions) -> list[tuple[str, ToolSpec]]:
    """Return the server's own name of each tool, and the spec that the policy sees; cached in each process."""
    key = options, os.stat(options.target).st_mtime_ns if options.is_file else 0
    with _listing_lock:
        if key not in _listings:
            session = McpSession(options)
            session.open()
            session.close()
            session.wait_closed()
            _listings[key] = _offered(options, session.tools)
        return _listings[key]


def _offered(options: ServerOptions, tools: list[Any]) -> list[tuple[str, ToolSpec]]:
    names = [tool.name for tool in tools]
    for wanted in options.only:
        if wanted not in names:
            raise UnknownNameError(f"tool of the MCP server {options.target!r}", wanted, names)
    offered = []
    for tool in tools:
        if options.only and tool.name not in options.only:
            continue
        where = f"The schema of the tool {tool.name!r} of the MCP server {options.target!r}"
        try:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        except jsonschema.SchemaError as error:
            raise ConfigurationError(f"{where} is not valid at {error.json_path}: {error.message}.") from error
        if tool.input_schema.get("type") != "object":
            found = tool.input_schema.get("type")
            raise ConfigurationError(f"{where} must have the type object, not {found!r}.")
        name = options.prefix + tool.name
        offered.append((tool.name, ToolSpec(name, tool.description or "", tool.input_schema)))
    if not offered:
        raise ConfigurationError(f"The MCP server {options.target!r} does not offer any tools.")
    return offered
