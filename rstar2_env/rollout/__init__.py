"""Plays episodes with a language model: inference engines, conversations as token ids, and the player of episodes.

An exported name is loaded on first use: most names need the extra ``train`` (torch and transformers), and
``VllmEngine`` needs ``vllm``. ``ENGINES`` needs neither, so that the name of an engine can be checked before torch is
imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rstar2_env.core.extras import needs_torch
from rstar2_env.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from rstar2_env.rollout.chat import CHATML, ChatCodec
    from rstar2_env.rollout.engine import (
        Engine,
        EngineStats,
        EpisodeEngine,
        Generation,
        KeepsCaches,
        SamplingParams,
        Seat,
        open_episode,
    )
    from rstar2_env.rollout.engines.registry import ENGINES, make_engine
    from rstar2_env.rollout.engines.transformers_engine import TransformersEngine
    from rstar2_env.rollout.engines.vllm_engine import VllmEngine
    from rstar2_env.rollout.engines.vllm_server_engine import VllmServerEngine
    from rstar2_env.rollout.env_pool import EnvFactory
    from rstar2_env.rollout.player import Player
    from rstar2_env.rollout.request import Budget, EpisodeRequest, RolloutError
    from rstar2_env.rollout.scheduling.admission import POLICIES
    from rstar2_env.rollout.scheduling.several_engines import Scheduler, SchedulerStats

__all__ = [
    "CHATML",
    "ENGINES",
    "POLICIES",
    "Budget",
    "ChatCodec",
    "Engine",
    "EngineStats",
    "EnvFactory",
    "EpisodeEngine",
    "EpisodeRequest",
    "Generation",
    "KeepsCaches",
    "Player",
    "RolloutError",
    "SamplingParams",
    "Scheduler",
    "SchedulerStats",
    "Seat",
    "TransformersEngine",
    "VllmEngine",
    "VllmServerEngine",
    "make_engine",
    "open_episode",
]

_MODULES = {
    "chat": ("CHATML", "ChatCodec"),
    "engine": (
        "Engine",
        "EngineStats",
        "EpisodeEngine",
        "Generation",
        "KeepsCaches",
        "SamplingParams",
        "Seat",
        "open_episode",
    ),
    "engines.registry": ("ENGINES", "make_engine"),
    "engines.transformers_engine": ("TransformersEngine",),
    "engines.vllm_engine": ("VllmEngine",),
    "engines.vllm_server_engine": ("VllmServerEngine",),
    "env_pool": ("EnvFactory",),
    "player": ("Player",),
    "request": ("Budget", "EpisodeRequest", "RolloutError"),
    "scheduling.admission": ("POLICIES",),
    "scheduling.several_engines": ("Scheduler", "SchedulerStats"),
}
"""Names that this package exports, by the module that defines them."""


if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    _load, __dir__ = lazy_names(__name__, {name: module for module, names in _MODULES.items() for name in names})

    def __getattr__(name: str) -> object:
        with needs_torch(__name__):
            return _load(name)
