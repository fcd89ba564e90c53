"""Run an agent of another framework as an ``Agent``: its loop waits in a thread while the environment steps.

The loop of another framework calls a tool as a function and waits for the result, but an ``Agent`` returns a turn and
is called again. So each tool call becomes a turn in the environment's dialect, the loop waits in its thread, and
the observation is returned as the call's result. The final text is a turn too; if the environment continues after it,
the loop runs again with the observation as its next message.

Covered: any framework that is wrapped in a ``Loop``; simultaneous calls, which become consecutive turns; an episode
that ends or is abandoned during a call: an exception then ends its loop. Not covered: pickling in the middle of an
episode.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias

import gymnasium as gym

from rstar2_env.adapters.tool_session import Arguments, as_reply, marked, native_call, system_of
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import UnusableReplyError
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.env.conversation import Conversation
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import Problem


class Loop(Protocol):
    """A framework's agent that plays an episode.

    Attributes:
        bare: Whether the agent's final text is a bare answer, which must be marked as an answer.
    """

    bare: bool

    def ask(self, text: str) -> str:
        """Run the agent on the next message of the episode, and return its final text.

        Raises:
            UnusableReplyError: The agent did not produce a playable text.
        """
        ...


class AbandonedError(BaseException):
    """Raised in the loop of another framework's agent after the end of its episode, to end the loop.

    It is not an ``Exception``, because frameworks catch an ``Exception`` and show it to the model.
    """


class LoopAgent:
    """An ``Agent`` whose turns come from an agent of another framework.

    Args:
        start: Function that starts the other framework's agent for an episode.
        dialect: The environment's dialect.
        native: Whether the agent receives the environment's tools as its own. If not, the system message describes the
            tools, and the agent's texts are played unchanged.

    Raises:
        ConfigurationError: ``native`` is true, and the dialect cannot write every call.
    """

    def __init__(self, start: StartLoop, *, dialect: Dialect | str = "rstar2", native: bool = True) -> None:
        self._start, self._native, self._dialect = start, native, make_dialect(dialect)
        self._talk = Conversation(self._dialect, native=native)
        self._run: RunningLoop | None = None

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Begin an episode, and abandon the previous one.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned; ``system`` is the system message, ``tools`` the schemas.
            seed: Seed for the agent.
        """
        self.close()
        self._talk.begin(info)
        tools = list(info.get("tools") or ()) if self._native else []
        self._run = RunningLoop(system_of(self._talk), tools, seed)
        self._run.begin(self._start)
        weakref.finalize(self, self._run.abandon)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Pass the observation to the framework's loop, and return its next call or its final text as a turn.

        Raises:
            UnusableReplyError: The agent did not produce a playable text.
            Exception: Any exception of the framework's loop.
        """
        assert self._run is not None  # the caller must call reset first
        self._talk.add_observation(observation, str(info.get("role", "user")))
        # The frameworks' clients encode text as UTF-8, which cannot encode lone surrogates.
        shown = str(self._talk.messages[-1]["content"]).encode("utf-8", "replace").decode("utf-8")
        name, arguments = self._run.go_on(shown)
        if name is not None:
            return self._talk.add_reply(as_reply("", native_call(self._run.calls, name, arguments)))
        text = str(arguments)
        if not text.strip():
            raise UnusableReplyError("no_text", "The agent ended its run without a final text.")
        return self._talk.add_reply(as_reply(marked(self._dialect, text) if self._run.bare else text))

    def close(self) -> None:
        """Abandon the running episode."""
        if self._run is not None:
            self._run.abandon()


class RunningLoop:
    """The framework's loop during one episode, in a thread. The framework's agent calls the tools through this object.

    Attributes:
        system: The environment's system message, without its section on tools if ``tools`` is not empty.
        tools: Schemas of the environment's tools.
        seed: Seed of the episode.
        calls: Number of calls that became turns.
    """

    # It holds no reference to the ``LoopAgent``, so that garbage collection of the ``LoopAgent`` can end the loop.

    def __init__(self, system: str, tools: Sequence[Mapping[str, Any]], seed: int) -> None:
        self.system, self.tools, self.seed = system, tools, seed
        self.calls, self.bare = 0, False
        self._asked: SimpleQueue[str | None] = SimpleQueue()
        self._came: SimpleQueue[tuple[str | None, Any]] = SimpleQueue()
        self._waiting: list[tuple[str, Arguments, Future[str]]] = []
        self._lock, self._over = threading.Lock(), False

    def call(self, name: str, arguments: Arguments) -> str:
        """Play a call as a turn, and wait for its result.

        Args:
            name: Name of the tool.
            arguments: The arguments, or the JSON text that the model wrote for them, valid or not.

        Raises:
            AbandonedError: The episode is over.
        """
        return self.later(name, arguments).result()

    def later(self, name: str, arguments: Arguments) -> Future[str]:
        """Start to play a call, and return a future for its result; for loops that are coroutines."""
        result: Future[str] = Future()
        with self._lock:
            if self._over:
                result.set_exception(AbandonedError())
                return result
            self._waiting.append((name, arguments, result))
            if len(self._waiting) == 1:  # other calls become turns after this one has its result
                self._came.put((name, arguments))
        return result

    def begin(self, start: StartLoop) -> None:
        """Start the framework's loop in a new thread."""
        threading.Thread(target=self._main, args=(start,), name="their loop", daemon=True).start()

    def go_on(self, text: str) -> tuple[str | None, Any]:
        """Pass the observation to the loop; return its next call (name, arguments), or ``None`` and the final text."""
        with self._lock:
            done = self._waiting.pop(0)[2] if self._waiting else None
            if self._waiting:
                self._came.put(self._waiting[0][:2])
        if done is None:
            self._asked.put(text)
        else:
            done.set_result(text)
        name, what = self._came.get()
        if isinstance(what, BaseException):
            raise what
        self.calls += name is not None
        return name, what

    def abandon(self) -> None:
        """End the loop: its pending calls raise ``AbandonedError``."""
        with self._lock:
            self._over, waiting, self._waiting = True, self._waiting, []
        for _, _, result in waiting:
            result.set_exception(AbandonedError())
        self._asked.put(None)

    def _main(self, start: StartLoop) -> None:
        try:
            loop = start(self)
            self.bare = loop.bare
            while (text := self._asked.get()) is not None:
                self._came.put((None, loop.ask(text)))
        except BaseException as error:  # raised again in ``go_on``, unless the episode was abandoned
            self._came.put((None, error))


StartLoop: TypeAlias = Callable[[RunningLoop], Loop]
"""Function that starts the other framework's agent for an episode."""


def play(
    env: gym.Env[str, str],
    start: StartLoop,
    *,
    seed: int = 0,
    problem: Problem | None = None,
    native: bool = True,
) -> Episode:
    """Play one episode of an environment with an agent of another framework.

    Args:
        env: The environment to play.
        start: Function that starts the agent.
        seed: Seed of the environment's ``reset``, also passed to the agent.
        problem: The problem to play; ``None`` lets the environment choose.
        native: As in ``LoopAgent``.

    Raises:
        ConfigurationError: The environment's dialect cannot write every call.
    """
    dialect = getattr(env.unwrapped, "dialect", None) or "rstar2"  # without a dialect there are no tools
    agent = LoopAgent(start, dialect=dialect, native=native)
    try:
        return play_episode(env, agent, seed=seed, problem=problem)
    finally:
        agent.close()
