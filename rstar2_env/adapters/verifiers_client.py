"""Environment that plays a taskset of verifiers (0.4) through ``reset`` and ``step``.

Covered: tasksets and environments with one player (a "seat") and no tools of their own: questions with rewards, games,
simulated users. verifiers runs the episode itself, with its limits, hooks and scoring, and requests every turn from a
model; here this model is an endpoint on loopback, which waits for ``step``. Not covered: MCP tool servers and tasks
that need a container (verifiers rejects both for a text policy), and environments with several seats.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import sys
import threading
from collections.abc import Coroutine, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from rstar2_env.adapters.base.foreign import End, ForeignEnv, Opening, TurnReply
from rstar2_env.adapters.base.messages import user_and_system
from rstar2_env.adapters.verifiers import TextHarness
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, ServiceError
from rstar2_env.core.options.declare import Count, Seconds, checked

try:
    import verifiers.v1 as vf
    from aiohttp import web
    from verifiers.v1.configs.agent import agent_config_fields
except ImportError as error:
    raise MissingExtraError("verifiers", "The adapter 'verifiers_client'") from error

T = TypeVar("T")

_HARNESS = "rstar2_text_harness"
_LARGEST_REQUEST = 64 << 20
_ENDS: Mapping[str, End] = {
    "max_turns": "turns",
    "max_input_tokens": "tokens",
    "max_output_tokens": "tokens",
    "max_total_tokens": "tokens",
}


class VerifiersEnv(ForeignEnv):
    """Environment that plays a taskset of verifiers, with the environment of that taskset.

    The reward is given at the end: the sum of the trace's weighted rewards, which ``reward_components`` lists; metrics
    are in ``info["metrics"]``. An episode that verifiers records as failed is ``unavailable``.

    Args:
        taskset: Id of a taskset: of an installed package ("gsm8k-v1"), or of verifiers itself.
        config: Further fields of verifiers' ``EnvConfig``: ``{"id": ..., "taskset": {...}}``.
        tasks: Number of the taskset's tasks to play, from the first.
        timeout_s: Maximum wait for verifiers between two turns, in seconds.
        max_turns: Maximum number of turns of the policy, also passed to verifiers as its limit.
        full_reward: Minimum reward at which an episode counts as solved.

    Raises:
        ConfigurationError: There is no such taskset, its configuration is invalid, or it has several players.
    """

    held: ClassVar[tuple[str, ...]] = ("_session",)

    @checked
    def __init__(
        self,
        *,
        taskset: str,
        config: Mapping[str, Any] | None = None,
        tasks: Count = 1000,
        timeout_s: Seconds = 600.0,
        max_turns: Count = 50,
        full_reward: float = 1.0,
    ) -> None:
        super().__init__(f"verifiers/{taskset}", max_turns=max_turns, full_reward=full_reward, numbers=tasks)
        written = dict(config or {})
        self._written = {**written, "taskset": {**dict(written.get("taskset") or {}), "id": taskset}}
        self._timeout_s = timeout_s
        self._session: _Session | None = None
        self._open().task(0)

    def task(self, number: int) -> Any:
        """Return the taskset's task for a problem number."""
        return self._open().task(number)

    def begin(self, number: int) -> Opening:
        """Start the episode of a task in verifiers; verifiers' first request to the model is the first observation."""
        event = self._open().start(number, self._timeout_s)
        if not isinstance(event, list):
            raise ServiceError(f"The package `verifiers` did not start an episode: {_what_failed(event)}", cause="lost")
        return Opening(*user_and_system(event))

    def play(self, turn: str) -> TurnReply:
        """Send a turn to verifiers as the model's reply; wait for the next request to the model, or for the end."""
        assert self._session is not None
        event = self._session.answer(turn, self._timeout_s)
        if isinstance(event, list):
            return TurnReply(user_and_system(event)[0], role=str(event[-1].get("role", "user")))
        if isinstance(event, BaseException) or not event.ok:
            return TurnReply(end="unavailable", info={"error": _what_failed(event)})
        trace = event.traces[-1]
        rewards = {name: one.value for name, one in trace.rewards.items() if one is not None}
        end: End = _ENDS.get(str(trace.stop_condition), "time" if trace.is_timeout else "answered")
        # If verifiers plays an environment of this package, the trace has more than verifiers' own fields.
        own = trace.info.get("rstar2") or {}
        info = {
            "reward_components": rewards,
            "metrics": {name: value for name, value in trace.metrics.items() if value is not None},
            "stop_condition": trace.stop_condition,
            "trace_info": trace.info,
        }
        return TurnReply(
            reward=float(sum(rewards.values())),
            end=own.get("end") or end,
            correct=own.get("correct"),
            answer=own.get("answer"),
            info=info,
        )

    def release(self) -> None:
        """Abandon the episode, if it is not over."""
        if self._session is not None:
            self._session.abandon()

    def close(self) -> None:
        """End verifiers' servers."""
        super().close()
        if self._session is not None:
            session, self._session = self._session, None
            session.close()

    def _open(self) -> _Session:
        if self._session is None:
            self._session = _Session(self._written, self._max_turns)
        return self._session


