"""``McpSession``: one session with an MCP server, for callers in any thread.

Covered: servers over standard input and output or over HTTP that implement the specification 2026-07-28 or an earlier
version, as the SDK (``mcp`` 2) negotiates. All sessions of a process run in one event loop, in its own thread. Not
covered: requests of a server to a person or a model (elicitation, sampling), which are refused; prompts and resources.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import math
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from rstar2_env.core.errors import MissingExtraError, ToolServerError
from rstar2_env.core.secret import bearer
from rstar2_env.sandbox.stdio import check_layers, limited
from rstar2_env.tools.mcp.error_output import ErrorOutput
from rstar2_env.tools.mcp.options import ServerOptions

try:
    import anyio
    import httpx2
    from mcp import Client, MCPError, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, REQUEST_TIMEOUT
except ImportError as error:
    raise MissingExtraError("mcp", "The tools of an MCP server") from error

T = TypeVar("T")

_GRACE_S = 5.0
"""Seconds that the SDK may need beyond a time limit before the session counts as lost."""
_MOST_PAGES = 100


class LostError(Exception):
    """The server ended, or the connection to it failed."""


class InvalidAnswerError(Exception):
    """The answer does not have the form of the protocol, or of the tool's own schema."""


class RefusedError(Exception):
    """The server answered a request with an error of the protocol.

    Attributes:
        arguments: Whether the error is about the arguments of the call.
    """

    def __init__(self, message: str, *, arguments: bool) -> None:
        super().__init__(message)
        self.arguments = arguments


