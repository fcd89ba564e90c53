"""An MCP server (``mcp`` 2) for tools of this package, and for episodes of an environment.

Covered: standard input and output (an assistant then starts the server), and HTTP on this machine; all versions of the
protocol that the SDK negotiates: 2026-07-28, and earlier versions, which have a handshake. Version 2026-07-28 has no
sessions, so every call names its episode. Not covered: authentication, so HTTP listens on loopback only; prompts and
resources.

The gold answer of a problem never leaves the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeGuard

import gymnasium as gym

from rstar2_env.adapters.base.messages import as_json
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.options.declare import Count, Seconds, checked
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.telemetry import recording
from rstar2_env.core.version import __version__
from rstar2_env.sandbox.serve.options import is_loopback
from rstar2_env.tools import CallContext, FunctionTool, Tool, ToolCall, ToolChain, ToolResult
from rstar2_env.wrappers.make import make_env

try:
    import mcp_types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    from rstar2_env.adapters.base.serving import serve_app
except ImportError as error:
    raise MissingExtraError("mcp", "The adapter 'mcp_server'") from error

_SEED, _CALL = "rstar2-env/seed", "rstar2-env/call"
"""Keys of ``_meta`` for a call's seed, and for the call's number in its episode."""
_SIGNAL_S = 1.0
"""Maximum seconds from a signal to its effect while a server reads standard input."""


@checked
def make_server(
    name: str, tools: Sequence[Any], *, workers: Count = 8, instructions: str = "", json_results: bool = False
) -> Any:
    """Return an MCP server of the SDK (``mcp.server.lowlevel.Server``) that offers tools of this package.

    A result has the tool's text, and, as structured content, the status, the error type, the exit code and whether the
    text was cut. Results with a status other than ``ok`` and ``empty`` are marked as errors.

    Args:
        name: Name of the server.
        tools: The tools that clients may call.
        workers: Maximum number of concurrent calls.
        instructions: Text for an assistant that uses the server.
        json_results: Whether the text of a successful result is a JSON object; that object then becomes the structured
            content.
    """
    chain = ToolChain(tools)
    numbers = itertools.count()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="rstar2-mcp-server")

    async def list_tools(context: Any, params: Any) -> Any:
        return mcp_types.ListToolsResult(
            tools=[
                mcp_types.Tool(name=spec.name, description=spec.description, input_schema=dict(spec.parameters))
                for spec in chain.specs
            ]
        )

    async def call_tool(context: Any, params: Any) -> Any:
        seed, number = ((context.meta or {}).get(key) for key in (_SEED, _CALL))
        if _is_count(seed):
            place = CallContext(seed, number if _is_count(number) else 0, 0)
        else:
            place = CallContext(0, next(numbers), 0)
        call = ToolCall(params.name, params.arguments or {})
        result = await asyncio.get_running_loop().run_in_executor(pool, chain.call, call, place)
        return mcp_types.CallToolResult(
            content=[mcp_types.TextContent(type="text", text=result.text)],
            structured_content=_structured(result, json_results),
            is_error=result.status not in (ToolStatus.OK, ToolStatus.EMPTY),
        )

    return Server(
        name, version=__version__, instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool
    )


def serve_tools(
    name: str,
    tools: Sequence[Tool],
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    announce: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve tools until the client disconnects or, over HTTP, until SIGINT or SIGTERM; then close the tools.

    Args:
        name: Name of the server.
        tools: The tools that clients may call; they are closed at the end.
        host: Address to listen on, which must be a loopback address.
        port: Port for HTTP, 0 for a free port; ``None`` uses standard input and output.
        announce: Called with the server's URL once its socket listens.
        **options: Options of ``make_server``.

    Raises:
        ConfigurationError: The server cannot listen on the address, or other machines could reach it.
    """
    if not is_loopback(host):
        raise ConfigurationError(
            "The MCP server does not check who connects, so it must listen only on this machine, not on "
            f"{host}: use 127.0.0.1, and put a proxy with authentication in front of it.",
            option="host",
        )
    server = make_server(name, tools, **options)
    try:
        if port is None:
            with recording():
                _serve_stdio(server)
        else:
            serve_app(server.streamable_http_app(host=host), host, port, path="/mcp", announce=announce)
    finally:
        for tool in tools:
            tool.close()


