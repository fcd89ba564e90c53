"""Importing the package and playing an episode of plain numbers loads Gymnasium and the standard library only."""

import json
import subprocess
import sys

import pytest

HEAVY = [
    "torch",
    "trl",
    "transformers",
    "vllm",
    "ray",
    "docker",
    "httpx",
    "starlette",
    "uvicorn",
    "sympy",
    "math_verify",
    "typer",
    "rich",
    "pytest",
    "asyncio",
    "ssl",
]

EPISODE = """
import json, multiprocessing, sys, threading
import gymnasium as gym
before = set(sys.modules)
import rstar2_env
env = gym.make("rstar2/MathTool-v0")
env.reset(seed=1)
assert env.step("The answer is <answer>\\\\boxed{7}</answer>")[4]["end"] == "answered"
top = {name.partition(".")[0] for name in set(sys.modules) - before}
modules = sorted({name.partition(".")[0] for name in sys.modules})
threads = threading.active_count()
own = f"/proc/self/task/{threading.get_native_id()}/children"
children = len(open(own).read().split()) if sys.platform == "linux" else 0
refused = {}
from rstar2_env.core.errors import UnknownNameError
from rstar2_env.evaluation.options import EvaluationOptions
from rstar2_env.trainers.options.config import RolloutOptions
from rstar2_env.trainers.pipeline.likelihood import EngineStage
for options in (EvaluationOptions, RolloutOptions, EngineStage):
    try:
        options(engine="transfomers")
    except UnknownNameError:
        refused[options.__name__] = sorted({"torch", "transformers"} & set(sys.modules))
print(json.dumps({
    "refused": refused,
    "modules": modules,
    "foreign": sorted(top - set(sys.stdlib_module_names) - {name.partition(".")[0] for name in before}),
    "threads": threads,
    "children": children,
}))
"""


@pytest.fixture(scope="module")
def after_an_episode():
    done = subprocess.run([sys.executable, "-c", EPISODE], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", HEAVY)
def test_nothing_heavy_is_loaded(after_an_episode, module):
    assert module not in after_an_episode["modules"]


def test_nothing_foreign_is_loaded_beside_gymnasium(after_an_episode):
    foreign = [name for name in after_an_episode["foreign"] if not name.startswith("__editable__")]
    assert foreign == ["rstar2_env"]


def test_an_unknown_engine_is_refused_before_torch_is_imported(after_an_episode):
    assert after_an_episode["refused"] == {"EvaluationOptions": [], "RolloutOptions": [], "EngineStage": []}


def test_no_thread_and_no_process_is_started(after_an_episode):
    assert (after_an_episode["threads"], after_an_episode["children"]) == (1, 0)


def test_an_id_that_names_its_module_needs_no_import_before():
    program = 'import gymnasium as gym; print(gym.make("rstar2_env:rstar2/MathTool-v0").reset(seed=1)[1]["problem_id"])'
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""
