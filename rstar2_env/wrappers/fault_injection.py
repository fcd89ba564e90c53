"""``FaultInjection``: seeded and labelled faults in tool calls, to train and test with environment noise.

A call is "hit" if a fault is drawn for it, and the fault "lands" if it changes the call's result. Covered: timeouts,
lost, truncated and misplaced output, transient errors, latency; rates by kind; a record of each hit. Not covered:
faults while a program runs (such as a full disk).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.declare import Rule, Seed, checked
from rstar2_env.core.options.text import split_parts
from rstar2_env.core.status import ToolStatus
from rstar2_env.tools import CallContext, ToolCall, ToolResult
from rstar2_env.tools.chain import Handler
from rstar2_env.wrappers.base import StepReturn, TextEnv, TextWrapper, use_middleware
from rstar2_env.wrappers.registry import WRAPPERS


class Fault(StrEnum):
    """The kinds of faults."""

    TIMEOUT = "timeout"
    """The result is a timeout, although the program ended in time."""
    LOST = "lost"
    """The program's output is lost: the call seems to have printed nothing."""
    TRUNCATED = "truncated"
    """The second half of the output is missing, without a note."""
    TRANSIENT = "transient"
    """The tool reports that it is temporarily unavailable; a retry may work."""
    WRONG_ORDER = "wrong_order"
    """The result of an earlier call of the episode arrives instead of this call's result."""
    LATENCY = "latency"
    """The result is correct but delayed."""


@dataclass(frozen=True, slots=True)
class Hit:
    """The fault that was injected into one call.

    Attributes:
        fault: The kind of fault that was drawn for the call.
        landed: Whether the fault changed the result. A fault never changes the result of a call that failed without it,
            so the policy's own errors stay visible.
        own_status: The status that the call would have without the fault.
    """

    fault: Fault
    landed: bool
    own_status: ToolStatus

    def record(self) -> dict[str, Any]:
        """Return the value of ``fault`` in the call's record: ``kind``, ``landed`` and ``own_status``."""
        return {"kind": str(self.fault), "landed": self.landed, "own_status": str(self.own_status)}


class FaultInjection(TextWrapper, gym.utils.RecordConstructorArgs):
    """Injects faults into tool calls; the same seeds produce the same faults.

    Whether a call is hit depends only on ``seed``, the episode's seed and the call's number in the episode. Therefore
    an episode can be replayed exactly, and all episodes of a group have the same faults at the same calls. A call that
    is hit has ``fault`` (``kind``, ``landed``, ``own_status``) in its record in ``info["tool_calls"]``. If the fault
    changed the result (``landed``), the record also has ``injected: true``, and the environment counts the call neither
    as a call nor as an error of the policy. At the end, ``info["faults"]`` counts the faults that changed a
    result, by kind.

    Args:
        env: An environment with tools.
        rate: Probability that a call is hit: one number, which is divided evenly among ``kinds``, or a dict with a
            probability per kind.
        kinds: The kinds that share ``rate``, as a list or as one text ("timeout+lost"); all kinds by default.
        seed: Seed of the faults.
        latency_s: Seconds by which the kind ``latency`` delays a result.

    Raises:
        ConfigurationError: A rate is not a probability, a kind is unknown, or the environment has no tool chain.
    """

    @checked
    def __init__(
        self,
        env: TextEnv,
        rate: float | Mapping[str, float] = 0.1,
        *,
        kinds: str | Iterable[str] | None = None,
        seed: Seed = 0,
        latency_s: Annotated[float, Rule(least=0, unit="seconds")] = 0.5,
    ) -> None:
        if kinds is not None:
            kinds = tuple(split_parts(kinds) if isinstance(kinds, str) else kinds)
        gym.utils.RecordConstructorArgs.__init__(self, rate=rate, kinds=kinds, seed=seed, latency_s=latency_s)
        super().__init__(env)
        self._faults = _Faults(_chances(rate, kinds), seed, latency_s)
        self._landed: dict[str, int] = {}
        use_middleware(env, self._faults, "FaultInjection")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        self._faults.start()
        self._landed = {}
        return self.env.reset(seed=seed, options=options)

    def step(self, action: str) -> StepReturn:
        """Play a turn, and add ``fault`` to the record of each call that a fault hit."""
        self._faults.hits.clear()
        text, reward, terminated, truncated, info = self.take(action)
        first = self._faults.first
        for number, hit in self._faults.hits.items():
            place = number - first
            if 0 <= place < len(info["tool_calls"]):
                info["tool_calls"][place]["fault"] = hit.record()
            if hit.landed:
                self._landed[hit.fault] = self._landed.get(hit.fault, 0) + 1
        if terminated or truncated:
            info["faults"] = {str(kind): count for kind, count in sorted(self._landed.items())}
        return text, reward, terminated, truncated, info


