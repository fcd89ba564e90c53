"""Judges: models to which reward components send a text, and which reply with text.

The judge ``model`` queries an OpenAI-compatible endpoint. Not covered: how a model is served; the questions and the
parsing of the replies, which are part of each component.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.net.chat.asking import AskedModel
from rstar2_env.core.options.parts import PartSpec, make_part, read_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with
from rstar2_env.rewards.base import RewardJudge

REWARD_JUDGES: Registry[Callable[..., RewardJudge]] = Registry(
    "reward judge",
    "rstar2_env.rewards",
    "rstar2_env.reward_judges",
    shape=Shape(is_called_with(1, coroutine=True), "a class whose objects are async callables of (prompt)"),
)


@dataclass(frozen=True)
class RewardModelJudge(AskedModel):
    """A language model behind an OpenAI-compatible endpoint.

    Args:
        url: Base of the API, such as ``http://localhost:8000/v1``.
        model: Name of the model at the endpoint.
        api_key_env: Environment variable that holds the API key, if the endpoint requires one.
        temperature: Sampling temperature.
        max_tokens: Maximum number of tokens in an answer.
        timeout_s: Maximum seconds for one request.
        retries: Number of further attempts after a failed request.
        api: API of the endpoint: ``chat`` (chat completions) or ``responses``.
    """

    async def __call__(self, prompt: str) -> str:
        """Return the model's answer; see ``RewardJudge``.

        Raises:
            ServiceError: The endpoint did not answer; the episode does not count.
        """
        import asyncio  # imported here: listing components does not need it

        return await asyncio.to_thread(self.ask, prompt)


def make_reward_judge(written: PartSpec) -> RewardJudge:
    """Make a judge from its specification.

    Args:
        written: A name in ``REWARD_JUDGES`` or the user's own code, with or without options; or a coroutine function.

    Raises:
        UnknownNameError: There is no judge with this name.
        ConfigurationError: An option is invalid.
    """
    part = read_part(written, REWARD_JUDGES.kind)
    found: Any = part.made_by or REWARD_JUDGES.get(part.name)
    if inspect.iscoroutinefunction(found):
        return found  # type: ignore[no-any-return]  # the name stands for a coroutine function
    made: RewardJudge = make_part(REWARD_JUDGES, part)
    return made


REWARD_JUDGES.register("model", RewardModelJudge)
