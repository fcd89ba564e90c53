"""The registry of inference engines: creates an engine by name, and checks its options.

Importing this module loads no engine, and neither torch nor transformers.

An installed package adds engines through the entry-point group ``rstar2_env.engines``: its entry point names a module
that calls ``ENGINES.register``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, typed_options
from rstar2_env.core.options.registry import Registry
from rstar2_env.rollout.engine import Engine

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MakeEngine: TypeAlias = Callable[..., Engine]
"""Function that creates an engine for a policy: ``make(model, tokenizer, max_rows=, seed=, options=)``. The arguments
are those of ``make_engine``, except that the engine's options are one mapping."""

_PATIENCE_S = 10.0
"""Seconds that an engine waits for its server when a scheduler could use another engine instead."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A registered kind of inference engine: how to create it, and its properties.

    Attributes:
        summary: Description of the kind in one line, for lists.
        make: Creates an engine of this kind.
        takes: Function that imports and returns the function or class whose parameters are the engine's options.
        shares_weights: Whether the engine computes with the module that was passed to ``make``. If not, a trainer must
            sync the weights after each step, and correct for differences between the engine's and its own
            log-probabilities.
        takes_model: The form of the model that ``make`` needs for generation without training: the ``"module"``, only
            its ``"path"``, or ``"nothing"`` if a server holds the model.
        determinism: One sentence on whether the same seeds give the same tokens.
    """

    summary: str
    make: MakeEngine
    shares_weights: bool
    takes: Callable[[], Callable[..., Any]]
    takes_model: Literal["module", "path", "nothing"] = "module"
    determinism: str = "Unknown."


ENGINES: Registry[EngineKind] = Registry("engine", None, "rstar2_env.engines", named_alone=True)


def make_engine(
    name: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_rows: int = 256,
    seed: int = 0,
    **options: Any,
) -> Engine:
    """Create an engine by name.

    Args:
        name: One of ``ENGINES.names()``.
        model: The policy's module.
        tokenizer: Tokenizer of the policy.
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
    """Convert and check the options of an engine without creating it.

    Args:
        name: Name of the engine.
        options: The user's options.
        prefix: Prefix of option names in messages.

    Raises:
        UnknownNameError: No engine has that name; the message suggests the closest one.
        ConfigurationError: The engine has no such option, or refuses its value.
    """
    return typed_options(f"engine {name!r}", ENGINES.get(name).takes(), options, prefix=prefix)


def _with(name: str, make: Callable[..., Engine], given: Mapping[str, Any], options: Mapping[str, Any]) -> Engine:
    return call_with_options(f"engine {name!r}", make, {**given, **options})


def _in_process(name: str, takes: Callable[[], Callable[..., Any]], most_rows: int | None = None) -> MakeEngine:
    """Return a function that creates an engine in this process; see ``MakeEngine``.

    Args:
        name: Name of the engine.
        takes: Imports and returns the engine's class.
        most_rows: Upper limit of ``max_rows``; ``None`` for no limit.
    """

    def make(model: Any, tokenizer: Any, *, max_rows: int, seed: int, options: Mapping[str, Any]) -> Engine:
        rows = max_rows if most_rows is None else min(max_rows, most_rows)
        given = {"model": model, "tokenizer": tokenizer, "max_rows": rows, "seed": seed}
        return _with(name, takes(), given, options)

    return make


_transformers_takes = partial(resolve_name, "rstar2_env.rollout.engines.transformers_engine:TransformersEngine")
_vllm_takes = partial(resolve_name, "rstar2_env.rollout.engines.vllm_engine:VllmEngine")


def _vllm_server(model: Any, tokenizer: Any, *, max_rows: int, seed: int, options: Mapping[str, Any]) -> Engine:
    from rstar2_env.rollout.engines.vllm_server_engine import VllmServerEngine
    from rstar2_env.rollout.scheduling.several_engines import Scheduler

    # The servers hold the model and the tokenizer, and queue requests that cannot run at once.
    options = dict(options)
    policy, bases = options.pop("scheduler", None), options.get("base_urls")
    shared_by = int(options.pop("shared_by", 1))
    if policy is None:
        return _with("vllm-server", VllmServerEngine, {"seed": seed}, options)
    # The scheduler moves an episode to another engine after an engine reports that its server is lost.
    options.setdefault("reconnect_timeout_s", _PATIENCE_S)
    if not isinstance(bases, list | tuple):
        raise ConfigurationError(
            f"The option scheduler={policy!r} distributes episodes over several servers, so base_urls "
            f"must be a list of addresses, not {bases!r}."
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
        """Options of the engine ``vllm-server``, and the scheduling policy that distributes episodes over servers.

        Args:
            scheduler: Name of the scheduling policy; ``None`` balances servers by their requests in flight.
            shared_by: Number of processes whose schedulers share the servers; a trainer sets it.
        """

        def __init__(self, *, scheduler: str | None = None, shared_by: int = 1) -> None: ...

        @staticmethod
        def more_options() -> tuple[Callable[..., Any], ...]:
            return (VllmServerEngine,)

    return Served


_SEEDED = (
    "Draws depend only on the seed of the request. Probabilities may differ in their last bits depending on which "
    "requests are computed together, so a draw near the border between two tokens may select the other one."
)

ENGINES.register(
    "transformers",
    EngineKind(
        "a transformers model in this process: the trainer's own module",
        _in_process("transformers", _transformers_takes),
        shares_weights=True,
        takes=_transformers_takes,
        determinism=_SEEDED,
    ),
)
ENGINES.register(
    "vllm",
    EngineKind(
        "vLLM in this process, on one device",
        _in_process("vllm", _vllm_takes, most_rows=256),
        shares_weights=False,
        takes=_vllm_takes,
        takes_model="path",
        determinism=_SEEDED,
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
        determinism=f"{_SEEDED} This includes requests that other clients send to the servers.",
    ),
)
