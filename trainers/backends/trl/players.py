"""Create the players of a run, for training and evaluation episodes, with their environments and problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.layout import Split
from rstar2_env.problems import FiniteSource, ProblemSource
from rstar2_env.rollout import Budget, ChatCodec, Engine, EnvFactory, Player, SamplingParams
from rstar2_env.wrappers.make import make_env

from ...options.config import TrainConfig
from ...samplers.base import problems_of


def make_player(
    config: TrainConfig, split: Split, engine: Engine, chat: ChatCodec, *, stale_engine: Engine | None = None
) -> Player:
    """Make the player of one split; for the split ``eval``, the options ``eval.*`` override the training options.

    Args:
        config: Options of the run.
        split: The split to play.
        engine: Generates the turns.
        chat: Renders conversations.
        stale_engine: An engine with older weights, which generates some turns if the rollout part requests them;
            ``None`` if no turn needs older weights.
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
        model=config.model.path,
        provider=rollout.engine,
    )


def env_factory(config: TrainConfig, split: Split, overriding: Mapping[str, Any] | None = None) -> EnvFactory:
    """Return a factory of a split's environments.

    Args:
        config: Options of the run.
        split: The split to play.
        overriding: Environment options that override the run's own; ``None`` for none.
    """
    wrappers = config.rollout.wrappers if split == "train" else config.eval.wrappers
    return partial(make_env, config.rollout.env, wrappers=wrappers, **{**_options(config, split), **(overriding or {})})


def problem_source(config: TrainConfig, split: Split) -> ProblemSource | None:
    """Return the problems of a split; ``None`` if the environment has no problem source."""
    with closing(make_env(config.rollout.env, **_options(config, split))) as env:
        return problems_of(env)


def problem_ids(config: TrainConfig, split: Split) -> Sequence[str] | None:
    """Return the ids of a split's problems; ``None`` if the environment draws problems by the seed."""
    source = problem_source(config, split)
    return source.ids if isinstance(source, FiniteSource) else None


def gold_answers(config: TrainConfig) -> Callable[[str], str]:
    """Return a function that looks up the gold answer of a training problem by its id.

    The function raises a ``ConfigurationError`` for a problem without an answer.

    Raises:
        ConfigurationError: The environment has no problem source.
    """
    source = problem_source(config, "train")
    if source is None:
        raise ConfigurationError(
            "A component of this run needs the gold answer of each problem, but the environment does not have "
            "a source of problems: choose an environment that has one, such as rstar2/MathTool-v0.",
            option="env",
        )

    def answer(problem_id: str) -> str:
        gold = source.get(problem_id).answer
        if not gold.strip():
            raise ConfigurationError(
                "A component of this run needs the gold answer of each problem, but the problem "
                f"{problem_id!r} does not have one: remove the problem, or add its answer.",
                option="env",
            )
        return gold

    return answer


def opening(config: TrainConfig, split: Split, chat: ChatCodec) -> str:
    """Return the rendered prompt of a split: its system message, and the placeholder ``{question}`` for the problem."""
    with closing(env_factory(config, split)()) as env:
        _, info = env.reset(seed=0)
    return str(chat.tokenizer.decode(chat.prompt(str(info.get("system", "")), "{question}")))


def _options(config: TrainConfig, split: Split) -> dict[str, Any]:
    return config.rollout.env_options if split == "train" else config.eval_env_options
