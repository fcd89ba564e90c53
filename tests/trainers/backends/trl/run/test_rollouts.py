"""Runs whose episodes are played ahead, on a server with weights of its own: versions, resuming, signals, hooks."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from chain import Service, free_port
from letter_env import LetterEnv
from places import SUPPORT
from torch_launcher import launch
from transformers import AutoModelForCausalLM, TrainerCallback

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.record.resume import TrainingStopped

pytestmark = [pytest.mark.train, pytest.mark.slow]

pytest.importorskip("httpx", reason="servers need the extra 'remote'")


@pytest.fixture(scope="module")
def server(tiny_model, tmp_path_factory):
    """Address of a server of that model."""
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, str(SUPPORT / "small_vllm.py"), str(tiny_model), str(port)]
    service = Service("model", command, log, f"http://127.0.0.1:{port}/health")
    service.start()
    try:
        service.ready()
        yield f"http://127.0.0.1:{port}"
    finally:
        service.kill()


@pytest.fixture
def options(letter_options, server, tmp_path):
    """Options of a short run on that server, which plays one hand-over ahead."""
    return {
        **letter_options,
        "engine": "vllm-server",
        "engine_options": {"base_urls": server, "weights_dir": str(tmp_path / "weights"), "start_timeout_s": 60.0},
        "max_staleness": 1,
        "dtype": "float32",
        "threads": 1,
        "steps": 4,
    }


def train(options, *, callbacks=(), **changes):
    trainer = trainers.make("grpo_clip_higher", **{**options, **changes}, callbacks=list(callbacks))
    try:
        return trainer.train()
    finally:
        trainer.close()


def versions(run, step):
    return {turn.version for entry in run.episodes(step) for turn in entry.episode.steps}


def played(run, step):
    """What is the same in every run with the same options."""
    return [(entry.episode.group, entry.member, entry.episode.seed) for entry in run.episodes(step)]


@pytest.mark.parametrize(("staleness", "drawn"), [(0, [0, 1, 2, 3]), (2, [0, 0, 0, 2])])
def test_every_turn_says_which_weights_drew_it(options, staleness, drawn):
    result = train(options, max_staleness=staleness)
    run = read_run(result.output_dir)
    assert [versions(run, step) for step in range(1, 5)] == [{version} for version in drawn]
    for line in run.metrics():
        step = int(line["step"])
        # A step of which nothing trains has no lag.
        assert line.get("policy/lag", step - 1 - drawn[step - 1]) == step - 1 - drawn[step - 1]
        assert ("seconds/wait" in line) is bool(staleness)
    assert not list(Path(options["engine_options"]["weights_dir"]).iterdir())


def test_rows_that_were_drawn_ahead_are_weighed_by_what_drew_them(options):
    result = train(options, save_every=1, keep_checkpoints=9, keep_tokens=True, eval={"every": 2, "episodes": 4})
    run, far = read_run(result.output_dir), 0
    assert [versions(run, step) for step in range(1, 5)] == [{0}, {0}, {1}, {2}]
    held_out = {turn.version for entry in run.held_out(2) for turn in entry.episode.steps}
    assert held_out == {2}, "an evaluation plays with the weights of its step"
    for step in (3, 4):
        tokens = run.tokens(step)
        assert tokens
        for row in tokens:
            drew, trains = (_logprobs(result.output_dir / f"checkpoint-{at}", row) for at in (step - 2, step - 1))
            assert row.logprobs == pytest.approx(drew, abs=1e-4)
            assert row.ratios == pytest.approx(np.exp(trains - drew).tolist(), abs=1e-3)
            far += max(abs(ratio - 1) for ratio in row.ratios) > 0.01
    assert far, "the weights moved between the two"


def _logprobs(folder, row):
    """Log-probability of each token of a row of one turn."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.tensor([row.prompt_ids + row.completion_ids])
    with torch.no_grad():
        scores = model(ids).logits[0, len(row.prompt_ids) - 1 : -1].log_softmax(-1)
    return scores.gather(1, torch.tensor(row.completion_ids)[:, None])[:, 0].double().numpy()


class Stops(TrainerCallback):
    """Sends a signal while the second step trains."""

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        if state.global_step == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)


def check_whole(folder, whole):
    """The run has every step and every episode once, and played what one played that nobody stopped."""
    run, other = read_run(folder), read_run(whole)
    assert [line["step"] for line in run.metrics()] == [1, 2, 3, 4]
    assert run.finished
    for step in range(1, 5):
        assert played(run, step) == played(other, step)
        assert len(set(played(run, step))) == 16


def test_a_stopped_run_plays_again_what_it_had_played_ahead(options, tmp_path):
    whole = train({**options, "output_dir": str(tmp_path / "whole")}).output_dir
    with pytest.raises(TrainingStopped, match="after step 2 of 4"):
        train(options, callbacks=[Stops()])
    assert not any(thread.name == "rstar2-collect-ahead" for thread in threading.enumerate())
    resumed = train(options, resume=True, callbacks=[Stops()])
    check_whole(resumed.output_dir, whole)
    run = read_run(resumed.output_dir)
    assert [versions(run, step) for step in range(1, 5)] == [{0}, {0}, {2}, {2}], "the first step on is not stale"


