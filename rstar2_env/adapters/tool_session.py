"""``ToolSession``: an environment for another framework's agent loop, which calls the environment's tools as functions.

Covered: agents of other frameworks, which parse calls themselves, run a tool as a function and end with a text. Each
call and each text is a turn of the environment, with its budgets, its chain of middleware and its statuses; the record
is an ``Episode``. Not covered: several calls as one turn (here each call is a separate turn), and calls that a
framework rejects itself (they never reach the environment).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias

import gymnasium as gym

from rstar2_env.adapters.base.served import OVER
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.net.chat.reply import ChatReply, NativeCall, Usage
from rstar2_env.dialects import Dialect
from rstar2_env.env.conversation import Conversation
from rstar2_env.env.named import EnvSpec
from rstar2_env.problems import Problem
from rstar2_env.wrappers.make import make_env

Arguments: TypeAlias = Mapping[str, Any] | str
"""The arguments of a call: parsed, or as the JSON text that a model wrote, valid or not."""


class Toolbox(Protocol):
    """Interface to an environment's tools, from which adapters make a framework's tools.

    Attributes:
        tools: Schemas of the tools.
    """

    tools: Sequence[Mapping[str, Any]]

    def call(self, name: str, arguments: Arguments) -> str:
        """Run a tool, and return the text of its result."""
        ...

    def later(self, name: str, arguments: Arguments) -> Future[str]:
        """Start to run a tool, and return a future for the text of its result."""
        ...


class ToolSession:
    """One environment, for consecutive episodes of a loop that calls tools; any thread may call the tools.

    Args:
        env: An id or your own code, as for ``make_env``, or an environment.
        **options: Options of ``make_env``, unless ``env`` is an environment.

    Attributes:
        env: The environment whose tools are called.
        episode: The record of the running episode.
        tools: Schemas of the tools of the running episode.
        system: System message of the running episode, without the section on tools (the framework describes them).

    Raises:
        ConfigurationError: The environment has no dialect, or its dialect cannot write every call.
    """

    def __init__(self, env: EnvSpec | gym.Env[str, str], **options: Any) -> None:
        if isinstance(env, gym.Env) and options:
            raise ConfigurationError(
                f"The options {', '.join(options)} apply only to an environment that is given by id, "
                "not to an environment that is already an object: omit them."
            )
        self.env = env if isinstance(env, gym.Env) else make_env(env, **options)
        self._dialect = dialect_of(self.env)
        self._talk = Conversation(self._dialect, native=True)
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._over, self._calls = True, 0
        self.episode = Episode()
        self.tools: Sequence[Mapping[str, Any]] = []
        self.system = ""

    @property
    def over(self) -> bool:
        """True if no episode is running."""
        return self._over

    def reset(self, *, seed: int = 0, problem: Problem | str | None = None) -> str:
        """Start an episode.

        Args:
            seed: Seed of the environment's ``reset``.
            problem: The problem, or the id of a problem of the environment; ``None`` lets the environment choose.

        Returns:
            The user's message.
        """
        chosen = {"problem_id": problem} if isinstance(problem, str) else {"problem": problem}
        with self._lock:
            text, info = self.env.reset(seed=seed, options=None if problem is None else chosen)
            task = self.env.spec.id if self.env.spec is not None else ""
            self.episode = Episode(seed=seed, task=task).begin(text, info)
            self._talk.begin(info)
            self.tools, self.system = list(info.get("tools") or ()), system_of(self._talk)
            self._over, self._calls = False, 0
        return text

    def call(self, name: str, arguments: Arguments) -> str:
        """Run a call as a turn.

        Args:
            name: Name of the tool.
            arguments: The arguments, or the JSON text that the model wrote for them, valid or not.

        Returns:
            The text of the tool's result; after the end of the episode, a sentence that reports the end.
        """
        with self._lock:
            if self._over:
                return OVER
            self._calls += 1
            reply = as_reply("", native_call(self._calls, name, arguments))
            shown = self._step(self._talk.add_reply(reply))
            return shown or f"The episode is over ({self.episode.end})."

    def later(self, name: str, arguments: Arguments) -> Future[str]:
        """Start to run a call as a turn in a thread, and return a future for its result; calls run in order."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tool session")
        return self._thread.submit(self.call, name, arguments)

    def say(self, text: str) -> str:
        """Play a text without a call as a turn; in most environments this turn ends the episode.

        Returns:
            The next observation, empty if the turn ended the episode; if the episode was over before, a sentence that
            reports this.
        """
        with self._lock:
            return OVER if self._over else self._step(text)

    def hand_in(self, answer: str) -> str:
        """Play a bare answer as a turn, inside the environment's answer tags unless it has them already."""
        return self.say(marked(self._dialect, answer))

    def close(self) -> None:
        """Close the environment."""
        if self._thread is not None:
            self._thread.shutdown()
        self.env.close()

    def _step(self, turn: str) -> str:
        returned = self.env.step(turn)
        self._over = self.episode.step(turn, returned)
        self._talk.add_observation(returned[0], str(returned[4].get("role", "user")))
        return str(self._talk.messages[-1]["content"])


def dialect_of(env: gym.Env[str, str]) -> Dialect:
    """Return the dialect of an environment.

    Raises:
        ConfigurationError: The environment has no dialect.
    """
    dialect: Dialect | None = getattr(env.unwrapped, "dialect", None)
    if dialect is None:
        raise ConfigurationError(
            f"{type(env.unwrapped).__name__} has no dialect (env.unwrapped.dialect), in which tool calls are written: "
            "choose an environment with a dialect."
        )
    return dialect


def system_of(talk: Conversation) -> str:
    """Return the system message of a conversation; empty if there is none."""
    return str(talk.messages[0]["content"]) if talk.messages else ""


def marked(dialect: Dialect, answer: str) -> str:
    """Return a turn that gives this answer; a text that already marks an answer or contains calls is unchanged."""
    whole = dialect.answer([answer]) is not None or dialect.calls(answer)
    return answer if whole else dialect.format_answer(answer)


def native_call(number: int, name: str, arguments: Arguments) -> NativeCall:
    """Return a call as an endpoint would return it, with the id ``call_NUMBER``.

    Values in the arguments that JSON cannot hold become text.
    """
    written = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), default=str)
    return NativeCall(f"call_{number}", name, written)


def as_reply(text: str, *calls: NativeCall) -> ChatReply:
    """Return a text or calls of another framework's agent in the form of a chat endpoint's reply."""
    return ChatReply(text=text, calls=calls, finish="", refusal="", usage=Usage())
