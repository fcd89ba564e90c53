"""An engine that says what a function tells it to, an environment of nothing but Gymnasium, and players of both."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from chat_families import FAMILIES, Family, make_tokenizer

from rstar2_env.env.spaces import UnicodeText
from rstar2_env.rollout import ChatCodec, Generation, Player, SamplingParams

SAMPLING = SamplingParams(max_tokens=1)

Policy = Callable[[str], str]
"""The conversation so far, as text, to the next turn."""


@dataclass
class ScriptedEngine:
    """Says what the policy says, as ids; cut at ``max_tokens``, ended by the end of turn else.

    Attributes:
        codec: Turns text into ids.
        policy: What to say.
        end: The end of a turn, as text.
        delay_s: How long a turn takes.
        calls: Every call: the ids and how to sample.
        generations: What it answered to each.
        version: Version of its weights; grows by one with every call.
    """

    codec: ChatCodec
    policy: Policy
    end: str = "<|im_end|>"
    delay_s: float = 0.0
    calls: list[tuple[list[int], SamplingParams]] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    version: int = 0
    in_flight: int = 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        self.calls.append((list(ids), params))
        self.in_flight += 1
        try:
            await asyncio.sleep(self.delay_s)
        finally:
            self.in_flight -= 1
        tokenizer = self.codec.tokenizer
        text = self.policy(str(tokenizer.decode(ids))) + self.end
        said = tokenizer.encode(text, add_special_tokens=False)[: params.max_tokens]
        stopped = said[-1] in params.stop_ids
        generation = Generation(
            said, [-0.5 - 0.001 * i for i in range(len(said))], "stop" if stopped else "length", self.version
        )
        self.version += 1
        self.generations.append(generation)
        return generation

    def update_weights(self, version: int, weights: Any = None) -> None:
        self.version = version

    def capacity(self) -> int:
        return 1 << 20

    def close(self) -> None:
        pass


def scripted(policy: Policy, family: Family = FAMILIES[0], **options: Any) -> ScriptedEngine:
    """An engine of that family's tokenizer and template."""
    codec = ChatCodec(make_tokenizer(family), chat_template_options=family.options)
    return ScriptedEngine(codec, policy, end=family.end, **options)


class EchoEnv(gym.Env[str, str]):
    """Shows each turn back, until the policy says "stop" (reward 1) or has had ``turns``; it tells nothing in ``info``.

    A turn may ask for trouble: ``boom`` raises, ``hang`` waits for ``gate``.

    Attributes:
        made: Every environment that was made.
        gate: What ``hang`` waits for.
    """

    made: list[EchoEnv] = []  # noqa: RUF012  # shared on purpose, and cleared by a fixture
    gate = threading.Event()

    def __init__(self, turns: int = 5, trouble: str = "") -> None:
        self.observation_space = self.action_space = UnicodeText()
        self._turns, self._trouble = turns, trouble
        self.resets: list[Mapping[str, Any] | None] = []
        self.inside = 0
        self.closed = 0
        self.closed_inside = False
        if trouble == "make":
            raise OSError("no environment today")
        self.made.append(self)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        assert not self.closed, "a closed environment was lent again"
        if self._trouble == "reset":
            raise OSError("no reset today")
        self.resets.append(options)
        self._left = self._turns
        return f"number {self.np_random.integers(10**9)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.inside += 1
        try:
            if "boom" in action:
                raise OSError("the step failed")
            if "hang" in action:
                self.gate.wait(30)
        finally:
            self.inside -= 1
        self._left -= 1
        stop = "stop" in action
        return f"heard {action!r}", float(stop) + 0.25, stop, self._left == 0 and not stop, {}

    def close(self) -> None:
        self.closed += 1
        self.closed_inside = self.closed_inside or self.inside > 0
        if self._trouble == "close":
            raise OSError("no closing today")


def echo_player(engine: ScriptedEngine, make_env: Any = EchoEnv, **options: Any) -> Player:
    return Player(make_env, engine, engine.codec, sampling=options.pop("sampling", SAMPLING), **options)


def turns_of(text: str) -> int:
    """Turns that the policy has had."""
    return text.count("heard")


def call(code: str) -> str:
    body = {"name": "execute_python_code_with_standard_io", "arguments": {"code": code, "input": ""}}
    return f"<tool_call>\n{json.dumps(body)}\n</tool_call>"


def first_times(word: str, count: int, then: str = "stop") -> Callable[[str], str]:
    """A policy that says one word in its first turns, whoever's they are, and then another."""
    said = itertools.count()
    return lambda text: word if next(said) < count else then


def math_tool(**options: Any) -> Any:
    def make() -> gym.Env[str, str]:
        env: gym.Env[str, str] = gym.make(
            "rstar2/MathTool-v0", problems=[{"question": "6*7?", "answer": "42"}], **options
        )
        return env

    return make
