"""Plays episodes with a language model: inference engines, conversations as token ids, and the player of episodes.

Importing this package needs the extra ``train`` (torch and transformers); creating a ``VllmEngine`` needs ``vllm``.
"""

from __future__ import annotations

from rstar2_env.core.errors import MissingExtraError

try:
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
except ModuleNotFoundError as error:
    if error.name in ("torch", "transformers"):
        raise MissingExtraError("train", "rstar2_env.rollout") from error
    raise

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
