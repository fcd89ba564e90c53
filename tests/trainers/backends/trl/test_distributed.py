"""Training on two processes: groups stay whole, the processes agree, one that is gone ends the other with an error."""

import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from places import SUPPORT

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import itertools, json, os, signal, sys
from letter_env import LetterEnv
from rstar2_env import trainers

RANK = int(os.environ["RANK"])
steps = itertools.count()

class OneIsOdd(LetterEnv):
    # uneven: on the second process, episodes have four turns, and no group has a difference to learn from.
    # signal: the second process sends it to itself in its twentieth step.
    def __init__(self, split="train", uneven=False, signal=0):
        super().__init__(**({"turns": 4, "reward": 0.5} if uneven and RANK == 1 else {}))
        self.signal = signal if RANK == 1 else 0

    def step(self, action):
        if next(steps) == 19 and self.signal:
            os.kill(os.getpid(), self.signal)
        return super().step(action)

options = json.loads(sys.argv[1])
trainer = trainers.make("grpo_roc", env=OneIsOdd, **options)
result = trainer.train()
trainer.close()
norm = sum(float(weights.abs().sum()) for weights in trainer.trl.model.state_dict().values())
print("RESULT", json.dumps({"pass": result.after["pass_rate"], "norm": norm}))
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SUPPORT)}


def options_of(tmp_path, tiny_model, **changes):
    return {
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


def script_in(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return script


def run(tmp_path, tiny_model, **changes):
    options = options_of(tmp_path, tiny_model, **changes)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        str(script_in(tmp_path)),
    ]
    launcher = subprocess.Popen(
        [*command, json.dumps(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
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


def test_processes_whose_episodes_differ_in_turns_and_whose_groups_are_rejected_go_on(tmp_path, tiny_model):
    done = run(tmp_path, tiny_model, env_options={"uneven": True}, max_episode_tokens=200)
    assert done.returncode == 0, done.stderr[-3000:]
    turns, kept = [], []
    for name in ("train-000001.jsonl.gz", "train-000001-rank1.jsonl.gz"):
        with gzip.open(tmp_path / "run" / "episodes" / name, "rt") as file:
            episodes = [json.loads(line) for line in file]
        turns.append({episode["turns"] for episode in episodes})
        kept.append(sum(episode["kept"] for episode in episodes))
    assert turns == [{1}, {4}]
    assert kept[0] > 0
    results = [line.partition("RESULT ")[2] for line in done.stdout.splitlines() if "RESULT " in line]
    assert len(results) == 2
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("how", "says"),
    [(signal.SIGKILL, "by peer"), (signal.SIGSTOP, "Timed out waiting")],
    ids=["killed", "stopped"],
)
def test_a_process_that_is_gone_ends_the_other_with_an_error(tmp_path, tiny_model, how, says):
    """Without torchrun, which ends what is left on its own machine: on another machine it cannot."""
    changes = {"env_options": {"signal": int(how)}, "eval_every": 0, "process_timeout_s": 20}
    options = options_of(tmp_path, tiny_model, **changes)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = []
    try:
        for rank in ("0", "1"):
            with open(tmp_path / f"{rank}.log", "w") as log:
                ranks.append(
                    subprocess.Popen(
                        [sys.executable, str(script_in(tmp_path)), json.dumps(options)],
                        stdout=log,
                        stderr=log,
                        env={**ENVIRONMENT, **world, "RANK": rank, "LOCAL_RANK": rank},
                    )
                )
        assert ranks[0].wait(200) == 1
        assert says in (tmp_path / "0.log").read_text()
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
