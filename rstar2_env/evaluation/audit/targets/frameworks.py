"""Targets of other frameworks: Python source that plays or scores an answer with the framework's own code.

Covered: generators of reasoning-gym 0.1, tasksets of verifiers 0.4, servers of OpenEnv 0.10, servers of NeMo Gym (their
answer to ``/verify``, or the reward of a step if they do not have ``/verify``), tasks of lm-eval 0.4 and scorers of
Inspect 0.3. Not covered: tools of these environments; an answer is the text of one turn, and its score is the reward of
that turn, even if the episode continues.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import read_part
from rstar2_env.core.options.user_code import UserCodeName, user_code_name
from rstar2_env.evaluation.audit.targets.functions import import_lines
from rstar2_env.evaluation.audit.targets.target import Target

PROBLEMS = 24
"""Number of the target's own problems to audit."""

_REASONING_GYM = """
import reasoning_gym

dataset = reasoning_gym.create_dataset({name!r}, seed=0, size={count}, **{options!r})
entries = {{entry["question"]: entry for entry in dataset}}


def grade(gold, answer, question=""):
    return dataset.score_answer(answer, entries[question])


def problems():
    return [[question, entry.get("answer") or ""] for question, entry in entries.items()]
"""
_PLAYED = """
{make}


def play(answer, seed):
    _, info = env.reset(seed=seed)
    _, reward, _, _, end = env.step(answer)
    if end.get("end") == "unavailable":
        raise RuntimeError(end.get("error"))
    return info, reward


def grade(gold, answer, question=""):
    return play(answer, int(question))[1]


def problems():
    found = {{}}
    for seed in range({count}):
        text, info = env.reset(seed=seed)
        found.setdefault(text, [str(seed), gold_of(info)])
    return list(found.values())
"""
_VERIFIERS = """
from rstar2_env.adapters.verifiers_client import VerifiersEnv

env = VerifiersEnv(taskset={name!r}, config={options!r}, tasks={count})


def gold_of(info):
    data = env.task(int(info["problem_id"].rpartition("/")[2])).data
    found = [getattr(data, name) for name in ("answer", "gold", "solution", "target") if hasattr(data, name)]
    return str(found[0]) if found else ""
"""
_OPENENV = """
from rstar2_env.adapters.openenv_client import OpenEnvEnv

env = OpenEnvEnv(url={name!r})


def gold_of(info):
    return str(next((info[name] for name in ("answer", "gold", "solution", "target") if name in info), ""))
"""
_OPENENV_CLASS = """
import inspect
import typing

from openenv.core.env_server.types import Action

env = _target()
_taken = typing.get_type_hints(type(env).step).get("action")
_known = [one for one in vars(sys.modules[type(env).__module__]).values() if inspect.isclass(one)]
_actions = [one for one in [_taken, *_known] if inspect.isclass(one) and issubclass(one, Action) and one is not Action]
_fields = {name: one for name, one in _actions[0].model_fields.items() if name != "metadata"}
_texts = [name for name, one in _fields.items() if one.annotation is str]
field = ([name for name in _texts if _fields[name].is_required()] or _texts)[0]


def grade(gold, answer, question=""):
    env.reset(seed=int(question))
    return env.step(_actions[0](**{field: answer})).reward


def problems():
    return [[str(seed), ""] for seed in range(PROBLEMS)]


"""
_NEMO_GYM = """
import json

import httpx

from rstar2_env.adapters.nemo_gym import NemoGymEnv, response

URL = {url!r}
GOLDS = ("expected_answer", "answer", "ground_truth", "gold", "solution", "target")
with open({rows!r}, encoding="utf-8") as file:
    rows = [json.loads(line) for line in file if line.strip()][:{count}]
env = NemoGymEnv(url=URL, rows=rows)
verifies = httpx.post(f"{{URL}}/verify", json={{**rows[0], "response": response("")}}).status_code != 404


def grade(gold, answer, question=""):
    row = rows[int(question)]
    if verifies:
        told = httpx.post(f"{{URL}}/verify", json={{**row, "response": response(answer)}}, timeout=60)
        told.raise_for_status()
        return told.json()["reward"]
    env.reset(options={{"problem_id": f"nemo_gym/{{question}}"}})
    _, reward, _, _, end = env.step(answer)
    if end.get("end") == "unavailable":
        raise RuntimeError(end.get("error"))
    return reward


def problems():
    return [[str(at), str(next((row[name] for name in GOLDS if name in row), ""))] for at, row in enumerate(rows)]
"""
_LM_EVAL = """
from itertools import islice

from lm_eval.api.instance import Instance
from lm_eval.tasks import TaskManager

task = list(TaskManager(include_path={folder!r}).load([{name!r}])["tasks"].values())[0]
docs = list(islice(task.test_docs() if task.has_test_docs() else task.validation_docs(), {count}))


def grade(gold, answer, question=""):
    doc = docs[int(question)]
    made = Instance(request_type="generate_until", doc=doc, arguments=("", {{}}), idx=0, resps=[answer])
    filters = getattr(task, "_filters", None) or []
    for chain in filters[:1]:
        chain.apply([made])
    text = next(iter(made.filtered_resps.values()), answer)
    scores = task.process_results(doc, [text[0] if isinstance(text, (list, tuple)) else text])
    return next((float(value) for value in scores.values() if isinstance(value, (bool, int, float))), None)


def problems():
    return [[str(at), str(task.doc_to_target(doc))] for at, doc in enumerate(docs)]
"""
_INSPECT = """
import asyncio

from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Target, value_to_float
from inspect_ai.solver import TaskState

scorer = _target()


def grade(gold, answer, question=""):
    output = ModelOutput.from_content("mockllm/model", answer)
    messages = [ChatMessageUser(content=question or "What is it?"), output.message]
    state = TaskState(ModelName("mockllm/model"), 1, 1, question or "What is it?", messages, output=output)
    score = asyncio.run(scorer(state, Target(gold)))
    return None if score is None else value_to_float()(score.value)
"""


