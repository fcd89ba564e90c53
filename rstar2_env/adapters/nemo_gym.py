"""Serves environments as Gymnasium servers of NeMo Gym, and plays such servers (NVIDIA-NeMo/Gym at 07d6b0d, 2026-08).

Covered: ``POST /reset``, ``/step``, ``/close`` and ``/aggregate_metrics`` as ``GymnasiumServer`` implements them and
``gymnasium_agent`` calls them. A cookie identifies the session, a turn is a response of OpenAI's Responses API, and the
reply to ``/step`` has Gymnasium's five values. Calls may be text in the environment's dialect, or function calls of the
response. ``NemoGymEnv`` plays such a server as an environment of this package. Not covered: servers with only
``/verify``, and NeMo Gym's configuration, in which a row specifies its agent, and the agent specifies this server's
address.

The protocol cannot leave out an episode: for an ``unavailable`` episode, the server answers with status 503.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

from rstar2_env.adapters.base.foreign import End, ForeignEnv, Opening, TurnReply
from rstar2_env.adapters.base.messages import text_of, user_and_system
from rstar2_env.adapters.base.served import ServedEnv, start_of, starts
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, Rstar2Error, ServiceError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.net.http import blocking_client, sent
from rstar2_env.core.options.declare import Count, Seconds, checked
from rstar2_env.wrappers.make import make_env

if TYPE_CHECKING:
    import httpx

_COOKIE = "rstar2_session"


class _Session(ServedEnv):
    """The environment of one session.

    Args:
        env: The environment, as for ``make_env``.
        options: Options of ``make_env``: options of the environment, and ``wrappers``.
    """

    def __init__(self, env: str, options: Mapping[str, Any]) -> None:
        super().__init__(make_env(env, **options), "nemo_gym")
        self.used = time.monotonic()

    def start(self, row: Mapping[str, Any]) -> dict[str, Any]:
        text, info = self.reset(*start_of(row, "nemo_gym"))
        return {"observation": text, "info": {**jsonable(info), "supports_explicit_close": True}}

    def respond(self, response: Mapping[str, Any]) -> dict[str, Any]:
        items = response.get("output", ())
        calls = [item for item in items if item.get("type") == "function_call"]
        said = "".join(text_of(item.get("content")) for item in items if item.get("type") == "message")
        turn = "\n".join(filter(None, [said, *map(self._written, calls)]))
        text, reward, terminated, truncated, info = self.step(turn)
        info = jsonable(info)
        if calls and len(calls) == len(self.results) and not self.over:
            # NeMo Gym shows these to the model as outputs of its function calls, so the text must not repeat them.
            info["tool_outputs"] = [
                {"call_id": call["call_id"], "output": result.text}
                for call, result in zip(calls, self.results, strict=True)
            ]
            text = ""
        return {
            "observation": text or None,
            "reward": float(reward),
            "terminated": terminated,
            "truncated": truncated,
            "info": info,
        }

    def _written(self, call: Mapping[str, Any]) -> str:
        """Return a function call in the dialect; arguments that are invalid JSON are kept, as a malformed call."""
        dialect = self.env.get_wrapper_attr("dialect")
        try:
            arguments = json.loads(call["arguments"])
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            return str(dialect.format_call(call["name"], arguments))
        return str(dialect.format_call(call["name"], {})).replace("{}", call["arguments"] or "?")


@checked
def make_app(
    env: str,
    *,
    sessions: Count = 1024,
    options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[Any] = (),
) -> Any:
    """Return the server as a Starlette application for uvicorn.

    Args:
        env: A registered id, or any other value that ``make_env`` accepts.
        sessions: Maximum number of concurrent episodes; above it, the episode that was idle longest is abandoned.
        options: Options of the environment.
        wrappers: Wrappers of every environment, innermost first.

    Raises:
        MissingExtraError: Starlette is not installed.
        ConfigurationError: An option of the environment is invalid.
    """
    try:
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("serve", "The adapter 'nemo_gym'") from error
    given = {**(options or {}), "wrappers": wrappers}
    make_env(env, **given).close()  # reports wrong options now, not in every episode
    running: dict[str, _Session] = {}
    threads = ThreadPoolExecutor(sessions, thread_name_prefix="rstar2-nemo-gym")

    async def off_loop(function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    async def leave(name: str) -> None:
        if (session := running.pop(name, None)) is not None:
            await off_loop(session.env.close)

    async def reset(request: Request) -> JSONResponse:
        name = request.cookies.get(_COOKIE) or uuid.uuid4().hex
        await leave(name)
        while len(running) >= sessions:
            await leave(min(running, key=lambda other: running[other].used))
        session = await off_loop(_Session, env, given)
        try:
            answer = JSONResponse(await off_loop(session.start, await request.json()))
        except Rstar2Error as error:
            await off_loop(session.env.close)
            return JSONResponse({"detail": str(error)}, 422)
        running[name] = session
        answer.set_cookie(_COOKIE, name)
        return answer

    async def step(request: Request) -> JSONResponse:
        name = request.cookies.get(_COOKIE, "")
        if (session := running.get(name)) is None:
            return JSONResponse({"detail": "There is no episode in this session: send POST /reset first."}, 409)
        session.used = time.monotonic()
        try:
            result = await off_loop(session.respond, (await request.json())["response"])
        except ServiceError as error:
            await leave(name)
            return JSONResponse({"detail": str(error)}, 503)
        except Rstar2Error as error:
            return JSONResponse({"detail": str(error)}, 422)
        if session.over:
            await leave(name)
        return JSONResponse(result)

    async def close(request: Request) -> JSONResponse:
        await leave(request.cookies.get(_COOKIE, ""))
        return JSONResponse({})

    async def aggregate(request: Request) -> JSONResponse:
        rewards = [float(one["reward"]) for one in (await request.json())["verify_responses"]]
        mean = {"mean/reward": sum(rewards) / len(rewards)} if rewards else {}
        return JSONResponse({"group_level_metrics": [], "agent_metrics": mean, "key_metrics": mean})

    paths = {"/reset": reset, "/step": step, "/close": close, "/aggregate_metrics": aggregate}
    return Starlette(routes=[Route(path, function, methods=["POST"]) for path, function in paths.items()])


def rows(
    env: str, count: int, *, agent: str, seed: int = 0, native: bool = False, **options: Any
) -> list[dict[str, Any]]:
    """Return rows of a NeMo Gym data set (JSON lines) for an environment.

    Args:
        env: The environment, as for ``make_env``.
        count: Number of rows.
        agent: Name of the ``gymnasium_agent`` in NeMo Gym's configuration.
        seed: Different seeds give rows with different problems.
        native: Pass the tools to the model's endpoint instead of describing them in the system message.
        **options: Options of ``make_env``.
    """
    found = []
    reference = {"type": "responses_api_agents", "name": agent}
    for _, info, start in starts(env, count, seed, options):
        request: dict[str, Any] = {"input": []}
        if native:
            request["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in info["tools"]]
        elif info.get("system"):
            request["input"].append({"role": "system", "content": info["system"]})
        found.append({"responses_create_params": request, **start, "agent_ref": reference})
    return found


class NemoGymEnv(ForeignEnv):
    """Environment whose episodes run on a Gymnasium server of NeMo Gym; each turn is sent to it as a response.

    Args:
        url: Address of the server.
        rows: Rows of the server's data set, each a dict with ``responses_create_params``; an episode plays one row.
        timeout_s: Maximum wait for an answer, in seconds.
        max_turns: Maximum number of turns in an episode.
        full_reward: Minimum return at which an episode counts as solved.

    Raises:
        ConfigurationError: There are no rows, or a row has no ``responses_create_params``.
    """

    held: ClassVar[tuple[str, ...]] = ("_client",)

    @checked
    def __init__(
        self,
        *,
        url: str,
        rows: Sequence[Mapping[str, Any]],
        timeout_s: Seconds = 60.0,
        max_turns: Count = 10,
        full_reward: float = 1.0,
    ) -> None:
        if not rows or any("responses_create_params" not in row for row in rows):
            raise ConfigurationError("rows: expected at least one row, each with the field responses_create_params.")
        super().__init__("nemo_gym", max_turns=max_turns, full_reward=full_reward, numbers=len(rows))
        self._url, self._rows, self._timeout_s = url.rstrip("/"), [dict(row) for row in rows], timeout_s
        self._client: httpx.Client | None = None
        self._closes = False

    def begin(self, number: int) -> Opening:
        """Start the episode of a row on the server."""
        self._client = blocking_client(timeout_s=self._timeout_s)  # a new client, since cookies identify the episode
        self._row = self._rows[number]
        told = self._post("reset", self._row)
        info = told.get("info") or {}
        self._closes = info.get("supports_explicit_close") is True
        given = self._row["responses_create_params"].get("input") or []
        user, system = user_and_system([{"role": "user", "content": given}] if isinstance(given, str) else given)
        return Opening("\n\n".join(filter(None, [user, told.get("observation")])), system, info)

    def play(self, turn: str) -> TurnReply:
        """Send the turn as a response."""
        told = self._post("step", {**self._row, "response": response(turn)})
        info = told.get("info") or {}
        end: End | None = info.get("end") or (
            "answered" if told["terminated"] else "turns" if told["truncated"] else None
        )
        self._closes = self._closes and end is None
        return TurnReply.from_info(told.get("observation") or "", float(told["reward"]), end, info)

    def release(self) -> None:
        """Close the server's episode, if it is running and the server supports it."""
        if self._closes:
            self._closes = False
            self._post("close", {})
        if self._client is not None:
            self._client.close()
        self._client = None

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        assert self._client is not None
        attempt = sent(self._client, "POST", f"{self._url}/{path}", dict(body))
        if attempt.status and attempt.problem is not None:
            raise ServiceError(f"{self._url}/{path}: {attempt.problem}", cause="passing")
        if attempt.problem is not None:
            raise ServiceError(f"The server {self._url}/{path} did not answer: {attempt.problem}", cause="lost")
        answer: dict[str, Any] = attempt.answer
        return answer


def response(turn: str) -> dict[str, Any]:
    """Return a turn as a response of OpenAI's Responses API."""
    content = [{"type": "output_text", "text": turn, "annotations": []}]
    message = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": content}
    return {
        "id": "resp",
        "object": "response",
        "created_at": 0.0,
        "model": "policy",
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
