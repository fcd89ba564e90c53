"""Faults planted in real runs of the tiny model: the diagnosis names each, and not its nearest look-alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from letter_env import LetterEnv

from rstar2_env import trainers
from rstar2_env.core.row import Row
from rstar2_env.core.run_folder import read_run
from rstar2_env.diagnosis import Diagnosis, diagnose
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer

pytestmark = pytest.mark.train


class Pays(LetterEnv):
    """The same reward for every episode."""

    def __init__(self, split: str = "train", reward: float = 0.0) -> None:
        super().__init__(reward=reward)


class TwoTurns(LetterEnv):
    """Two turns, with a text of the environment between them."""

    def __init__(self, split: str = "train") -> None:
        super().__init__(turns=2)


@pytest.fixture
def diagnosed(letter_options: dict[str, Any]) -> Callable[..., Diagnosis]:
    """Train some steps, and diagnose the run."""

    def run(steps: int = 6, **changes: Any) -> Diagnosis:
        options = {**letter_options, "steps": steps, "save_every": 0, "selector": "all", "learning_rate": 3e-4}
        trainer = trainers.make("grpo", **{**options, **changes})
        try:
            return diagnose(trainer.train().output_dir)
        finally:
            trainer.close()

    return run


def test_a_run_of_the_tiny_model_records_what_the_checks_of_its_updates_need(diagnosed) -> None:
    found = diagnosed()
    for name in ("learning_rate_high", "learning_rate_low", "gradient_zero", "environment_trained", "engine_differs"):
        assert name in found.silent, (name, found.not_recorded)


@pytest.mark.parametrize(("rate", "named"), [(1.0, "learning_rate_high"), (1e-10, "learning_rate_low")])
def test_a_learning_rate_that_is_too_high_or_too_low_is_named(diagnosed, rate: float, named: str) -> None:
    found = next(one for one in diagnosed(learning_rate=rate) if one.check == named)
    assert found.since == 1
    assert found.until is None


@pytest.mark.parametrize(("factor", "named"), [(0.0, "gradient_zero"), (float("nan"), "gradient_nan")])
def test_a_gradient_of_zero_and_one_that_is_no_number_are_named(diagnosed, monkeypatch, factor, named) -> None:
    whole = Objective.loss
    monkeypatch.setattr(Objective, "loss", lambda self, *given: whole(self, *given) * factor)
    assert named in diagnosed().names


@pytest.mark.parametrize(("reward", "named"), [(0.0, "all_wrong"), (1.0, "all_right")])
def test_groups_without_a_difference_are_named_by_their_reason(diagnosed, reward: float, named: str) -> None:
    found = diagnosed(env=lambda **options: Pays(reward=reward, **options))
    assert found.names == [named]
    assert "gradient_zero" not in found.names


def test_tokens_of_the_environment_that_train_are_named(diagnosed, monkeypatch) -> None:
    whole = Row.of.__func__

    def all_trains(cls: type[Row], episode: Any, advantage: Any) -> Row:
        row = whole(cls, episode, advantage)
        row.mask = [1] * len(row.mask)
        return row

    monkeypatch.setattr(Row, "of", classmethod(all_trains))
    found = next(one for one in diagnosed(env=TwoTurns) if one.check == "environment_trained")
    assert 0 < found.figures["mask/outside"] < 1


def test_another_temperature_in_the_trainer_than_in_the_engine_is_named(diagnosed, monkeypatch) -> None:
    whole = CollectorTrainer.use_head
    monkeypatch.setattr(
        CollectorTrainer, "use_head", lambda self, temperature, *outputs: whole(self, 0.5 * temperature, *outputs)
    )
    assert "engine_differs" in diagnosed().names


def test_episodes_that_a_budget_cuts_are_named(diagnosed) -> None:
    assert "cut_by_tokens" in diagnosed(env=TwoTurns, max_episode_tokens=2, max_turn_tokens=None).names


def test_the_hook_notes_a_finding_in_the_run_when_it_appears(letter_options) -> None:
    options = {**letter_options, "steps": 5, "save_every": 0, "selector": "all", "learning_rate": 1.0}
    trainer = trainers.make("grpo", **options, hook=["diagnosis"])
    try:
        run = read_run(trainer.train().output_dir)
    finally:
        trainer.close()
    notes = [(note["step"], note["text"]) for note in run.notes if "learning_rate_high" in note["text"]]
    assert [step for step, _ in notes] == [3]
    assert notes[0][1].startswith("Finding (error): The learning rate is too high")