class Signals(LetterEnv):
    """Sends a signal in a turn of the second rollout, which is played while the trainer trains or waits."""

    turns_played = 0

    def step(self, action):
        Signals.turns_played += 1
        if Signals.turns_played == 16 + 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
        return super().step(action)


def test_a_signal_while_episodes_are_played_ahead_loses_no_step(options, tmp_path):
    Signals.turns_played = 0
    with pytest.raises(TrainingStopped, match=r"after step [12] of 4"):
        train(options, env=Signals)
    resumed = train(options, env=Signals, resume=True)
    whole = train({**options, "output_dir": str(tmp_path / "whole")}, env=Signals).output_dir
    check_whole(resumed.output_dir, whole)


class Cools:
    """Lowers the temperature after the first step, and writes down at which each step trained."""

    def bind(self, run):
        self.run, self.trained = run, []

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        self.trained.append(self.run._trained[1])

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 1:
            self.run.temperature = 0.5


def test_rows_train_at_the_temperature_at_which_they_were_drawn(options):
    hook = Cools()
    result = train(options, callbacks=[hook], keep_tokens=True, handover_tolerance=0.1)
    # The second rollout began before the change, and the third after it.
    assert hook.trained == [1.0, 1.0, 0.5, 0.5]
    for line in read_run(result.output_dir).metrics():
        if "mismatch/logp_difference" in line and line["step"] == 1:
            assert line["mismatch/logp_difference"] < 1e-3


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"engine": "transformers", "engine_options": {}}, "engine='transformers' computes with the weights"),
        ({"engine": "vllm", "engine_options": {"sleep": True}}, "engine.sleep=true makes the engine"),
        ({"engine": "vllm", "engine_options": {}, "offload_state": True}, "optim.offload_state=true moves the optim"),
        ({"handover": "carry"}, "max_staleness=2 or more"),
        ({"handover": "carry", "max_staleness": 0}, "so no episode is unfinished"),
        ({"handover": "wait"}, "'drain', 'carry'"),
        ({"max_staleness": -1}, "max_staleness"),
    ],
)
def test_what_cannot_play_ahead_is_refused(options, changes, says):
    with pytest.raises(ConfigurationError, match=says):
        trainers.make("grpo_clip_higher", **{**options, **changes})


TWO = """
import json, os, signal, sys, threading
from letter_env import LetterEnv
from transformers import TrainerCallback
from rstar2_env import trainers

RANK = int(os.environ["RANK"])

class Stops(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        if state.global_step == 1 and RANK == 1:
            os.kill(os.getpid(), signal.SIGINT)

class TwoTurns(LetterEnv):
    def __init__(self, split="train"):
        super().__init__(turns=2)

for name, options in json.loads(sys.argv[1]).items():
    hooks = [Stops()] if name == "stopped" else []
    trainer = trainers.make("grpo_clip_higher", env=TwoTurns, **options, callbacks=hooks)
    try:
        trainer.train()
        how = "ended"
    except KeyboardInterrupt as stop:
        how = str(stop)
    trainer.close()
    norm = sum(float(weights.abs().sum()) for weights in trainer.trl.model.state_dict().values())
    left = [thread.name for thread in threading.enumerate() if "ahead" in thread.name]
    # In one piece: unbuffered, print writes several, and those of two processes would mix.
    sys.stdout.write("RESULT " + json.dumps([name, RANK, how, norm, left]) + "\\n")
    sys.stdout.flush()
"""


@pytest.mark.proof
def test_two_processes_play_ahead_and_agree(options, tmp_path):
    options = {**options, "max_episode_tokens": 64}
    del options["env"]
    cases = {
        "drained": {},
        "carried": {"max_staleness": 2, "handover": "carry"},
        "stopped": {},
    }
    given = {name: {**options, "output_dir": str(tmp_path / name), **changes} for name, changes in cases.items()}
    (tmp_path / "script.py").write_text(TWO)
    said = launch(tmp_path / "script.py", json.dumps(given))
    told = [json.loads(line.partition("RESULT ")[2]) for line in said.splitlines() if "RESULT " in line]
    for name in cases:
        (_, _, *one), (_, _, *other) = (found for found in told if found[0] == name)
        assert one == other, "the same end, the same weights"
        how, _, left = one
        assert left == []
        assert how == "ended" if name != "stopped" else "Stopped after step 2 of 4" in how
    run = read_run(tmp_path / "drained")
    assert [versions(run, step) for step in range(1, 5)] == [{0}, {0}, {1}, {2}]
    assert all({entry.episode.group for entry in run.episodes(step)} == {0, 1, 2, 3} for step in range(1, 5))
    run = read_run(tmp_path / "carried")
    for step in range(1, 5):
        entries = run.episodes(step)
        assert len(entries) == 16
        for entry in entries:
            first, second = (turn.version for turn in entry.episode.steps)
            assert step - 1 - 2 <= first <= second <= step - 1
    assert not read_run(tmp_path / "stopped").episodes(3), "what was played ahead is in no file"