class McpSession:
    """One session with an MCP server. ``open`` begins it, and ``close`` ends it and the program of a local server.

    Args:
        options: Address and options of the server.
        seed: Seed of the episode; a local program finds it in the variable ``RSTAR2_SEED``.

    Attributes:
        tools: The server's tools (``mcp_types.Tool``), once ``open`` has returned.
    """

    def __init__(self, options: ServerOptions, seed: int = 0) -> None:
        self.options = options
        self.tools: list[Any] = []
        self._seed = seed
        self._process = os.getpid()
        self._client: Any = None
        self._errors: ErrorOutput | None = None
        self._closing = asyncio.Event()
        self._begun: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._starting: anyio.CancelScope | None = None
        self._keeper: concurrent.futures.Future[None] | None = None
        self._loop, self._thread = _event_loop()

    def open(self) -> None:
        """Start or reach the server, negotiate the version of the protocol, and list the tools.

        Raises:
            ToolServerError: The server did not start or did not answer, or the session was closed in the meantime; the
                message contains the end of the server's error output.
            SandboxUnavailableError: The machine lacks an isolation layer that the option ``isolation`` requires for a
                local program.
        """
        if not self.options.is_http:
            check_layers(self.options)
        try:
            self._keeper = self._submit(self._keep())
            self._begun.result(self.options.start_timeout_s + _GRACE_S)
        except BaseException as error:
            failure = _first(error)
            self.close()
            if not isinstance(failure, Exception):
                raise
            why = (
                f"it did not answer within {self.options.start_timeout_s:g} s"
                if isinstance(failure, TimeoutError)
                else str(failure) or type(failure).__name__
            )
            failed = "cannot be reached" if self.options.is_http else "did not start"
            raise ToolServerError(
                f"The MCP server {self.options.target!r} {failed}: {why.removesuffix('.')}.{self.said()}", cause="lost"
            ) from error

    @property
    def usable(self) -> bool:
        """Whether the session is running and was opened by this process, not by its parent before a fork."""
        here = self._client is not None and self._process == os.getpid()
        return here and self._thread.is_alive() and not (self._keeper and self._keeper.done())

    @property
    def ended(self) -> bool:
        """Whether the session has ended, and with it the program of a local server."""
        return self._keeper is None or self._keeper.done()

    def call(self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> Any:
        """Call a tool, with ``meta`` as the request's metadata, and return the ``mcp_types.CallToolResult``.

        Raises:
            LostError: The connection failed.
            RefusedError: The server refused the call.
            TimeoutError: The call took longer than ``timeout_s``.
            InvalidAnswerError: The answer does not have the form of the protocol, or of the tool's own schema.
        """
        limit, client = self.options.timeout_s, self._client
        if client is None:
            raise LostError("the connection to the server ended")
        call = client.call_tool(name, dict(arguments), read_timeout_seconds=limit, meta=dict(meta))
        return self._wait(call, limit)

    def answers(self) -> bool:
        """Whether the server answers a request to list its tools within a few seconds."""
        try:
            self._wait(self._client.list_tools(cache_mode="bypass"), 0, _GRACE_S)
        except RefusedError:
            return True
        except Exception:
            return False
        return True

    def said(self) -> str:
        """Return a sentence with the end of a local program's error output, or "" if there is none."""
        said = "" if self._errors is None else self._errors.end()[-1000:]
        return f" The error output of the server ends with: {said}" if said else ""

    def close(self) -> None:
        """End the session without waiting, even while it starts; a local program has three seconds to end by itself."""
        self._client = None
        if self._process == os.getpid() and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop)

    def wait_closed(self, seconds: float = 2 * _GRACE_S) -> None:
        """Wait until a closed session has ended, and with it the program of a local server."""
        if self._keeper is not None and self._process == os.getpid() and self._thread.is_alive():
            concurrent.futures.wait([self._keeper], seconds)

    def _stop(self) -> None:
        self._closing.set()
        if self._starting is not None and not self._begun.done():
            self._starting.cancel()

    async def _keep(self) -> None:
        """Keep the session open in one task, since the SDK requires the same task to open and close a session."""
        begun = self._begun
        try:
            with anyio.fail_after(self.options.start_timeout_s) as self._starting:
                if self._closing.is_set():
                    return
                async with self._transport() as transport, Client(transport, cache=None) as client:
                    # All pages: the SDK checks a result against its tool's schema only if it has read that schema.
                    self.tools = await _list_tools(client)
                    self._starting.deadline = math.inf
                    self._client = client
                    begun.set_result(None)
                    await self._closing.wait()
        except Exception as error:
            if not begun.done():
                begun.set_exception(error)
        finally:
            self._client = None
            if not begun.done():
                begun.set_exception(LostError("it was closed while it started"))

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        if not self._thread.is_alive():
            work.close()
            raise LostError("the background thread that serves the MCP sessions has ended")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        options = self.options
        if not options.is_http:
            self._errors = ErrorOutput(asyncio.get_running_loop())
            try:
                with limited(options, options.command()) as (command, variables):
                    yield stdio_client(
                        StdioServerParameters(
                            command=command[0],
                            args=command[1:],
                            env={
                                "PYTHONHASHSEED": "0",
                                "PYTHONUNBUFFERED": "1",
                                "MALLOC_ARENA_MAX": "2",
                                "RSTAR2_SEED": str(self._seed),
                                **{name: os.environ[name] for name in options.pass_env},
                                **variables,
                            },
                            cwd=os.getcwd(),
                        ),
                        errlog=self._errors.file,
                    )
            finally:
                self._errors.close()
            return
        headers = bearer(os.environ[options.token_env] if options.token_env else None)
        timeout = httpx2.Timeout(options.timeout_s + _GRACE_S)
        async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
            yield streamable_http_client(options.target, http_client=http)

    def _wait(self, work: Coroutine[Any, Any, T], limit_s: float, grace_s: float = _GRACE_S) -> T:
        """Run a coroutine in the event loop for at most ``limit_s + grace_s`` seconds or until the session ends."""
        assert self._keeper is not None  # open has run
        future = self._submit(work)
        awaited: list[concurrent.futures.Future[Any]] = [future, self._keeper]
        try:
            concurrent.futures.wait(awaited, limit_s + grace_s, return_when=concurrent.futures.FIRST_COMPLETED)
            if future.done():
                return future.result()
        except MCPError as error:
            _raise_as_ours(error)
        except (httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise LostError(f"{type(error).__name__}: {error}") from error
        except concurrent.futures.CancelledError:
            raise LostError("the session was cancelled") from None
        except Exception as error:
            # The SDK checks the server's answers, and raises exceptions of several libraries.
            raise InvalidAnswerError(str(error)) from error
        finally:
            future.cancel()
        if self._keeper.done() or not self._thread.is_alive():
            raise LostError("the connection to the server ended")
        raise TimeoutError


async def _list_tools(client: Any) -> list[Any]:
    found: list[Any] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _raise_as_ours(error: MCPError) -> NoReturn:
    if error.code == REQUEST_TIMEOUT:
        raise TimeoutError from error
    if error.code == CONNECTION_CLOSED:
        raise LostError(str(error)) from error
    raise RefusedError(str(error), arguments=error.code == INVALID_PARAMS) from error


def _first(error: BaseException) -> BaseException:
    """Return the first exception within nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


_lock = threading.Lock()
_loops: dict[int, tuple[asyncio.AbstractEventLoop, threading.Thread]] = {}
"""The event loop and its thread by process id: a forked process inherits its parent's entry, but not the thread."""


def _event_loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    with _lock:
        if os.getpid() not in _loops or not _loops[os.getpid()][1].is_alive():
            # If the caller configures no log handler, Python would print the SDK's messages about a faulty server.
            logging.getLogger("mcp.client").addHandler(logging.NullHandler())
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="rstar2-mcp", daemon=True)
            thread.start()
            _loops[os.getpid()] = loop, thread
        return _loops[os.getpid()]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
