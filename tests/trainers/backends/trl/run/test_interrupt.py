"""Ctrl-C and SIGTERM in a run: nothing of it is lost, and it goes on where it was."""

import json
import os
import signal
import time
from types import SimpleNamespace

import pytest
from letter_env import LetterEnv
from places import SUPPORT
from torch_launcher import end, ranks
from transformers import AutoModelForCausalLM, TrainerCallback

from rstar2_env import trainers
from rstar2_env.core.errors import ServiceError
from rstar2_env.core.run_folder import read_run
from rstar2_env.rollout import RolloutError
from rstar2_env.trainers.backends.trl.run.interrupt import Stopping
from rstar2_env.trainers.record.resume import TrainingStopped

pytestmark = pytest.mark.train

PLAYED = 4 * 4
"""Episodes, of one turn, in each step of these runs."""


class Signals(LetterEnv):
    """Sends a signal to this process in the turn of a number, of all that are played; or its service fails from it on.

    Attributes:
        fails: Number of the first turn in which the service does not answer; -1 for none.
    """

    turns_played = 0
    at = number = fails = -1

    def step(self, action):
        Signals.turns_played += 1
        if 0 <= Signals.fails <= Signals.turns_played:
            raise ServiceError("the service is down", cause="lost")
        if Signals.turns_played == Signals.at:
            os.kill(os.getpid(), Signals.number)
            time.sleep(0.3)  # the turn goes on while the signal is handled
        return super().step(action)


@pytest.fixture(autouse=True)
def handlers():
    """Every test leaves the handlers of signals as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def train(options, *, at=-1, number=-1, fails=-1, callbacks=(), **changes):
    Signals.turns_played, Signals.at, Signals.number, Signals.fails = 0, at, number, fails
    trainer = trainers.make(
        "grpo_clip_higher", **{**options, "env": Signals, "steps": 4, **changes}, callbacks=list(callbacks)
    )
    try:
        return trainer.train()
    finally:
        trainer.close()


def weights(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def goes_on(options, tmp_path, **changes):
    """A stopped run ends where an unbroken one does, with one line of metrics for each step and no lost episodes."""
    resumed = train(options, resume=True, **changes)
    whole = train({**options, "output_dir": str(tmp_path / "whole")}, **changes)
    expected, found = weights(whole.model_dir), weights(resumed.model_dir)
    distance = max((found[name] - value).abs().max().item() for name, value in expected.items())
    assert distance < 1e-4, distance
    for folder in (whole.output_dir, resumed.output_dir):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        assert [line["step"] for line in steps] == [1, 2, 3, 4]
        assert any(line["grad_norm"] > 0 for line in steps[2:]), "the steps after the stop move the weights"
    names = [sorted(path.name for path in (run.output_dir / "episodes").iterdir()) for run in (whole, resumed)]
    assert names[0] == names[1]


def test_a_rollout_that_fails_ends_the_run_with_a_checkpoint_and_a_line_that_says_how_to_resume(
    letter_options, tmp_path
):
    with pytest.raises(RolloutError) as failed:
        train(letter_options, fails=2 * PLAYED + 1, save_every=100)
    folder = tmp_path / "run"
    assert any("Stopped after step 2 of 4: checkpoint-2 is in" in note for note in failed.value.__notes__)
    assert [path.name for path in folder.glob("checkpoint-*")] == ["checkpoint-2"]
    goes_on(letter_options, tmp_path, save_every=100)


def test_a_rollout_that_fails_before_the_first_step_leaves_no_checkpoint(letter_options, tmp_path):
    with pytest.raises(RolloutError):
        train(letter_options, fails=1)
    assert not list((tmp_path / "run").glob("checkpoint-*"))


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, TrainingStopped), (signal.SIGTERM, SystemExit)])
def test_a_signal_in_a_rollout_abandons_it_and_keeps_the_steps_before(letter_options, tmp_path, capfd, number, raised):
    with pytest.raises(raised) as caught:
        train(letter_options, at=PLAYED + 3, number=number)
    if raised is SystemExit:
        assert caught.value.code == 128 + signal.SIGTERM
    folder = tmp_path / "run"
    assert [path.name for path in folder.glob("checkpoint-*")] == ["checkpoint-1"]
    assert not (folder / "final").exists()
    assert not list((folder / "episodes").glob("train-000002*")), "what is abandoned counts for nothing"
    said = capfd.readouterr().err
    assert f"{signal.Signals(number).name}: abandoning the rollout in progress" in said
    assert "Stopped after step 1 of 4: checkpoint-1 is in" in said
    assert read_run(folder).events[-1]["event"] == "interrupted"
    goes_on(letter_options, tmp_path)


def test_a_signal_in_the_first_rollout_leaves_a_run_to_go_on_with(letter_options, tmp_path):
    with pytest.raises(TrainingStopped, match="after step 0 of 4"):
        train(letter_options, at=3, number=signal.SIGINT)
    goes_on(letter_options, tmp_path)


def test_a_run_of_adapters_with_a_reference_goes_on_too(letter_options, tmp_path):
    options = {**letter_options, "learning_rate": 3e-2}
    changes = {"lora_rank": 2, "loss": ["ppo_clip", "kl:coef=0.1"]}
    with pytest.raises(TrainingStopped, match="after step 2 of 4"):
        train(options, at=2 * PLAYED + 3, number=signal.SIGINT, **changes)
    goes_on(options, tmp_path, **changes)


def test_a_signal_in_an_evaluation_keeps_the_step_that_it_follows(letter_options, tmp_path):
    evaluation = {"eval": {"every": 2, "episodes": 6, "env_options": {}}}
    with pytest.raises(TrainingStopped, match="after step 2 of 4"):
        train(letter_options, at=6 + 2 * PLAYED + 3, number=signal.SIGINT, **evaluation)
    resumed = train(letter_options, resume=True, **evaluation)
    assert resumed.history[-1]["step"] == 4


class InTheStep(TrainerCallback):
    """Sends signals just before the optimizer's second step."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        if state.global_step == 1:
            for number in self.numbers:
                os.kill(os.getpid(), number)
                time.sleep(0.05)