class _Faults:
    """Middleware that runs a tool call, and alters its result if a fault is drawn for the call."""

    def __init__(self, chances: Mapping[Fault, float], seed: int, latency_s: float) -> None:
        self._chances, self._seed, self._latency_s = dict(chances), seed, latency_s
        self.hits: dict[int, Hit] = {}
        self.first = 0
        self._turn: tuple[int, int] | None = None
        self._answers: list[str] = []

    def start(self) -> None:
        self.hits.clear()
        self._answers.clear()
        self._turn = None

    def __call__(self, call: ToolCall, context: CallContext, handler: Handler) -> ToolResult:
        if self._turn != (context.seed, context.turn) or context.number < self.first:
            self._turn, self.first = (context.seed, context.turn), context.number
        own = handler(call, context)
        fault = self._draw(context)
        shown = own
        # A call that failed without the fault keeps its status, so that the policy's own errors stay visible.
        if fault is not None and own.status in (ToolStatus.OK, ToolStatus.EMPTY):
            shown = self._spoil(fault, own)
        if fault is not None:
            self.hits[context.number] = Hit(fault, shown is not own, own.status)
        if own.text.strip():
            self._answers.append(own.text)
        return shown

    def _draw(self, context: CallContext) -> Fault | None:
        entropy = np.random.SeedSequence([self._seed, context.seed, context.number])
        draw = float(np.random.Generator(np.random.PCG64(entropy)).random())
        for fault, chance in self._chances.items():
            if draw < chance:
                return fault
            draw -= chance
        return None

    def _spoil(self, fault: Fault, own: ToolResult) -> ToolResult:
        match fault:
            case Fault.TIMEOUT:
                text = "The program was stopped: it ran longer than its time limit."
                return _failed(own, ToolStatus.TIMEOUT, text)
            case Fault.TRANSIENT:
                text = "The tool is not available at the moment. Nothing was run; the same call may work again."
                return _failed(own, ToolStatus.UNAVAILABLE, text)
            case Fault.LOST:
                if own.status is ToolStatus.EMPTY:
                    return own
                return replace(own, status=ToolStatus.EMPTY, text="", injected=True)
            case Fault.TRUNCATED:
                if len(own.text) < 2:
                    return own
                return replace(own, text=own.text[: len(own.text) // 2], truncated=True, injected=True)
            case Fault.WRONG_ORDER:
                other = next((text for text in reversed(self._answers) if text != own.text), None)
                return own if other is None else replace(own, status=ToolStatus.OK, text=other, injected=True)
            case Fault.LATENCY:
                time.sleep(self._latency_s)
                return replace(own, wall_s=own.wall_s + self._latency_s, injected=True)


def _failed(own: ToolResult, status: ToolStatus, text: str) -> ToolResult:
    return ToolResult(own.name, status, text, error_type=str(status), injected=True, wall_s=own.wall_s)


def _chances(rate: float | Mapping[str, float], kinds: Iterable[str] | None) -> dict[Fault, float]:
    if isinstance(rate, Mapping):
        if kinds is not None:
            raise ConfigurationError(
                "The options `kinds` and `rate` cannot be combined if `rate` is a mapping, because the "
                "mapping already names the kinds of faults: omit `kinds`."
            )
        chances = {_kind(kind): float(chance) for kind, chance in rate.items()}
    else:
        chosen = list(Fault) if kinds is None else [_kind(kind) for kind in kinds]
        if not chosen:
            raise ConfigurationError("`kinds` of FaultInjection must name at least one kind of fault.")
        chances = {kind: float(rate) / len(chosen) for kind in chosen}
    # Allow for rounding: the sum of a few floats that add up to 1 may exceed it.
    if not all(chance >= 0 for chance in chances.values()) or not sum(chances.values()) <= 1 + 1e-9:
        raise ConfigurationError(
            "`rate` must be a probability, or a mapping of kinds of faults to probabilities whose sum is at most 1; "
            f"got {rate!r}."
        )
    return chances


def _kind(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        raise ConfigurationError(str(UnknownNameError("kind of fault", name, map(str, Fault)))) from None


WRAPPERS.register("fault_injection", FaultInjection)