@checked
def serve_env(
    env_id: str,
    *,
    env_options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
    episodes: Count = 16,
    timeout_s: Seconds = 1800.0,
    **options: Any,
) -> None:
    """Serve episodes of an environment as the tools ``reset``, ``step`` and ``state``.

    Args:
        env_id: A Gymnasium id, or your own code, as for ``make_env``.
        env_options: Options of the environment.
        wrappers: Wrappers of the environment, innermost first.
        episodes: Maximum number of running episodes, each with its own environment.
        timeout_s: Seconds without a step after which an episode may be ended to make room for another.
        **options: Options of ``serve_tools``.

    Raises:
        ConfigurationError: An option is invalid, or the environment is not a text environment.
        UnknownEnvError: There is no such environment.
    """
    desk = EpisodeDesk(
        partial(make_env, env_id, wrappers=wrappers, **(env_options or {})), most=episodes, timeout_s=timeout_s
    )
    desk.check()
    try:
        serve_tools(env_id, desk.tools(), json_results=True, workers=episodes, instructions=_HOW_TO_PLAY, **options)
    finally:
        desk.close()


_HOW_TO_PLAY = (
    "Call reset to begin an episode. It returns the system message, which says how to write calls and answers, and the "
    "task. Call step with your whole turn as text until it returns terminated or truncated."
)


@dataclass(slots=True)
class _Played:
    """An episode of an ``EpisodeDesk``.

    Attributes:
        env: Environment of the episode; ``None`` after its end.
        summary: The state that the tool ``state`` returns.
        used: Time of the last use, on the clock ``time.monotonic``.
    """

    env: gym.Env[str, str] | None
    summary: dict[str, Any]
    used: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)