def test_a_signal_in_an_optimizer_step_lets_it_end(letter_options, tmp_path, capfd):
    with pytest.raises(TrainingStopped, match=r"after step 2 of 4.*checkpoint-2"):
        train(letter_options, callbacks=[InTheStep(signal.SIGINT)])
    assert "SIGINT: finishing the step in progress" in capfd.readouterr().err
    assert Signals.turns_played == 2 * PLAYED
    goes_on(letter_options, tmp_path, callbacks=[InTheStep()])


def test_the_second_signal_ends_the_run_at_once(letter_options, tmp_path):
    with pytest.raises(KeyboardInterrupt) as caught:
        train(letter_options, callbacks=[InTheStep(signal.SIGINT, signal.SIGINT)], save_every=100)
    assert not isinstance(caught.value, TrainingStopped)
    assert not list((tmp_path / "run").glob("checkpoint-*"))


def test_a_signal_in_the_last_step_ends_a_run_that_is_complete(letter_options, tmp_path):
    with pytest.raises(TrainingStopped, match="it is complete"):
        train(letter_options, callbacks=[InTheStep(signal.SIGINT)], steps=2)
    assert weights(tmp_path / "run" / "final")


class StopsThenSignals(TrainerCallback):
    """Ends the run after its second step, as a hook does, and sends a signal while the checkpoint is written."""

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = control.should_save = state.global_step == 2

    def on_save(self, args, state, control, **kwargs):
        if control.should_training_stop:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)


def test_a_signal_after_a_hook_ended_the_run_does_not_finish_it_without_its_last_evaluation(letter_options, tmp_path):
    evaluation = {"eval": {"every": 3, "episodes": 6, "env_options": {}}}
    with pytest.raises(TrainingStopped, match="after step 2 of 4"):
        train(letter_options, callbacks=[StopsThenSignals()], **evaluation)
    assert read_run(tmp_path / "run").events[-1]["event"] == "interrupted"


def test_a_launcher_that_repeats_a_signal_does_not_end_processes_at_once(tmp_path):
    stopping = Stopping(tmp_path, SimpleNamespace(rank=1, size=2))
    with stopping.listening():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
    assert stopping.number == signal.SIGINT


TWO = """
import itertools, json, os, signal, sys
from letter_env import LetterEnv
from transformers import TrainerCallback
from rstar2_env import trainers

RANK = int(os.environ["RANK"])
turns = itertools.count(1)

class Told(LetterEnv):
    def step(self, action):
        if next(turns) == 12 and RANK == 1 and int(sys.argv[2]):
            os.kill(os.getpid(), int(sys.argv[2]))
        return super().step(action)

class ToldAtTheEnd(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = control.should_save = state.global_step == 1

    def on_save(self, args, state, control, **kwargs):
        if RANK == 1:
            os.kill(os.getpid(), signal.SIGTERM)

callbacks = [ToldAtTheEnd()] if sys.argv[3:] else []
trainer = trainers.make("grpo_clip_higher", env=Told, callbacks=callbacks, **json.loads(sys.argv[1]))
try:
    trainer.train()
finally:
    trainer.close()
"""


def on_two_processes(options, number=0, *more):
    """Run on two processes, of which the second gets a signal in a turn, or with ``more`` at the end.

    Returns:
        Their exit codes and what they said.
    """
    words = ["-c", TWO, json.dumps(options), str(int(number)), *more]
    started = ranks(words, 2, {**os.environ, "PYTHONPATH": str(SUPPORT)})
    try:
        said = [process.communicate(timeout=800)[1] for process in started]
        return [process.returncode for process in started], said
    finally:
        end(started)


@pytest.mark.slow
def test_two_processes_stop_after_the_same_step_when_one_is_told(letter_options, tmp_path):
    options = {**letter_options, "steps": 4, "threads": 1, "process_timeout_s": 60}
    del options["env"]
    codes, said = on_two_processes(options, signal.SIGTERM)
    assert codes == [143, 143], said
    # The signal came in the second rollout, of 8 turns in each process.
    assert "Stopped after step 2 of 4" in said[0]
    assert "Stopped after" not in said[1]
    assert (tmp_path / "run" / "checkpoint-2").exists()
    codes, said = on_two_processes({**options, "resume": True})
    assert codes == [0, 0], said
    steps = [line["step"] for line in read_run(tmp_path / "run").metrics()]
    assert steps == [1, 2, 3, 4]


@pytest.mark.proof
def test_two_processes_make_the_last_evaluation_together_if_one_is_told_after_a_hook_ended_the_run(
    letter_options, tmp_path
):
    evaluation = {"every": 3, "episodes": 4, "env_options": {}}
    options = {**letter_options, "steps": 4, "threads": 1, "process_timeout_s": 60, "eval": evaluation}
    del options["env"]
    codes, said = on_two_processes(options, 0, "end")
    assert codes == [0, 143], said
    run = read_run(tmp_path / "run")
    assert [one.step for one in run.evaluations] == [0, 1]
    assert run.finished
