"""The interface of inference engines, which generate turns from token ids; sampling parameters; generated turns."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.options.declare import Count, check_options, option

T = TypeVar("T")
FinishReason = Literal["stop", "length"]


class TurnTimeoutError(Rstar2Error, TimeoutError):
    """A turn exceeded its engine's time limit, but the engine was not lost; the episode ends as ``unavailable``."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling parameters of one turn.

    Attributes:
        max_tokens: Maximum number of tokens to generate.
        temperature: Divides the logits; 0 means greedy.
        top_p: Keep the smallest set of tokens whose total probability reaches this value; 1 keeps all.
        top_k: Keep this many of the most likely tokens; 0 keeps all.
        stop_ids: Token ids that end the turn; the generated stop id is part of the turn.
        stop: Strings that end the turn; the token that completes a stop string is part of the turn. The player adds
            the stop strings of the dialect (``Dialect.stop``, ``rstar2_env/dialects/``).
        seed: Random seed of this request; with it, the sampled tokens do not depend on other requests in flight.
            ``None`` lets the engine draw one.
        candidates: Number of the most likely tokens whose log-probabilities are reported; 0 reports none. Only engines
            that are ``ReportsCandidates`` support it, up to ``most_candidates``.
        measured_tokens: Number of tokens at the start of the turn for which candidates are reported.
    """

    max_tokens: Count
    temperature: float = option(1.0, least=0)
    top_p: float = option(1.0, above=0, most=1)
    top_k: int = option(0, least=0)
    stop_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    seed: int | None = None
    candidates: int = option(0, least=0)
    measured_tokens: int = option(20, least=1)

    def __post_init__(self) -> None:
        """Check the ranges of the parameters.

        Raises:
            ConfigurationError: A parameter is out of range.
        """
        check_options(self, "SamplingParams.")


@dataclass(frozen=True, slots=True)
class Generation:
    """One turn that an engine has generated.

    Attributes:
        ids: Token ids, including the end-of-turn token if it was generated.
        logprobs: Natural log-probability of each id under the logits divided by the temperature (at temperature 0:
            by 1), before top-p and top-k; as long as ``ids``.
        finish_reason: ``"stop"`` (a stop id or string) or ``"length"``.
        policy_version: Version of the weights that the first token was drawn from.
        candidates: For each of the first positions, the log-probabilities of the most likely tokens in descending
            order, on the scale of ``logprobs``; empty if they were not requested.
    """

    ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    policy_version: int
    candidates: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The current load of an engine, and its counters since the engine was started.

    Attributes:
        running: Number of requests being computed.
        waiting: Number of requests that wait because the batch or the KV cache is full.
        kv_usage: Fraction of the KV cache in use, 0 to 1.
        preemptions: Number of times that a running request was stopped to free its cache for other requests.
        recomputed_tokens: Tokens recomputed because of preemptions; ``None`` if the engine does not report it.
        prompt_tokens: Tokens of prompts, including cached ones.
        cached_tokens: Prompt tokens that the prefix cache supplied.
        generated_tokens: Tokens generated.
    """

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    preemptions: int = 0
    recomputed_tokens: int | None = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0


class Seat(Protocol):
    """An episode's access to an engine: generates the turns of that episode."""

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Generates turns from token ids. Concurrent requests run together; cancelling a call cancels its request.

    An engine may also have ``stats() -> EngineStats`` and ``max_model_len`` (see ``longest_conversation``), and
    implement the protocols ``KeepsCaches``, ``Scores`` and ``ReportsCandidates``.
    """

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``.

        Raises:
            TurnTimeoutError: The turn took longer than the engine allows.
        """
        ...

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Load the policy's newest weights; an engine that shares the trainer's module only records the version.

        Args:
            version: Version number of the weights; later generations report it (``Generation.policy_version``).
            weights: The weights, in a form that the engine takes; ``None`` if it shares the trainer's module.
        """
        ...

    def capacity(self) -> int:
        """Number of tokens that fit into the engine's KV cache."""
        ...

    def close(self) -> None:
        """Release memory, threads and connections."""
        ...


