"""Engines by name.

An installed package adds one through the entry-point group ``rstar2_env.engines``: a module that calls
``engines.register``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, typed_options
from rstar2_env.core.options.registry import Registry
from rstar2_env.rollout.engine import Engine


class MakeEngine(Protocol):
    """Creates an engine for a policy."""

    def __call__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_rows: int,
        seed: int,
        options: Mapping[str, Any],
    ) -> Engine:
        """Return a new engine.

        Args:
            model: The policy's module.
            tokenizer: Its tokenizer.
            max_rows: Maximum number of requests in flight.
            seed: Seeds the draws of requests without a seed of their own.
            options: The engine's options.
        """
        ...


_PATIENCE_S = 10.0
"""Seconds for which one of several engines waits for its server, where a scheduler can take another."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A kind of engine.

    Attributes:
        summary: One line for lists.
        make: Creates one.
        takes: Returns the function or class whose options it takes; delays its import.
        shares_weights: Whether it computes with the module that it was given. If not, a trainer must pass it the
            weights after each step, and correct for the differences between the two computations.
        takes_model: What ``make`` needs of a model that does not train: the ``"module"``, its ``"path"`` alone, or
            ``"nothing"`` where a server has it.
        determinism: How far the same seeds give the same tokens, in a sentence.
    """

    summary: str
    make: MakeEngine
    shares_weights: bool
    takes: Callable[[], Callable[..., Any]]
    takes_model: Literal["module", "path", "nothing"] = "module"
    determinism: str = "Nothing is known of it."


ENGINES: Registry[EngineKind] = Registry("engine", None, "rstar2_env.engines")


def make_engine(
    name: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_rows: int = 256,
    seed: int = 0,
    **options: Any,
) -> Engine:
    """Return a new engine.

    Args:
        name: One of ``ENGINES.names()``.
        model: The policy's module.
        tokenizer: Its tokenizer.
        max_rows: Maximum number of requests in flight.
        seed: Seeds the draws of requests without a seed of their own.
        **options: The engine's options.

    Raises:
        UnknownNameError: No engine has that name; the message suggests the closest one.
        ConfigurationError: The engine has no such option, or refuses its value.
        MissingExtraError: A package that the engine needs is not installed.
    """
    return ENGINES.get(name).make(model, tokenizer, max_rows=max_rows, seed=seed, options=options)


def typed_engine_options(name: str, options: Mapping[str, Any], *, prefix: str = "engine_options.") -> dict[str, Any]:
    """The options of an engine, typed and checked without creating it.

    Args:
        name: Name of the engine.
        options: What the user gave.
        prefix: Goes before the names in messages.

    Raises:
        UnknownNameError: No engine has that name; the message suggests the closest one.
        ConfigurationError: The engine has no such option, or refuses its value.
    """
    return typed_options(f"engine {name!r}", ENGINES.get(name).takes(), options, prefix=prefix)


def _with(name: str, make: Callable[..., Engine], given: Mapping[str, Any], options: Mapping[str, Any]) -> Engine:
    return call_with_options(f"engine {name!r}", make, {**given, **options})


def _transformers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_rows: int,
    seed: int,
    options: Mapping[str, Any],
) -> Engine:
    from rstar2_env.rollout.engines.transformers_engine import TransformersEngine

    given = {"model": model, "tokenizer": tokenizer, "max_rows": max_rows, "seed": seed}
    return _with("transformers", TransformersEngine, given, options)


def _transformers_takes() -> Callable[..., Any]:
    from rstar2_env.rollout.engines.transformers_engine import TransformersEngine

    return TransformersEngine


def _vllm(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_rows: int,
    seed: int,
    options: Mapping[str, Any],
) -> Engine:
    from rstar2_env.rollout.engines.vllm_engine import VllmEngine

    given = {"model": model, "tokenizer": tokenizer, "max_rows": min(max_rows, 256), "seed": seed}
    return _with("vllm", VllmEngine, given, options)


def _vllm_takes() -> Callable[..., Any]:
    from rstar2_env.rollout.engines.vllm_engine import VllmEngine

    return VllmEngine


def _vllm_server(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_rows: int,
    seed: int,
    options: Mapping[str, Any],
) -> Engine:
    from rstar2_env.rollout.engines.vllm_server_engine import VllmServerEngine
    from rstar2_env.rollout.scheduling.scheduler import Scheduler

    # The servers have the model, the tokenizer, and a queue for requests that do not run at once.
    options = dict(options)
    policy, bases = options.pop("scheduler", None), options.get("base_urls")
    shared_by = int(options.pop("shared_by", 1))
    if policy is None:
        return _with("vllm-server", VllmServerEngine, {"seed": seed}, options)
    # The scheduler moves an episode to another engine, once one has said that its server is gone.
    options.setdefault("patience_s", _PATIENCE_S)
    if not isinstance(bases, list | tuple):
        raise ConfigurationError(
            f"scheduler={policy!r} divides episodes between servers: give base_urls as a list, not {bases!r}."
        )
    with ExitStack() as made:
        each: list[Engine] = []
        for number, base in enumerate(bases):
            own = {**options, "base_urls": base, "fleet": list(bases)}
            each.append(_with("vllm-server", VllmServerEngine, {"seed": seed + number}, own))
            made.callback(each[-1].close)
        scheduler = Scheduler(each, policy, shared_by=shared_by)
        made.pop_all()
    return scheduler


def _vllm_server_takes() -> Callable[..., Any]:
    from rstar2_env.rollout.engines.vllm_server_engine import VllmServerEngine

    class Served:
        """The options of the servers' engine, and the policy that divides episodes between several.

        Args:
            scheduler: Name of the policy; ``None`` goes by requests in flight.
            shared_by: Number of processes whose schedulers share the servers; a trainer sets it.
        """

        def __init__(self, *, scheduler: str | None = None, shared_by: int = 1) -> None: ...

        @staticmethod
        def more_options() -> tuple[Callable[..., Any], ...]:
            return (VllmServerEngine,)

    return Served


_SEEDED = (
    "Draws depend only on the seed of the request. Probabilities may differ in their last bits with the requests that "
    "are computed together, so that a draw near the border of two tokens may fall otherwise."
)

ENGINES.register(
    "transformers",
    EngineKind(
        "a transformers model in this process: the trainer's own module",
        _transformers,
        shares_weights=True,
        takes=_transformers_takes,
        determinism=_SEEDED,
    ),
)
ENGINES.register(
    "vllm",
    EngineKind(
        "vLLM in this process, on one device", _vllm, False, _vllm_takes, takes_model="path", determinism=_SEEDED
    ),
)
ENGINES.register(
    "vllm-server",
    EngineKind(
        "one or more `vllm serve`, over HTTP",
        _vllm_server,
        False,
        _vllm_server_takes,
        takes_model="nothing",
        determinism=f"{_SEEDED} The servers' requests of others count too.",
    ),
)