class _Session:
    """An environment of the package ``verifiers``, with its own event loop and an endpoint that acts as the model.

    Args:
        written: Configuration of that environment.
        max_turns: Maximum number of turns of the policy.
    """

    def __init__(self, written: Mapping[str, Any], max_turns: int) -> None:
        _register_harness()
        try:
            config = vf.resolve_env_config(dict(written))
            seats = list(agent_config_fields(config))
            if len(seats) != 1:
                raise ConfigurationError(
                    f"The taskset {written['taskset']['id']} needs several agents in each episode "
                    f"({', '.join(seats)}); only tasksets for one agent can be played."
                )
            seat = {"harness": {"id": _HARNESS}, "runtime": {"type": "subprocess"}, "max_turns": max_turns}
            self._env = vf.load_environment(vf.resolve_env_config({**written, seats[0]: seat}))
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"The package `verifiers` cannot load {written['taskset']['id']!r}: {error}"
            ) from error
        self._tasks: list[Any] = []
        self._more = iter(self._env.taskset)
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._waiting: asyncio.Future[str | None] | None = None
        self._episode: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rstar2-verifiers", daemon=True)
        self._thread.start()
        self._stop: asyncio.Event | None = None
        ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._serving = asyncio.run_coroutine_threadsafe(self._serve(ready), self._loop)
        port = ready.get()
        if isinstance(port, BaseException):
            self._end_loop()
            raise ServiceError(f"The servers of the package `verifiers` did not start: {port}", cause="lost") from port
        client = vf.EvalClientConfig(base_url=f"http://127.0.0.1:{port}/v1", api_key_var="RSTAR2_NO_KEY")
        self._context = vf.ModelContext(model="policy", client=client)

    def task(self, number: int) -> Any:
        """Return the task for a problem number, from 0; a finite taskset repeats after its last task.

        Raises:
            ConfigurationError: The taskset has no tasks.
        """
        self._tasks += itertools.islice(self._more, max(0, number + 1 - len(self._tasks)))
        if not self._tasks:
            raise ConfigurationError("The taskset does not contain any tasks.")
        # A finite taskset repeats after its last task.
        return self._tasks[number % len(self._tasks)]

    def start(self, number: int, timeout_s: float) -> Any:
        """Start the episode of a problem number; return its first event (see the method ``answer``)."""
        task = self.task(number)
        self._on_loop(self._begin(task))
        return self._event(timeout_s)

    def answer(self, turn: str, timeout_s: float) -> Any:
        """Answer the pending request; return the next event: messages, a finished episode, or an exception."""
        self._loop.call_soon_threadsafe(self._reply, turn)
        return self._event(timeout_s)

    def abandon(self) -> None:
        """Cancel the episode."""
        if self._episode is not None:
            self._on_loop(self._cancel())

    def close(self) -> None:
        """End the episode, verifiers' servers and their event loop."""
        self.abandon()
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._serving.result(timeout=60)
        self._end_loop()

    def _event(self, timeout_s: float) -> Any:
        try:
            return self._events.get(timeout=timeout_s)
        except queue.Empty:
            return TimeoutError(f"the package `verifiers` did not respond within {timeout_s:g} s")

    def _on_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=60)
        self._loop.close()

    async def _begin(self, task: Any) -> None:
        async def whole() -> None:
            try:
                events.put(await self._env.run_episode(task, self._context))
            except Exception as error:
                events.put(error)

        events = self._events = queue.SimpleQueue()
        self._episode = asyncio.get_running_loop().create_task(whole())

    async def _cancel(self) -> None:
        if self._episode is not None:
            episode, self._episode = self._episode, None
            episode.cancel()
            await asyncio.gather(episode, return_exceptions=True)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _reply(self, turn: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(turn)

    async def _complete(self, request: web.Request) -> web.Response:
        """Act as the model: queue the conversation's new messages for the policy, wait for its turn, and return it."""
        body = await request.json()
        messages = body["messages"]
        own = [number for number, one in enumerate(messages) if one["role"] == "assistant"]
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        self._events.put(messages[own[-1] + 1 :] if own else messages)
        text = await waiting
        if text is None:
            return web.Response(status=503, text="The episode was abandoned.")
        message = {"role": "assistant", "content": text}
        answer = {
            "id": "turn",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", "policy"),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }
        return web.json_response(answer)

    async def _serve(self, ready: queue.SimpleQueue[Any]) -> None:
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app.router.add_post("/v1/chat/completions", self._complete)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with self._env.serving():
                ready.put(runner.addresses[0][1])
                await self._stop.wait()
        except Exception as error:
            ready.put(error)
        finally:
            await runner.cleanup()


def _register_harness() -> None:
    """Register the text harness as an importable module, since verifiers finds a harness by its module's name."""
    if _HARNESS not in sys.modules:
        module = ModuleType(_HARNESS)
        module.__spec__ = ModuleSpec(_HARNESS, None)
        module.__dict__.update(TextHarness=TextHarness, __all__=["TextHarness"])
        sys.modules[_HARNESS] = module


def _what_failed(event: Any) -> str:
    if isinstance(event, BaseException):
        return f"{type(event).__name__}: {event}"
    errors = [*event.errors, *(one for trace in event.traces for one in trace.errors)]
    return f"{errors[-1].type}: {errors[-1].message}" if errors else "the episode ended before its first turn"
