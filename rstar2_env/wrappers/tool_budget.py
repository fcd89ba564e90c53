"""``ToolBudget``: limits the tool calls of an episode or a turn, in the tool chain."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Rule, checked
from rstar2_env.core.status import ToolStatus
from rstar2_env.tools import CallContext, ToolCall, ToolResult
from rstar2_env.tools.chain import Handler
from rstar2_env.wrappers.base import StepReturn, TextEnv, TextWrapper, use_middleware
from rstar2_env.wrappers.registry import WRAPPERS

Limit: TypeAlias = Annotated[int, Rule(least=0)]
"""Number of calls allowed; 0 allows none."""


class ToolBudget(TextWrapper, gym.utils.RecordConstructorArgs):
    """Blocks tool calls beyond a budget; the episode continues, and a blocked call's result states why nothing ran.

    Every call counts, including calls that did not parse. A blocked call has the status ``blocked`` with the error type
    ``budget``. It counts as the policy's error, because the policy has seen that the budget is exhausted.
    ``info["tool_calls_left"]`` is the remaining budget of the episode.

    Args:
        env: An environment with tools.
        calls: Maximum calls in one episode; ``None`` for no limit.
        per_turn: Maximum calls in one turn; ``None`` for no limit.

    Raises:
        ConfigurationError: Neither limit was given, a limit is not a non-negative integer, or the environment has no
            tool chain.
    """

    @checked
    def __init__(self, env: TextEnv, calls: Limit | None = None, *, per_turn: Limit | None = None) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, calls=calls, per_turn=per_turn)
        super().__init__(env)
        if calls is None and per_turn is None:
            raise ConfigurationError("ToolBudget needs `calls` (per episode), `per_turn`, or both.")
        self._budget = _Budget(calls, per_turn)
        use_middleware(env, self._budget, "ToolBudget")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode with the full budget."""
        self._budget.start()
        text, info = self.env.reset(seed=seed, options=options)
        return text, self._told(info)

    def step(self, action: str) -> StepReturn:
        """Play a turn; tool calls beyond the budget are blocked."""
        self._budget.turn = 0
        text, reward, terminated, truncated, info = self.take(action)
        return text, reward, terminated, truncated, self._told(info)

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        if (left := self._budget.left) is not None:
            info["tool_calls_left"] = left
        return info


class _Budget:
    def __init__(self, calls: int | None, per_turn: int | None) -> None:
        self._calls, self._per_turn = calls, per_turn
        self.episode = self.turn = 0

    @property
    def left(self) -> int | None:
        return None if self._calls is None else max(0, self._calls - self.episode)

    def start(self) -> None:
        self.episode = self.turn = 0

    def __call__(self, call: ToolCall, context: CallContext, handler: Handler) -> ToolResult:
        for limit, spent, what in ((self._calls, self.episode, "episode"), (self._per_turn, self.turn, "turn")):
            if limit is not None and spent >= limit:
                some = "No tool calls are" if limit == 0 else f"Only {limit} tool call{'s are' if limit > 1 else ' is'}"
                text = f"{some} allowed in one {what}. Nothing was run."
                return ToolResult(call.name, ToolStatus.BLOCKED, text, error_type="budget")
        self.episode += 1
        self.turn += 1
        return handler(call, context)


WRAPPERS.register("tool_budget", ToolBudget)