class EpisodeDesk:
    """Runs episodes, each identified by a name, for clients without sessions; safe to call from any thread.

    Args:
        make: Function that creates an environment.
        most: Maximum number of running episodes.
        timeout_s: Seconds without a step after which a running episode may be ended to make room for another.
    """

    def __init__(self, make: Callable[[], gym.Env[str, str]], *, most: int, timeout_s: float) -> None:
        self._make, self._most, self._timeout_s = make, most, timeout_s
        self._lock = threading.Lock()
        self._episodes: dict[str, _Played] = {}
        self._free: list[gym.Env[str, str]] = []
        self._made = 0

    def check(self) -> None:
        """Create the first environment, so that invalid options raise an error now, before a client connects."""
        self._give_back(self._take())

    def tools(self) -> list[FunctionTool]:
        """Return the tools that a client may call."""
        return [FunctionTool(function) for function in (self.reset, self.step, self.state)]

    def reset(
        self,
        seed: Annotated[int | None, "Seed of the episode: the same seed gives the same task."] = None,
        problem_id: Annotated[str | None, "Problem to play, by its id."] = None,
    ) -> str:
        """Begin an episode. Returns its name, the system message, and the task."""
        if seed is not None and seed < 0:
            raise ValueError("seed must be at least 0.")
        env = self._take()
        try:
            text, info = env.reset(seed=seed, options=None if problem_id is None else {"problem_id": problem_id})
        except BaseException:
            self._give_back(env)
            raise
        name = secrets.token_hex(8)
        summary = {"episode": name, "problem_id": info.get("problem_id"), "turns": 0, "reward": 0.0, "end": None}
        with self._lock:
            self._episodes[name] = _Played(env, summary)
        return json.dumps(
            {
                "episode": name,
                "text": text,
                **{key: as_json(info).get(key) for key in ("problem_id", "system", "tools")},
            }
        )

    def step(
        self,
        episode: Annotated[str, "Name of the episode, which reset returned."],
        text: Annotated[str, "Your whole turn, as text."],
    ) -> str:
        """Play one turn. Returns the text that follows, the reward, and whether the episode is over."""
        played = self._named(episode)
        with played.lock:
            if played.env is None:
                raise ValueError(
                    f"The episode {episode!r} is over (end: {played.summary['end']}): call reset to start another."
                )
            played.used = time.monotonic()
            shown, reward, terminated, truncated, info = played.env.step(text)
            played.used = time.monotonic()
            played.summary["turns"] += 1
            played.summary["reward"] += float(reward)
            if terminated or truncated:
                played.summary["end"] = info.get("end", "answered")
                env, played.env = played.env, None
                self._give_back(env)
        return json.dumps(
            {
                "text": shown,
                "reward": float(reward),
                "terminated": terminated,
                "truncated": truncated,
                "info": as_json(info),
            }
        )

    def state(self, episode: Annotated[str, "Name of the episode, which reset returned."]) -> str:
        """Return the state of an episode: its problem, turns, reward, and its end if it is over."""
        return json.dumps(self._named(episode).summary)

    def close(self) -> None:
        """Close every environment."""
        with self._lock:
            envs = [*self._free, *(one.env for one in self._episodes.values() if one.env is not None)]
            self._free, self._episodes = [], {}
        for env in envs:
            env.close()

    def _named(self, episode: str) -> _Played:
        with self._lock:
            if episode not in self._episodes:
                raise ValueError(
                    f"There is no running episode {episode[:40]!r}: call reset, and use the name that reset returns."
                )
            return self._episodes[episode]

    def _take(self) -> gym.Env[str, str]:
        """Return an environment that is idle, new, or taken from an abandoned episode."""
        with self._lock:
            ended = [name for name, one in self._episodes.items() if one.env is None]
            for name in ended[: -self._most]:  # forget the oldest; clients had time to read their state
                del self._episodes[name]
            if self._free:
                return self._free.pop()
            if self._made == self._most:
                return self._abandoned()
            self._made += 1
        try:
            return self._make()
        except BaseException:
            with self._lock:
                self._made -= 1
            raise

    def _abandoned(self) -> gym.Env[str, str]:
        """End the running episode that has been unused longest, and return its environment.

        Raises:
            ValueError: That episode was used less than ``timeout_s`` ago, or is in use.
        """
        running = [one for one in self._episodes.values() if one.env is not None]
        oldest = min(running, key=lambda one: one.used, default=None)
        if (
            oldest is None
            or time.monotonic() - oldest.used < self._timeout_s
            or not oldest.lock.acquire(blocking=False)
        ):
            raise ValueError(
                f"This server allows {self._most} unfinished episodes at the same time, and this number is reached: "
                "finish an episode first."
            )
        try:
            env, oldest.env = oldest.env, None
            oldest.summary["end"] = "abandoned"
        finally:
            oldest.lock.release()
        assert env is not None  # a step that ends the episode holds its lock until the environment is returned
        return env

    def _give_back(self, env: gym.Env[str, str]) -> None:
        with self._lock:
            self._free.append(env)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _structured(result: ToolResult, json_results: bool) -> dict[str, Any]:
    if json_results and result.status is ToolStatus.OK:
        with contextlib.suppress(ValueError):
            found: dict[str, Any] = json.loads(result.text)
            return found
    record = result.record()
    return {key: record[key] for key in ("status", "error_type", "exit_code", "truncated")}


def _serve_stdio(server: Any) -> None:
    """Serve in a daemon thread, so that Ctrl-C ends the program at once, even while it waits for standard input."""

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    ended: Future[None] = Future()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=run, name="rstar2-mcp-stdio", daemon=True).start()
    while not ended.done():
        # A wait without a limit can miss a signal that arrives just before it.
        wait([ended], timeout=_SIGNAL_S)
    ended.result()