@runtime_checkable
class Scores(Protocol):
    """An engine that can also compute the log-probabilities of given tokens."""

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each id in ``ids``, given ``prompt_ids`` and earlier ids, at temperature 1."""
        ...


@runtime_checkable
class ReportsCandidates(Protocol):
    """An engine that reports log-probabilities of the most likely tokens at each position; see ``SamplingParams``."""

    @property
    def most_candidates(self) -> int:
        """Maximum value of ``SamplingParams.candidates`` that the engine accepts."""
        ...


@runtime_checkable
class KeepsCaches(Protocol):
    """An engine in this process that keeps key-value caches in memory while it has no requests."""

    def forget(self) -> None:
        """Free the key-value caches; the engine recomputes them when a later request needs them."""
        ...


def settle(future: Future[T], outcome: T | BaseException) -> None:
    """Set the result or the exception of a future, unless the future was cancelled."""
    with suppress(InvalidStateError):
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


@runtime_checkable
class EpisodeEngine(Protocol):
    """An engine that groups requests by episode.

    An episode is announced before its first turn, and its end is always reported, so that the engine can make the
    episode wait until there is room for its key-value cache, keep this cache between the turns, and free it at the
    episode's end.
    """

    def episode(self, prompt_tokens: int, max_tokens: int) -> AbstractAsyncContextManager[Seat]:
        """Return a context manager that gives one episode access to the engine; entering it may wait for cache space.

        Args:
            prompt_tokens: Tokens of the prompt.
            max_tokens: Maximum number of tokens that may follow, the policy's and the environment's together.
        """
        ...


def most_candidates(engine: Engine) -> int:
    """Return the maximum value of ``SamplingParams.candidates`` that an engine accepts; 0 if it reports none."""
    return engine.most_candidates if isinstance(engine, ReportsCandidates) else 0


def check_candidates(engine: Engine, wanted: int) -> None:
    """Check that an engine can report ``wanted`` candidates for each token; see ``SamplingParams.candidates``.

    Raises:
        ConfigurationError: The engine can report fewer candidates than ``wanted``.
    """
    if wanted and (most := most_candidates(engine)) < wanted:
        able = f"reports at most {most}" if most else "reports none"
        raise ConfigurationError(
            f"A component of this run needs the log-probabilities of the {wanted} most likely tokens, but the "
            f"engine {type(engine).__name__} {able}. Use engine='transformers', or vLLM with a larger "
            "max_logprobs."
        )


def check_prompt(ids: Sequence[int], longest: int | None = None) -> None:
    """Check that a prompt is not empty and leaves room for at least one generated token.

    Args:
        ids: The prompt.
        longest: Maximum number of tokens of prompt and turn together; ``None`` for no limit.

    Raises:
        ConfigurationError: The prompt is empty, or leaves no room for a token.
    """
    if not ids:
        raise ConfigurationError("The engine received an empty prompt: a prompt needs at least one token.")
    if longest is not None and len(ids) >= longest:
        raise ConfigurationError(
            f"The conversation has {len(ids)} tokens, but the engine accepts at most {longest}, including the turn "
            "to generate: raise max_model_len (for servers, start them with a larger --max-model-len), or lower the "
            "token budget of an episode."
        )


def longest_conversation(engine: Engine) -> int | None:
    """Return an engine's maximum length of prompt and turn together, in tokens; ``None`` if no limit is known."""
    longest = getattr(engine, "max_model_len", None)
    return None if longest is None else int(longest)


def most_after(prompt: int, engine: Engine, budget: int) -> int:
    """Return how many tokens may follow a prompt: the budget, or the room in the engine if that is less.

    Args:
        prompt: Number of tokens of the prompt.
        engine: Engine that will generate the turns.
        budget: Maximum number of tokens of an episode after the prompt.

    Raises:
        ConfigurationError: The prompt alone reaches the engine's limit.
    """
    longest = longest_conversation(engine)
    if longest is None:
        return budget
    if prompt >= longest:
        raise ConfigurationError(
            f"The prompt has {prompt} tokens, but the engine accepts conversations of at most {longest}: raise "
            "max_model_len of the engine, or shorten the prompt."
        )
    return min(budget, longest - prompt)


def open_episode(engine: Engine, prompt_tokens: int, max_tokens: int) -> AbstractAsyncContextManager[Seat]:
    """Return a context manager that gives one episode access to the engine (its ``Seat``).

    An engine that is not an ``EpisodeEngine`` treats every turn separately.

    Args:
        engine: Engine that will generate the turns.
        prompt_tokens: Tokens of the prompt.
        max_tokens: Maximum number of tokens that may follow, the policy's and the environment's together.
    """
    if isinstance(engine, EpisodeEngine):
        return engine.episode(prompt_tokens, max_tokens)
    return nullcontext(engine)


@runtime_checkable
class UpdatesTogether(Protocol):
    """An engine that can load new weights together with other engines of its kind, in one weight sync."""

    def goes_with(self, engines: Sequence[Engine]) -> bool:
        """Whether one weight sync can update this engine and all the given engines together."""
        ...

    def update_together(self, engines: Sequence[Engine], version: int, weights: Any) -> None:
        """Load new weights into several engines at once, as ``Engine.update_weights`` does for one engine.

        Args:
            engines: The engines, including this one.
            version: Version number of the weights; every later generation reports it.
            weights: As for ``update_weights``; an iterator is read once.
        """
        ...
