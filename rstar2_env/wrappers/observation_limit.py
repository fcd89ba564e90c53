"""``ObservationLimit``: limits the length of tool results and other observations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import gymnasium as gym

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.tools import CallContext, ToolCall, ToolResult
from rstar2_env.tools.chain import Handler
from rstar2_env.tools.cut import Omitted, Tokenizer, cut_text, make_tokenizer
from rstar2_env.wrappers.base import StepReturn, TextEnv, TextWrapper
from rstar2_env.wrappers.registry import WRAPPERS


class ObservationLimit(TextWrapper, gym.utils.RecordConstructorArgs):
    """Cuts long observations and inserts a note with the number of omitted characters or tokens.

    Each tool result is cut before the dialect writes its tags around it, so no tag is lost; the record of a cut result
    has ``truncated: true``. An observation without a tool result (an opponent's move, feedback) is cut as a whole. The
    first message, which contains the problem, is never cut.

    Args:
        env: A text environment.
        limit: Maximum number of characters or tokens of a result that are kept; the note is not counted.
        cut: The part to omit: the ``"head"``, the ``"middle"`` or the ``"tail"``.
        tokenizer: A tokenizer, or its folder or hub name; ``limit`` is then a number of tokens instead of characters.

    Raises:
        ConfigurationError: The limit is not a positive integer, ``cut`` is not one of the three names, or the tokenizer
            does not exist.
    """

    @checked
    def __init__(
        self, env: TextEnv, limit: Count, *, cut: Omitted = "middle", tokenizer: Tokenizer | str | None = None
    ) -> None:
        # Share the tokenizer: it is large and never changes.
        gym.utils.RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, limit=limit, cut=cut, tokenizer=tokenizer
        )
        super().__init__(env)
        self._limit = _Limit(limit, cut, make_tokenizer(tokenizer))
        tools = getattr(env.unwrapped, "tools", None)
        if tools is not None and hasattr(tools, "use"):
            tools.use(self._limit)

    def step(self, action: str) -> StepReturn:
        """Play a turn and shorten the observation."""
        text, reward, terminated, truncated, info = self.take(action)
        if not info.get("tool_calls"):
            text, left_out = self._limit.cut(text)
            if left_out:
                info["observation_left_out"] = left_out
        return text, reward, terminated, truncated, info


class _Limit:
    """Middleware that cuts the text of each tool result."""

    def __init__(self, limit: int, omit: Omitted, tokenizer: Tokenizer | None) -> None:
        self.cut = partial(cut_text, limit=limit, omit=omit, tokenizer=tokenizer)

    def __call__(self, call: ToolCall, context: CallContext, handler: Handler) -> ToolResult:
        result = handler(call, context)
        text, left_out = self.cut(result.text)
        return replace(result, text=text, truncated=True) if left_out else result


WRAPPERS.register("observation_limit", ObservationLimit)
