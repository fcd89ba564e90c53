"""``Likelihood``: computes log-probabilities of given text under a model, with the text tokenized as in training."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.evaluation.play.policy_crew import load_policy, policy_options
from rstar2_env.rollout.engines.registry import ENGINES

from ..base import needs_training_stack
from .plan import plain_options

T = TypeVar("T")
_AT_ONCE = 64
"""Maximum number of coroutines that ``Likelihood.each`` runs concurrently."""


@dataclass(frozen=True, kw_only=True)
class EngineStage(CheckedOptions):
    """Base class of the stages that generate or score text with a model.

    Attributes:
        engine: The engine that generates and scores.
        engine_options: Options of the engine, by name.
        model_options: Options for loading the model and for sampling, as in ``rstar2 eval``.
    """

    engine: str = "transformers"
    engine_options: dict[str, Any] = field(default_factory=dict)
    model_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every option, before a stage runs.

        Raises:
            ConfigurationError: A value is out of its range.
            UnknownNameError: No engine has that name.
        """
        super().__post_init__()
        ENGINES.get(self.engine)

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, except the seed (the runner records it); see ``Stage``."""
        found = {**plain_options(self), "model_options": policy_options(self.model_options).sampled()}
        return {name: value for name, value in found.items() if name != "seed"}

    def likelihood(self, model: str) -> Likelihood:
        """Load a model that scores and samples text.

        Args:
            model: Folder of the model, or its name on the Hugging Face hub.
        """
        return Likelihood(
            model, engine=self.engine, engine_options=self.engine_options, model_options=self.model_options
        )


class Likelihood:
    """A model that scores text and samples lines of text; use it as a context manager, which closes its engine.

    Args:
        model: Folder of the model, or its name on the Hugging Face hub.
        engine: Name of the engine.
        engine_options: Options of the engine.
        model_options: Options for loading the model, as in ``rstar2 eval``.

    Attributes:
        chat: Renders conversations as token ids.
        engine: The engine, which scores and generates.

    Raises:
        ConfigurationError: The model cannot be loaded, or the engine cannot score given tokens.
    """

    def __init__(
        self, model: str, *, engine: str, engine_options: Mapping[str, Any], model_options: Mapping[str, Any]
    ) -> None:
        with needs_training_stack("A model that scores"):
            self._loaded = load_policy(
                model, policy_options(model_options), engine=engine, engine_options=engine_options, seed=0
            )
            from rstar2_env.rollout.engine import Scores
        self.chat, self.engine = self._loaded.chat, self._loaded.engine
        if not isinstance(self.engine, Scores):
            self._loaded.close()
            raise ConfigurationError(
                f"The engine {engine!r} cannot compute the probability of a given text, which this stage "
                "needs: use another engine, such as transformers.",
                option="engine",
            )

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of every token of ``ids``, given ``prompt_ids`` and the tokens before it.

        Args:
            prompt_ids: Token ids of the prompt.
            ids: Token ids to score after the prompt, at temperature 1.
        """
        engine: Any = self.engine  # the constructor has checked that it can score
        logps: list[float] = await engine.score(prompt_ids, ids)
        return logps

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        return self.chat.plain(text)

    async def line(self, prompt_ids: Sequence[int], *, temperature: float, max_tokens: int, seed: int) -> str:
        """Sample the first line of a turn after a prompt; sampling ends at a line break or after ``max_tokens``."""
        from rstar2_env.rollout.engine import SamplingParams  # imported here, since listing stages must not load torch

        params = SamplingParams(
            max_tokens=max_tokens, temperature=temperature, stop_ids=self.chat.stop_ids, stop=("\n",), seed=seed
        )
        drawn = await self.engine.generate(prompt_ids, params)
        return self.chat.text(drawn.ids).partition("\n")[0]

    async def turns(self, messages: Sequence[Message]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each assistant turn, including its end-of-turn token."""
        ids, mask = self.chat.conversation(messages)
        first = mask.index(1)
        logps = await self.score(ids[:first], ids[first:])
        found: list[list[float]] = []
        for place, own in enumerate(mask[first:]):
            if own:
                if not place or not mask[first + place - 1]:
                    found.append([])
                found[-1].append(logps[place])
        return found

    def each(self, work: Sequence[Callable[[], Awaitable[T]]], done: Callable[[int, int], None]) -> list[T]:
        """Run coroutines, at most ``_AT_ONCE`` concurrently, and return their results in order.

        Args:
            work: Functions that create the coroutines.
            done: Receives the number of finished coroutines and the total.
        """

        async def every() -> list[T]:
            places, count = asyncio.Semaphore(_AT_ONCE), 0

            async def one(make: Callable[[], Awaitable[T]]) -> T:
                nonlocal count
                async with places:
                    found = await make()
                count += 1
                done(count, len(work))
                return found

            return await asyncio.gather(*map(one, work))

        return asyncio.run(every())

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the engine."""
        self._loaded.close()