def reasoning_gym_target(name: str) -> Target:
    """Return a target that grades with a generator of reasoning-gym; options follow the name: ``NAME:option=value``."""
    part = read_part(name, "generator of reasoning-gym")
    setup = _REASONING_GYM.format(name=part.name, options=_values(part.options), count=PROBLEMS)
    return _own(name, "a generator of reasoning-gym", setup, "reasoning-gym")


def verifiers_target(name: str) -> Target:
    """Return a target that grades with a taskset of the library verifiers."""
    part = read_part(name, "taskset of verifiers")
    make = _VERIFIERS.format(name=part.name, options={"taskset": _values(part.options)}, count=PROBLEMS)
    return _own(name, "a taskset of verifiers", _PLAYED.format(make=make.strip(), count=PROBLEMS), "verifiers")


def openenv_target(name: str) -> Target:
    """Return a target that grades with an OpenEnv environment: a class (``module:Class``), or a server's address.

    A class runs in the target's own process, so that the files that the class reads can be recorded. The action of the
    class must have a field of type ``str``, which receives the answer.
    """
    code = None if name.startswith(("http://", "https://")) else user_code_name(name)
    if code is not None and code.name:
        setup = f"PROBLEMS = {PROBLEMS}\n{import_lines(code)}{_OPENENV_CLASS.rstrip()}\n"
        return _own(name, "an environment of OpenEnv", setup, "openenv")
    setup = _PLAYED.format(make=_OPENENV.format(name=name).strip(), count=PROBLEMS)
    return _own(name, "a server of OpenEnv", setup, "openenv")


def nemo_gym_target(name: str) -> Target:
    """Return a target that grades with a server of NeMo Gym, written as ``ROWS.jsonl@URL``.

    Raises:
        ConfigurationError: The file of rows does not exist, or the address is missing.
    """
    rows, _, url = name.rpartition("@")
    if rows and not Path(rows).is_file():
        raise ConfigurationError(
            f"nemo-gym:{name}: the file {rows} does not exist. Give the JSON Lines file with the rows of "
            "the data set that the server uses."
        )
    if not rows:
        raise ConfigurationError(
            f"nemo-gym:{name}: expected the rows of a data set and the address of its server, as in "
            "nemo-gym:rows.jsonl@http://127.0.0.1:8000."
        )
    setup = _NEMO_GYM.format(url=url.rstrip("/"), rows=str(Path(rows).absolute()), count=PROBLEMS)
    return Target(name, "a server of NeMo Gym", setup.lstrip(), own_problems=True)


def lm_eval_target(name: str) -> Target:
    """Return a target that grades with a task of lm-eval, by name, or as ``FOLDER:NAME`` if a folder defines it."""
    folder, _, task = name.rpartition(":")
    setup = _LM_EVAL.format(name=task, folder=str(Path(folder).absolute()) if folder else None, count=PROBLEMS)
    return _own(name, "a task of lm-eval", setup, "lm-eval")


def inspect_target(name: str) -> Target:
    """Return a target that grades with a scorer of Inspect: ``module:scorer`` or ``FILE.py:scorer``, without arguments.

    Raises:
        ConfigurationError: The name does not have the form ``module:scorer``.
    """
    code = user_code_name(name)
    if not isinstance(code, UserCodeName) or not code.name:
        raise ConfigurationError(
            f"inspect:{name}: expected inspect:module:scorer, as in inspect:inspect_ai.scorer:match."
        )
    return Target(name, "a scorer of Inspect", import_lines(code) + _INSPECT, versions=_version("inspect-ai"))


def _values(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in which each text that is a Python literal is replaced by its value."""
    found = {}
    for name, value in options.items():
        try:
            found[name] = literal_eval(value) if isinstance(value, str) else value
        except (ValueError, SyntaxError):
            found[name] = value
    return found


def _own(name: str, kind: str, setup: str, package: str) -> Target:
    return Target(name, kind, setup.lstrip(), own_problems=True, versions=_version(package))


def _version(package: str) -> dict[str, str]:
    return {package: metadata.version(package)}
