"""Exports problems to frameworks whose episodes have a single turn; the environment grades the text of that turn.

Covered: the prompts, without the tools; the reward of a text, whether it is right, and whether it has an answer. Not
covered: further turns. Environments whose episodes continue after a turn without a call are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.env.named import find_env
from rstar2_env.env.options import env_options
from rstar2_env.env.reference import reference_of
from rstar2_env.evaluation.play.plan import Task, plan_of, source_of
from rstar2_env.problems import Problem
from rstar2_env.wrappers.make import make_env

if TYPE_CHECKING:
    from rstar2_env.adapters.base.exported import Exported

METRICS = ("reward", "correct", "no_answer")
"""Names of the metrics of a graded turn."""


def single_turn_docs(what: Exported, target: str) -> list[dict[str, Any]]:
    """Return a record for each problem of the test split.

    A record has the keys ``id``, ``system``, ``prompt`` and ``gold`` (the gold answer), and everything with which
    ``grade_single_turn`` plays the problem: ``seed``, ``env``, ``options``, ``wrappers`` and ``problem``.

    Args:
        what: The environment and the number of problems.
        target: Name of the framework, for error messages.

    Raises:
        ConfigurationError: An episode continues after an answer, or ``episodes`` is missing although the source of
            problems is unlimited.
    """
    single = _single(what.env, what.options)
    made = make_env(what.env, wrappers=what.wrappers, **single)
    try:
        plan = plan_of(source_of(made, None, "test"), what.episodes, 0)
        docs = [_doc(made, each, what.env, single, what.wrappers) for each in plan]
    finally:
        made.close()
    _check_single(what.env, what.options, what.wrappers, target)
    return docs


def grade_single_turn(doc: Mapping[str, Any], turn: str) -> dict[str, float]:
    """Play a text as the only turn of an episode.

    Args:
        doc: A record of ``single_turn_docs``.
        turn: The text to grade.

    Returns:
        The metrics ``reward``, ``correct`` and ``no_answer`` (0 or 1); {} if the episode is ``unavailable``.
    """
    env, problem = _env(doc["env"], doc["options"], doc["wrappers"]), json.loads(doc["problem"])
    options = None if problem is None else {"problem": Problem(**problem)}
    episode = Episode(seed=doc["seed"]).begin(*env.reset(seed=doc["seed"], options=options))
    episode.step(turn, env.step(turn))
    if not episode.available:
        return {}
    answered = episode.answer is not None
    return {"reward": episode.reward, "correct": float(episode.correct), "no_answer": float(not answered)}


def reference_turn(doc: Mapping[str, Any]) -> str | None:
    """Return a text that the environment accepts as right, from its reference player or from the gold answer.

    Args:
        doc: A record of ``single_turn_docs``.

    Returns:
        The text; ``None`` if there is none.
    """
    env, problem = _env(doc["env"], doc["options"], doc["wrappers"]), json.loads(doc["problem"])
    env.reset(seed=doc["seed"], options=None if problem is None else {"problem": Problem(**problem)})
    reference, dialect = reference_of(env), getattr(env.unwrapped, "dialect", None)
    if reference is not None:
        turn = reference()
    elif problem is not None and dialect is not None:
        turn = dialect.format_answer(problem["answer"])
    else:
        return None
    return turn if grade_single_turn(doc, turn).get("correct") else None


def _single(env: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a budget of one turn; unchanged if the environment has no turn budget."""
    try:
        return env_options(find_env(env), {**options, "max_turns": 1})
    except ConfigurationError:
        return dict(options)


def _check_single(env: str, options: Mapping[str, Any], wrappers: Sequence[PartSpec], target: str) -> None:
    """Check that a turn without a call ends the episode, even without a budget of one turn.

    The turn is the reference player's, or an empty turn if the environment has no reference player.

    Raises:
        ConfigurationError: The episode continues after that turn.
    """
    made = make_env(env, wrappers=wrappers, **options)
    try:
        made.reset(seed=0)
        reference = reference_of(made)
        turn = None if reference is None else reference()
        _, _, terminated, truncated, _ = made.step(turn or "")
    finally:
        made.close()
    if not (terminated or truncated):
        raise ConfigurationError(
            f"An episode of {env} does not end after one answer, but {target} grades a single answer: "
            "evaluate the environment with rstar2 eval, or as a task of Inspect."
        )


@cache
def _env(env: str, options: str, wrappers: str) -> gym.Env[str, str]:
    return make_env(env, wrappers=json.loads(wrappers), **json.loads(options))


def _doc(
    made: gym.Env[str, str], each: Task, env: str, options: Mapping[str, Any], wrappers: Sequence[PartSpec]
) -> dict[str, Any]:
    problem = each.problem
    prompt, info = made.reset(seed=each.seed, options=None if problem is None else {"problem": problem})
    dialect = getattr(made.unwrapped, "dialect", None)
    offered = dialect is not None and info.get("tools")
    return {
        "id": str(info.get("problem_id", each.index)),
        "system": str(dialect.system(()) if offered and dialect is not None else info.get("system") or ""),
        "prompt": prompt,
        "gold": problem.answer if problem is not None else "",
        "seed": each.seed,
        "env": env,
        # As JSON text, since each column of a data set has one type.
        "options": json.dumps(dict(options)),
        "wrappers": json.dumps(list(wrappers)),
        "problem": json.dumps(None if problem is None else _record(problem), default=str),
    }


def _record(problem: Problem) -> dict[str, Any]:
    return {field.name: getattr(problem, field.name) for field in fields(problem)} | {"meta": dict(problem.meta)}
