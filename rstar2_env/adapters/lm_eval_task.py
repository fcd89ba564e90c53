"""lm-evaluation-harness (``lm-eval`` 0.4): an environment's problems as one of its tasks, graded by the environment.

Written by ``rstar2 export --env ID --to lm-eval``: the problems as the environment asks them, the task's YAML, and a
``grade.py`` whose ``process_results`` plays the model's text as the one turn of an episode. Covered: the reward,
whether the answer is right, and whether there is an answer. No mean includes episodes that do not measure the model.
Not covered: the tool and further turns, since the harness has neither. The system message does not offer them, and a
turn that calls the tool anyway ends the episode as ``turns``. The statuses of tool calls are not reported. Environments
whose episodes continue after a text are rejected.
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
_LONGEST = 2048

_YAML = """\
task: {name}
custom_dataset: !function grade.dataset
output_type: generate_until
test_split: test
description: "{{{{system}}}}"
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{gold}}}}"
process_results: !function grade.process_results
generation_kwargs:
  until: []
  max_gen_toks: {longest}
  do_sample: false
metric_list:
{metrics}
metadata:
  version: 1.0
"""
_METRIC = """\
  - metric: {name}
    aggregation: mean
    higher_is_better: {better}
"""
_GRADE = '''\
"""Grades {env} of rstar2-env; written by `rstar2 export --env {env} --to lm-eval`."""

from pathlib import Path

from datasets import Dataset

from rstar2_env.adapters.lm_eval_task import process_results

__all__ = ["dataset", "process_results"]


def dataset(**_):
    """The problems, as the environment asks them."""
    return {{"test": Dataset.from_json(str(Path(__file__).with_name("{name}.jsonl")))}}
'''


def files(what: Exported) -> dict[str, str]:
    """Return the files of a task.

    Raises:
        ConfigurationError: An episode continues after a text, or an unlimited source is given without ``episodes``.
    """
    name, env, wrappers = what.name, what.env, what.wrappers
    single = _single(env, what.options)
    made = make_env(env, wrappers=wrappers, **single)
    try:
        plan = plan_of(source_of(made, None, "test"), what.episodes, 0)
        docs = [_doc(made, each, env, single, wrappers) for each in plan]
    finally:
        made.close()
    _check_single(env, what.options, wrappers)
    metrics = "".join(_METRIC.format(name=one, better=str(one != "no_answer").lower()) for one in METRICS)
    return {
        f"{name}.yaml": _YAML.format(name=name, longest=_LONGEST, metrics=metrics.rstrip("\n")),
        f"{name}.jsonl": "".join(json.dumps(doc, default=str) + "\n" for doc in docs),
        "grade.py": _GRADE.format(env=env, name=name),
    }


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Grade the model's text for one problem; the harness calls this.

    Args:
        doc: A line of the problems' file.
        results: The model's text, in a list.

    Returns:
        The metrics; empty for an episode that does not measure the model, which leaves it out of every mean.
    """
    env, problem, turn = _env(doc["env"], doc["options"], doc["wrappers"]), json.loads(doc["problem"]), str(results[0])
    options = None if problem is None else {"problem": Problem(**problem)}
    episode = Episode(seed=doc["seed"]).begin(*env.reset(seed=doc["seed"], options=options))
    episode.step(turn, env.step(turn))
    if not episode.available:
        return {}
    answered = episode.answer is not None
    return {"reward": episode.reward, "correct": float(episode.correct), "no_answer": float(not answered)}


def _single(env: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a budget of one turn, if the environment has a turn budget."""
    try:
        return env_options(find_env(env), {**options, "max_turns": 1})
    except ConfigurationError:
        return dict(options)


def _check_single(env: str, options: Mapping[str, Any], wrappers: Sequence[PartSpec]) -> None:
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
            f"{env} continues after a text without a call, but lm-evaluation-harness plays one turn only: evaluate it "
            "with rstar2 eval, or as a task of Inspect."
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
        # As text, since each column of a data set has one type.
        "options": json.dumps(dict(options)),
        "wrappers": json.dumps(list(wrappers)),
        "problem": json.dumps(None if problem is None else _record(problem), default=str),
    }


def _record(problem: Problem) -> dict[str, Any]:
    return {field.name: getattr(problem, field.name) for field in fields(problem)} | {"meta": dict(problem.meta)}
