"""Judges of rewards: a model that components ask, text in and text out; ``model`` is one behind an endpoint.

Not covered: serving a model; what is asked and how the answer is read, which is the component's.
"""

from __future__ import annotations

import functools
import inspect
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, Count, Seconds, option
from rstar2_env.core.options.own_code import Shape, is_called_with
from rstar2_env.core.options.parts import PartSpec, make_part, read_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.rewards.base import Judge

REWARD_JUDGES: Registry[Callable[..., Judge]] = Registry(
    "reward judge",
    "rstar2_env.rewards",
    "rstar2_env.reward_judges",
    shape=Shape(is_called_with(1, coroutine=True), "a class whose objects are awaited with (prompt)"),
)


@dataclass(frozen=True)
class ModelJudge(CheckedOptions):
    """Asks an OpenAI-compatible endpoint.

    Args:
        url: Base of the API, such as ``http://localhost:8000/v1``.
        model: The model's name there.
        api_key_env: Environment variable that holds the API key, if the endpoint requires one.
        temperature: Sampling temperature.
        max_tokens: Longest answer.
        timeout: Seconds for one request.
        retries: Further attempts for one answer.
    """

    url: str
    model: str
    api_key_env: str = ""
    temperature: float = option(0.0, least=0)
    max_tokens: Count = 1024
    timeout: Seconds = 120.0
    retries: int = option(4, least=0)

    def __post_init__(self) -> None:
        """Check the options and the address.

        Raises:
            ConfigurationError: One is out of its range, the URL is none, or the key is not set.
        """
        super().__post_init__()
        _ = self._endpoint

    async def __call__(self, prompt: str) -> str:
        """See ``Judge``.

        Raises:
            ServiceError: The endpoint did not answer; the episode that it was asked about counts for nothing.
        """
        messages = [{"role": "user", "content": prompt}]
        fields = {"model": self.model, "temperature": self.temperature, "max_tokens": self.max_tokens}
        import asyncio  # here, since listing components scores nothing

        return await asyncio.to_thread(functools.partial(self._endpoint.complete, messages, **fields))

    @functools.cached_property
    def _endpoint(self) -> Any:
        from rstar2_env.core.net.chat_endpoint import (
            ChatEndpoint,
        )  # brings an HTTP client, which no list of parts needs

        if self.api_key_env and self.api_key_env not in os.environ:
            raise ConfigurationError(
                f"The environment variable {self.api_key_env}, which api_key_env names, is not set."
            )
        return ChatEndpoint(
            self.url,
            api_key=os.environ[self.api_key_env] if self.api_key_env else None,
            timeout_s=self.timeout,
            retries=self.retries,
            retry_timeouts=True,
            option="url",
        )


def make_reward_judge(written: PartSpec) -> Judge:
    """Make the judge that is written.

    Args:
        written: A name of ``REWARD_JUDGES`` or one's own code, with or without options; or the coroutine function.

    Raises:
        UnknownNameError: There is no judge of that name.
        ConfigurationError: An option does not fit.
    """
    part = read_part(written, REWARD_JUDGES.kind)
    found: Any = part.made_by or REWARD_JUDGES.get(part.name)
    if inspect.iscoroutinefunction(found):
        return found  # type: ignore[no-any-return]  # it was asked for by name
    made: Judge = make_part(REWARD_JUDGES, part)
    return made


def marked(parts: Sequence[tuple[str, str]]) -> str:
    """Texts of others for a judge to read, each between marks that none of them can contain.

    Args:
        parts: The name and the text of each.
    """
    mark = secrets.token_hex(8)
    return "\n".join(f"<{mark} {name}>\n{text}\n</{mark}>" for name, text in parts)


REWARD_JUDGES.register("model", ModelJudge)
