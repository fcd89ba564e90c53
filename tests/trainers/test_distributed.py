"""Training on two processes: groups stay whole, the processes agree, a split group is refused."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import json, sys
import gymnasium as gym
from rstar2_env import trainers
from rstar2_env.spaces import UnicodeText

class LetterEnv(gym.Env):
    def __init__(self, split="train"):
        self.observation_space = self.action_space = UnicodeText(1000)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return f"Say a letter. {int(self.np_random.integers(10))}", {}

    def step(self, action):
        return "", float(action[:1].islower()), True, False, {}

options = json.loads(sys.argv[1])
trainer = trainers.make("grpo_roc", env=LetterEnv, **options)
result = trainer.train()
trainer.close()
norm = sum(float(weights.abs().sum()) for weights in trainer.trl.model.state_dict().values())
print("RESULT", json.dumps({"pass": result.after["pass_rate"], "norm": norm}))
"""


def run(tmp_path, tiny_model, **changes):
    options = {
        "model": str(tiny_model),
        "output_dir": str(tmp_path / "run"),
        "steps": 2,
        "problems_per_step": 4,
        "group_size": 4,
        "rows_per_device": 8,
        "learning_rate": 1e-2,
        "max_episode_tokens": 16,
        "max_turn_tokens": 2,
        "eval_every": 1,
        "eval_episodes": 7,
        "threads": 1,
        "progress": False,
        **changes,
    }
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        str(script),
    ]
    launcher = subprocess.Popen(
        [*command, json.dumps(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = launcher.communicate(timeout=120)
    finally:
        # The launcher's children are in its session: none may outlive the test.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, launcher.returncode, stdout, stderr)


def test_two_processes_train_whole_groups_and_agree(tmp_path, tiny_model):
    done = run(tmp_path, tiny_model)
    assert done.returncode == 0, done.stderr[-3000:]
    results = [line.partition("RESULT ")[2] for line in done.stdout.splitlines() if "RESULT " in line]
    assert len(results) == 2
    assert results[0] == results[1]

    groups = []
    for name in ("train-000000.jsonl.gz", "train-000000-rank1.jsonl.gz"):
        with gzip.open(tmp_path / "run" / "episodes" / name, "rt") as file:
            episodes = [json.loads(line) for line in file]
        assert len(episodes) == 2 * 8
        groups.append({episode["group"] for episode in episodes})
    assert groups == [{0, 1}, {2, 3}]


def test_a_step_that_would_split_a_group_is_refused(tmp_path, tiny_model):
    done = run(tmp_path, tiny_model, problems_per_step=3)
    assert done.returncode != 0
    assert "use a multiple of 2" in done.stderr
