"""``EvaluationOptions``: the options of one evaluation, shared by ``evaluate``, suites and ``rstar2 eval``.

Covered: the options, and the parts that are made from them before a model is loaded. Not covered: how episodes are
played (``rstar2_env.evaluation.run``), layers of options (``rstar2_env.evaluation.suite``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.core.options.declare import CheckedOptions, Count, Seed, check_options
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.env.agent import AnyAgent
from rstar2_env.env.named import EnvSpec, NamedEnv, find_env
from rstar2_env.env.options import env_options as typed_env_options
from rstar2_env.evaluation.figures.intervals import check_ks
from rstar2_env.evaluation.judges.base import ChainJudge, make_judge
from rstar2_env.evaluation.play.agent_crew import typed_agent_options
from rstar2_env.evaluation.play.policy_crew import LoadedModel, PolicyOptions, policy_options
from rstar2_env.evaluation.play.scores import ScoreSpec, read_scores
from rstar2_env.problems import ProblemSpec
from rstar2_env.rewards.component import Component
from rstar2_env.rollout.engines.registry import ENGINES
from rstar2_env.wrappers.registry import read_wrappers


@dataclass(frozen=True)
class EvaluationOptions(CheckedOptions):
    """The options of one evaluation; either an agent or a model plays.

    Attributes:
        agent: Name of an agent or the user's own code, with or without options ("random_text:length=5"); or a function
            that returns an agent. Every worker makes its own agent.
        agent_options: Options of an agent given by name. An agent with an option ``dialect`` gets the environment's
            dialect.
        model: Folder, GGUF file or hub name of a model, or a model that ``load_policy`` loaded.
        engine: Name of the engine that the model generates with.
        engine_options: Options of the engine.
        model_options: Fields of ``PolicyOptions``: sampling, token budgets, precision, chat template.
        problems: A source, as ``load_problems`` takes it; ``None`` means the environment's own source. An environment
            without a source chooses the problem by the seed of the episode.
        split: Split of the problems, if the source has splits.
        episodes: Number of starts, where a start is a problem and a seed; ``None`` plays every problem of a finite
            source. Otherwise the problems are chosen at random, without repetition until all were played.
        n: Number of samples: episodes played from each start.
        k: The values of k for pass@k, avg@k and maj@k, at most ``n``; ``None`` means 1 and ``n``.
        seed: Seed of the choice of problems, of every episode and of the confidence intervals.
        workers: Number of threads that run an agent, each with its own environment; by default four per CPU core, at
            most 32.
        env_options: Options of the environment.
        wrappers: Wrappers around every environment, the innermost first, as ``make_env`` takes them.
        judge: Judges the chains of thought of right episodes, for CoT-pass@k: a name of ``JUDGES`` or the user's code;
            ``None`` for no judge.
        scores: Reward components that score each episode, in addition to the environment's reward; written as
            ``make_component`` takes them; if a component needs a judge, its own options must name the judge.
        baseline: Folder or file of an evaluation of the same problems; the result counts the problems that only one of
            the two evaluations solved. ``None`` for none.
        repeat: Play the first ``PLAY_AGAIN`` (8) episodes a second time and report how many were identical.
    """

    agent: str | Callable[[], AnyAgent] | None = None
    agent_options: Mapping[str, Any] | None = None
    model: str | os.PathLike[str] | LoadedModel | None = None
    engine: str = "transformers"
    engine_options: Mapping[str, Any] | None = None
    model_options: Mapping[str, Any] | PolicyOptions | None = None
    problems: ProblemSpec | None = None
    split: str = "test"
    episodes: Count | None = None
    n: Count = 1
    k: Sequence[int] | None = None
    seed: Seed = 0
    workers: Count | None = None
    env_options: Mapping[str, Any] | None = None
    wrappers: str | Sequence[PartSpec] = ()
    judge: PartSpec | None = None
    scores: str | Sequence[ScoreSpec] = ()
    baseline: str | os.PathLike[str] | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        """Check every field, except the options of environment, agent and engine, which ``make_parts`` checks.

        Raises:
            ConfigurationError: A value is invalid.
            UnknownNameError: No engine has that name.
        """
        check_options(self, passed_on=True)
        ENGINES.get(self.engine)


class EvaluationKeywords(TypedDict, total=False):
    """Keywords of ``evaluate`` that are fields of ``EvaluationOptions``: all except ``agent``."""

    agent_options: Mapping[str, Any] | None
    model: str | os.PathLike[str] | LoadedModel | None
    engine: str
    engine_options: Mapping[str, Any] | None
    model_options: Mapping[str, Any] | PolicyOptions | None
    problems: ProblemSpec | None
    split: str
    episodes: Count | None
    n: Count
    k: Sequence[int] | None
    seed: Seed
    workers: Count | None
    env_options: Mapping[str, Any] | None
    wrappers: str | Sequence[PartSpec]
    judge: PartSpec | None
    scores: str | Sequence[ScoreSpec]
    baseline: str | os.PathLike[str] | None
    repeat: bool


def options_from_keywords(agent: str | Callable[[], AnyAgent] | None, keywords: Mapping[str, Any]) -> EvaluationOptions:
    """Make the options from the keywords of ``evaluate``.

    Raises:
        ConfigurationError: A keyword is unknown, or a value does not fit its option.
    """
    known = [field.name for field in fields(EvaluationOptions)]
    for name in keywords:
        if name not in known:
            raise UnknownOptionError(
                f"evaluate() has no option {name!r}.{did_you_mean(name, known)} Options: {', '.join(known)}."
            )
    return EvaluationOptions(agent=agent, **keywords)


@dataclass(frozen=True)
class EvaluationParts:
    """The objects created from the options of an evaluation.

    Attributes:
        env: Name and id of the environment, and the class or function that creates it.
        env_options: Options of the environment, converted to their types.
        wrappers: Wrappers of the environment.
        policy: Options of the model's sampling and token budgets; ``None`` if an agent plays.
        agent_options: Options of the agent, converted to their types.
        judge: Judge of chains of thought, if any.
        scores: Components that score episodes.
        ks: The values of k for the figures.
    """

    env: NamedEnv
    env_options: Mapping[str, Any]
    wrappers: Sequence[Any]
    policy: PolicyOptions | None
    agent_options: Mapping[str, Any]
    judge: ChainJudge | None
    scores: Sequence[Component]
    ks: tuple[int, ...]


def make_parts(env_id: EnvSpec, options: EvaluationOptions) -> EvaluationParts:
    """Create the objects that an evaluation needs (judge, reward components, ...), without loading a model.

    Args:
        env_id: The environment, as ``make_env`` takes it.
        options: Options of the evaluation.

    Raises:
        ConfigurationError: Options are invalid or contradict each other.
        UnknownNameError: No agent, judge or environment has that name.
    """
    ks = check_ks(options.k, options.n)
    env = find_env(env_id)
    env_options = typed_env_options(env, options.env_options)
    wrappers = read_wrappers(options.wrappers)
    judge = None if options.judge is None else make_judge(options.judge)
    policy = None if options.model is None else policy_options(options.model_options)
    scores = read_scores(options.scores, None if policy is None else policy.max_episode_tokens)
    if policy is not None and (options.agent is not None or options.agent_options):
        raise ConfigurationError("An evaluation takes an agent or a model, not both: omit one of them.", option="agent")
    if policy is None and options.agent is None:
        raise ConfigurationError(
            "Neither an agent nor a model is named to play the episodes: name one of them.",
            option=("agent", "model"),
            value="NAME",
        )
    agent_options = {} if options.agent is None else typed_agent_options(options.agent, options.agent_options)
    return EvaluationParts(env, env_options, wrappers, policy, agent_options, judge, scores, ks)
