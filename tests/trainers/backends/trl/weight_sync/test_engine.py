"""Training with an engine that has weights of its own: vLLM in process, and a real server."""

import json
import math
import os
import subprocess
import sys

import pytest
from vllm_serve import needs_vllm

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.run_folder import read_run

BOUND = 1e-4
"""Largest mean distance of an engine's log-probabilities from the trainer's, in float32."""


def options_of_a_run(model, folder):
    return {
        "model": str(model),
        "env": "rstar2/MathTool-v0",
        "env_options": {"problems": "arithmetic:level=1", "max_turns": 2},
        "output_dir": str(folder),
        "steps": 3,
        "problems_per_step": 2,
        "group_size": 4,
        "tokens_per_device": 8 * 96,
        "selector": "all",
        "learning_rate": 1e-2,
        "max_episode_tokens": 96,
        "max_turn_tokens": 32,
        "eval": {"every": 3, "episodes": 8},
        "threads": 1,
        "progress": False,
    }


SCRIPT = """
import json, sys, threading
import torch
from rstar2_env import trainers

class EverySecond:
    # Every second episode is paid, so that every group has something to teach, and the weights move.
    needs = frozenset()

    def __init__(self):
        self.seen = 0

    def __call__(self, episode, context):
        self.seen += 1
        return float(self.seen % 2)

options = json.loads(sys.argv[1])
trainer = trainers.make("grpo_clip_higher", **options, reward=[EverySecond])
first = [weights.detach().clone() for weights in trainer.trl.model.parameters() if weights.requires_grad]
result = trainer.train()
last = [weights for weights in trainer.trl.model.parameters() if weights.requires_grad]
vllm = getattr(trainer.play.policy.engine, "_config", None)
blocks = vllm and [vllm.cache_config.num_gpu_blocks, vllm.cache_config.block_size, trainer.config.rollout.max_in_flight]
moved = max(float((a - b).abs().max()) for a, b in zip(first, last, strict=True))
trainer.close()
threads = sorted(t.name for t in threading.enumerate() if t.name.startswith("rstar2"))
history = [{k: v for k, v in line.items() if isinstance(v, float)} for line in result.history]
group = torch.distributed.is_initialized()
found = {"history": history, "threads": threads, "process_group": group, "moved": moved, "blocks": blocks}
print("RESULT", json.dumps(found))
"""


def run(tmp_path, options, processes=1):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    done = subprocess.run(
        [sys.executable, *(launcher if processes > 1 else ()), str(script), json.dumps(options)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    return json.loads(line.removeprefix("RESULT"))


def holds(result):
    """Every step compared the two, the policy moved, and the engine moved with it."""
    steps = [line for line in result["history"] if "mismatch/logp_difference" in line]
    assert len(steps) == 3, result["history"]
    assert all(line["mismatch/logp_difference"] < BOUND for line in steps)
    assert not any(math.isnan(line.get("loss", 0.0)) for line in steps)
    assert result["moved"] > 1e-3
    assert all(line["rollout/unavailable"] == 0 for line in steps)


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.proof), 4])
def test_vllm_in_process_follows_the_policy_step_by_step(policy_folder, tmp_path, rank):
    needs_vllm()
    options = {**options_of_a_run(policy_folder, tmp_path / "run"), "lora_rank": rank, "offload_state": True}
    result = run(tmp_path, {**options, "engine": "vllm", "engine_options": {"kv_cache_gib": 0.0625}})
    holds(result)
    steps = [line for line in result["history"] if "loss" in line]
    assert "seconds/offload" not in steps[0], "the optimizer has no state before its first step"
    assert all(line["seconds/offload"] > 0 for line in steps[1:])
    assert result["threads"] == []
    assert result["process_group"] is False


@pytest.mark.train
@pytest.mark.slow
def test_the_cache_of_vllm_in_process_has_the_blocks_that_were_computed_for_it(policy_folder, tmp_path):
    needs_vllm()
    options = options_of_a_run(policy_folder, tmp_path / "run")
    result = run(tmp_path, {**options, "steps": 1, "engine": "vllm", "engine_options": {"max_model_len": 1400}})
    blocks, size, in_flight = result["blocks"]
    each = -(-1400 // 128) * 128 // size
    assert blocks == in_flight * each + 128 // size
    (note,) = (event for event in read_run(tmp_path / "run").events if event["event"] == "note")
    assert f"the space that {in_flight} conversations of 1400 tokens need" in note["text"]


@pytest.mark.train
@pytest.mark.slow
def test_a_server_follows_the_policy_of_adapters_step_by_step(vllm_server, policy_folder, tmp_path):
    options = options_of_a_run(policy_folder, tmp_path / "run")
    served = {"base_urls": vllm_server, "weights_dir": str(tmp_path), "start_timeout_s": 240}
    holds(run(tmp_path, {**options, "engine": "vllm-server", "engine_options": served, "lora_rank": 4}))
    assert not [path for path in tmp_path.iterdir() if "weights" in path.name]


@pytest.mark.train
@pytest.mark.slow
def test_two_processes_share_a_server_and_its_weights(vllm_server, policy_folder, tmp_path):
    options = options_of_a_run(policy_folder, tmp_path / "run")
    served = {"base_urls": vllm_server, "weights_dir": str(tmp_path), "start_timeout_s": 240}
    holds(run(tmp_path, {**options, "engine": "vllm-server", "engine_options": served}, processes=2))


def test_an_engine_that_is_not_there_is_named(letter_options):
    with pytest.raises(UnknownNameError, match="'vllm'"):
        trainers.make("grpo_clip_higher", **{**letter_options, "engine": "vlm"})


def test_options_that_the_engine_does_not_know_are_refused(letter_options):
    with pytest.raises(ConfigurationError, match="max_rows"):
        trainers.make("grpo_clip_higher", **{**letter_options, "engine_options": {"rows": 3}})


def test_trls_own_vllm_is_refused(letter_options):
    with pytest.raises(ConfigurationError, match='engine="vllm"'):
        trainers.make("grpo_clip_higher", **{**letter_options, "trl_options": {"use_vllm": True}})
