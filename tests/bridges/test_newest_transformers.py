"""The newest release of transformers that pyproject.toml permits: playing, fine-tuning and training, without warnings.

The other tests run with an older release, because vLLM permits no newer one; ``pip install rstar2-env[train]`` installs
this one.
"""

from __future__ import annotations

import inspect
import random
import re

import pytest
import torch
import transformers
from recipe_run import train_recipe
from scripted_policy import World
from tiny_models import alone, fresh_logprobs, prompts, run_all, tiny_gemma3, tiny_llama, tiny_qwen3

from rstar2_env import trainers
from rstar2_env.core.run_folder import read_run
from rstar2_env.dialects import make_dialect
from rstar2_env.models.forward import cache_argument
from rstar2_env.models.measure import measure_model
from rstar2_env.rollout import SamplingParams, TransformersEngine
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

pytestmark = pytest.mark.filterwarnings("error::FutureWarning", "error::DeprecationWarning:rstar2_env")
DIALECT = make_dialect("rstar2")
PROBLEMS = [{"id": f"p{a}", "question": f"What is {a} + 7?", "answer": str(a + 7)} for a in range(8)]


def script(text: str, rng: random.Random) -> str | None:
    """Compute half of the answers with the tool, and answer the others wrong."""
    asked = re.search(r"What is (\d+) \+ 7", text)
    if asked is None:
        return None
    if "<tool_response>\n" not in text and rng.random() < 0.5:
        return DIALECT.format_call(
            "execute_python_code_with_standard_io", {"code": f"print({asked[1]} + 7)", "input": ""}
        )
    found = re.search(r"<tool_response>\n(\d+)", text)
    return DIALECT.format_answer(found[1] if found else "1")


def test_the_release_is_newer_than_the_renamed_cache():
    assert tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 24)


@pytest.mark.parametrize("make", [tiny_qwen3, tiny_llama, tiny_gemma3])
def test_greedy_output_is_that_of_generate(make):
    model = make()
    assert cache_argument(model) in inspect.signature(model.forward).parameters
    engine = TransformersEngine(model, max_rows=5, max_prefill_tokens=64)
    jobs = [(prompt, SamplingParams(12, temperature=0.0)) for prompt in prompts(10)]
    generations = run_all(engine, jobs)
    engine.close()
    for (prompt, _), generation in zip(jobs, generations, strict=True):
        assert generation.ids == alone(model, prompt, 12)
        expected = fresh_logprobs(model, prompt, generation.ids, 1.0)
        assert torch.allclose(torch.tensor(generation.logprobs), expected, atol=1e-4)


def test_two_steps_of_training(tmp_path):
    world = World("rstar2/MathTool-v0", {"problems": PROBLEMS, "max_turns": 3}, script, 4000)
    train_recipe("grpo_roc", world, make_tiny_model(tmp_path / "model", hidden=32, layers=1), tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.finished
    assert any(line.get("grad_norm", 0) > 0 for line in run.metrics())


def test_fine_tuning_and_the_measured_speed_of_the_model(tmp_path):
    traces = [
        {
            "messages": [
                {"role": "user", "content": problem["question"]},
                {"role": "assistant", "content": problem["answer"]},
            ]
        }
        for problem in PROBLEMS
    ]
    model = make_tiny_model(tmp_path / "model", hidden=32, layers=1)
    trainers.sft(traces, model=str(model), output_dir=tmp_path / "sft", steps=2, batch_size=4, progress=False)
    speed = measure_model(tmp_path / "sft")
    assert min(speed.reading, speed.writing, speed.training) > 0
