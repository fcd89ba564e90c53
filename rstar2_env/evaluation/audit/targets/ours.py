"""Targets of this package: environments, reward components, verifiers."""

from __future__ import annotations

from rstar2_env.core.version import __version__
from rstar2_env.evaluation.audit.targets.target import Target

_VERSIONS = {"rstar2-env": __version__}
_ENV = """
from rstar2_env.env.reference import playing
from rstar2_env.problems import Problem
from rstar2_env.wrappers.make import make_env

env = make_env({name!r})


def grade(gold, answer, question=""):
    env.reset(seed=0, options={{"problem": Problem("audit", question or "What is it?", gold)}})
    turn = playing(env).dialect.format_answer(answer)
    return env.step(turn)[1]
"""
_OWN_ENV = """
from rstar2_env.env.reference import playing
from rstar2_env.wrappers.make import make_env

env = make_env({name!r})


def grade(gold, answer, question=""):
    env.reset(seed=int(question))
    dialect = getattr(playing(env), "dialect", None)
    returned = env.step(answer if dialect is None else dialect.format_answer(answer))
    return sum([returned[1]])


def problems():
    found = []
    for seed in range({count}):
        env.reset(seed=seed)
        problem = getattr(playing(env), "problem", None)
        found.append([str(seed), "" if problem is None else problem.answer])
    return found


def takes_problems():
    from rstar2_env.env.grading import GoldGrader

    return isinstance(getattr(playing(env), "grader", None), GoldGrader)
"""
_REWARD = """
import asyncio
import inspect

from rstar2_env.core.episode import Episode
from rstar2_env.dialects import make_dialect
from rstar2_env.problems import Problem
from rstar2_env.rewards.base import RewardContext
from rstar2_env.rewards.component import make_component
from rstar2_env.wrappers.make import make_env

component = make_component({name!r})
env = make_env("rstar2/MathTool-v0")


def grade(gold, answer, question=""):
    problem = Problem("audit", question or "What is it?", gold)
    episode = Episode(seed=0).begin(*env.reset(seed=0, options={{"problem": problem}}))
    turn = env.unwrapped.dialect.format_answer(answer)
    episode.step(turn, env.step(turn))
    value = component.found(episode, RewardContext(problem=problem))
    return asyncio.run(value) if inspect.isawaitable(value) else value
"""
_VERIFIER = """
from rstar2_env.verification.named import make_verifier

verifier = make_verifier({name!r})


def grade(gold, answer, question=""):
    return verifier(gold, answer, question or None).correct
"""
PROBLEMS = 24
"""Number of an environment's own problems to audit."""


def env_target(name: str) -> Target:
    """Return a target for an environment that grades external problems against their gold answers."""
    return Target(name, "an environment of this package", _ENV.format(name=name).lstrip(), versions=_VERSIONS)


def own_env_target(name: str) -> Target:
    """Return a target for an environment that can only grade its own problems."""
    setup = _OWN_ENV.format(name=name, count=PROBLEMS).lstrip()
    return Target(name, "an environment of this package", setup, own_problems=True, versions=_VERSIONS)


def reward_target(name: str) -> Target:
    """Return a target that grades with the reward component ``name``, which may include options."""
    return Target(name, "a component of a reward", _REWARD.format(name=name).lstrip(), versions=_VERSIONS)


def verifier_target(name: str) -> Target:
    """Return a target that grades with the verifier ``name``, which may include options."""
    return Target(name, "a verifier", _VERIFIER.format(name=name).lstrip(), versions=_VERSIONS)
