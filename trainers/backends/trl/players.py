"""The players of a run, for training and for evaluation, and the problems that each plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import FiniteSource, ProblemSource
from rstar2_env.rollout import Budget, ChatCodec, Engine, EnvFactory, Player, SamplingParams
from rstar2_env.wrappers.make import make_env

from ...options.config import TrainConfig
from ...samplers.base import problems_of

Split = Literal["train", "eval"]


def make_player(
    config: TrainConfig, split: Split, engine: Engine, chat: ChatCodec, *, stale_engine: Engine | None = None
) -> Player:
    """Make the player of one split; evaluation has limits of its own where the options give it some.

    Args:
        config: Options of the run.
        split: Which environments.
        engine: The engine.
        chat: Renders conversations.
        stale_engine: The engine with older weights, where the run has one.
    """
    rollout = config.rollout
    value = partial(getattr, rollout) if split == "train" else config.in_evaluation
    return Player(
        env_factory(config, split),
        engine,
        chat,
        sampling=SamplingParams(
            max_tokens=1, temperature=value("temperature"), top_p=rollout.top_p, top_k=rollout.top_k
        ),
        budget=Budget(
            tokens=value("max_episode_tokens"),
            turn_tokens=value("max_turn_tokens"),
            wall_s=value("max_episode_seconds"),
        ),
        max_in_flight=rollout.max_in_flight,
        max_failed=rollout.max_failed,
        stale_engine=stale_engine,
    )


def env_factory(config: TrainConfig, split: Split, overriding: Mapping[str, Any] | None = None) -> EnvFactory:
    """What makes the environments of a split.

    Args:
        config: Options of the run.
        split: Which environments.
        overriding: Options that go over the run's own.
    """
    wrappers = config.rollout.wrappers if split == "train" else config.eval.wrappers
    return partial(make_env, config.rollout.env, wrappers=wrappers, **{**_options(config, split), **(overriding or {})})


def problem_source(config: TrainConfig, split: Split) -> ProblemSource | None:
    """The problems of a split; ``None`` where the environment has no source of them."""
    env = make_env(config.rollout.env, **_options(config, split))
    try:
        return problems_of(env)
    finally:
        env.close()


def problem_ids(config: TrainConfig, split: Split) -> Sequence[str] | None:
    """Ids of the problems of a split; ``None`` where the environment draws them by the seed."""
    source = problem_source(config, split)
    return source.ids if isinstance(source, FiniteSource) else None


def gold_answers(config: TrainConfig) -> Callable[[str], str]:
    """The gold answer of a training problem by its id, from the source of the environment that plays it.

    What is returned raises a ``ConfigurationError`` for a problem without an answer.

    Raises:
        ConfigurationError: The environment has no source of problems.
    """
    source = problem_source(config, "train")
    if source is None:
        raise ConfigurationError(
            "A part of this run needs the gold answer of each problem, and the environment has no problems with one: "
            "choose one that has, such as rstar2/MathTool-v0.",
            option="env",
        )

    def answer(problem_id: str) -> str:
        gold = source.get(problem_id).answer
        if not gold.strip():
            raise ConfigurationError(
                f"A part of this run needs the gold answer of each problem, and {problem_id!r} has none.", option="env"
            )
        return gold

    return answer


def opening(config: TrainConfig, split: Split, chat: ChatCodec) -> str:
    """What the policy reads around the problem of a split: the system message and the template, as text."""
    env = env_factory(config, split)()
    try:
        _, info = env.reset(seed=0)
    finally:
        env.close()
    return str(chat.tokenizer.decode(chat.prompt(str(info.get("system", "")), "{question}")))


def _options(config: TrainConfig, split: Split) -> dict[str, Any]:
    return config.rollout.env_options if split == "train" else config.eval_env_options
