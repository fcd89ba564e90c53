"""Faults planted in real runs of the tiny model: the diagnosis names each, and none in a clean run.

Fixed before the runs: a fault acts from the first step on, and can be seen at the first step at which the rule of its
plant holds for the recorded episodes. These rules do not use the figures that the checks read. A fault must be named
when ``last`` steps, counted from that step, are complete: 3, or 5 for checks that look at 5 steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from letter_env import LetterEnv

from rstar2_env import trainers
from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import read_run
from rstar2_env.diagnosis import diagnose
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.step.collector import Collector

pytestmark = pytest.mark.train


class TwoTurns(LetterEnv):
    """Two turns, with a text of the environment between them."""

    def __init__(self, split: str = "train") -> None:
        super().__init__(turns=2)


class AlwaysWrong(LetterEnv):
    """A reward of 0 for every episode."""

    def __init__(self, split: str = "train") -> None:
        super().__init__(reward=0.0)


class AlwaysRight(LetterEnv):
    """A reward of 1 for every episode."""

    def __init__(self, split: str = "train") -> None:
        super().__init__(reward=1.0)


class PaysAll(LetterEnv):
    """The same reward for right and wrong episodes."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay one half."""
        text, reward, ended, truncated, info = super().step(action)
        return text, 0.5, ended, truncated, {**info, "correct": bool(reward)}


def mask_everything(patch: pytest.MonkeyPatch) -> None:
    """Train the environment's tokens too."""
    whole = Collector._rows

    def rows(self: Collector, *given: Any) -> Any:
        found = whole(self, *given)
        for row in found:
            row.mask = [1] * len(row.mask)
        return found

    patch.setattr(Collector, "_rows", rows)


def lose_the_gradient(patch: pytest.MonkeyPatch) -> None:
    """Multiply the loss by 0."""
    whole = Objective.loss
    patch.setattr(Objective, "loss", lambda self, *given: whole(self, *given) * 0.0)


def halve_the_temperature(patch: pytest.MonkeyPatch) -> None:
    """Compute the trainer's probabilities at half of the engine's temperature."""
    whole = CollectorTrainer.use_head
    patch.setattr(CollectorTrainer, "use_head", lambda self, at, *outputs: whole(self, 0.5 * at, *outputs))


def always(episodes: Sequence[Episode]) -> bool:
    return True


def equal_rewards(episodes: Sequence[Episode]) -> bool:
    return len({episode.reward for episode in episodes}) == 1


def right_and_wrong(episodes: Sequence[Episode]) -> bool:
    return len({episode.correct for episode in episodes}) == 2


def mostly_one_turn(episodes: Sequence[Episode]) -> bool:
    """Half of the episodes lack the second turn, which this environment always asks for."""
    return sum(episode.turns < 2 for episode in episodes) > len(episodes) / 2


@dataclass(frozen=True)
class Plant:
    """A run with faults.

    Attributes:
        checks: The checks that must name them.
        options: Options that plant them.
        patches: Changes of the code that plant them.
        seen: Whether the fault can be seen in the episodes of a step.
        last: Number of steps that show it until it is named.
        silent: Checks that may mistake it for their own fault.
    """

    checks: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    patches: tuple[Callable[[pytest.MonkeyPatch], None], ...] = ()
    seen: Callable[[Sequence[Episode]], bool] = always
    last: int = 3
    silent: tuple[str, ...] = ()


SHORT = {
    "learning rate too high, environment trained": Plant(
        ("learning_rate_high", "environment_trained"),
        {"learning_rate": 1.0},
        (mask_everything,),
        silent=("gradient_zero", "learning_rate_low"),
    ),
    "no gradient, other temperature": Plant(
        ("gradient_zero", "engine_differs"),
        patches=(lose_the_gradient, halve_the_temperature),
        silent=("all_wrong", "all_right", "learning_rate_high", "environment_trained"),
    ),
    "every episode wrong": Plant(
        ("all_wrong",), {"env": AlwaysWrong}, seen=equal_rewards, silent=("gradient_zero", "all_right")
    ),
}
LONG = {
    "every episode right": Plant(
        ("all_right",), {"env": AlwaysRight}, seen=equal_rewards, silent=("gradient_zero", "all_wrong")
    ),
    "learning rate too low": Plant(
        ("learning_rate_low",), {"learning_rate": 1e-10}, last=5, silent=("gradient_zero", "learning_rate_high")
    ),
    "reward for all": Plant(
        ("reward_constant",), {"env": PaysAll}, seen=right_and_wrong, silent=("all_wrong", "all_right")
    ),
    "budget of tokens": Plant(("cut_by_tokens",), {"max_episode_tokens": 2}, seen=mostly_one_turn),
    "bound of the gradient": Plant(("gradient_clipped",), {"max_grad_norm": 1e-6}, last=5, silent=("gradient_zero",)),
}
CLEAN = Plant((), last=5)
EVERY = sorted({check for plant in (SHORT | LONG).values() for check in plant.checks})


@pytest.fixture
def train(letter_options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[Plant, int], Path]:
    """Train with planted faults, as many steps as they need; returns the run's folder."""

    def run(plant: Plant, seed: int) -> Path:
        options = {
            "steps": plant.last + (1 if plant.seen is always else 3),
            "env": TwoTurns,
            "max_episode_tokens": 64,
            "save_every": 0,
            "selector": "all",
            "learning_rate": 3e-4,
            "seed": seed,
            "output_dir": f"{letter_options['output_dir']}-{seed}",
        }
        with monkeypatch.context() as patched:
            for patch in plant.patches:
                patch(patched)
            trainer = trainers.make("grpo", **{**letter_options, **options, **plant.options})
            try:
                return Path(trainer.train().output_dir)
            finally:
                trainer.close()

    return run


def check_named(plant: Plant, folder: Path) -> list[str]:
    """Check that the faults are named in time and that no other fault is; return what else was named."""
    run = read_run(folder)
    steps = [step for step in run.steps if step and plant.seen([entry.episode for entry in run.episodes(step)])]
    assert len(steps) >= plant.last, f"the fault shows at the steps {steps} only"
    found = diagnose(folder, step=steps[plant.last - 1])
    assert set(plant.checks) <= set(found.names), found
    whole = diagnose(folder)
    assert not set(plant.silent) & set(whole.names), whole
    assert not set(plant.silent) & set(whole.not_recorded), whole
    return sorted(set(whole.names) - set(plant.checks))


def check_clean(folder: Path) -> list[str]:
    """Check that every check of a planted fault looked and named none; return what else was named."""
    found = diagnose(folder)
    assert set(EVERY) <= set(found.silent), found
    return found.names


def test_a_clean_run_is_looked_at_by_every_check_and_has_none_of_the_faults(train) -> None:
    check_clean(train(CLEAN, 0))


@pytest.mark.parametrize("name", SHORT)
def test_a_planted_fault_is_named_and_its_look_alike_is_not(train, name: str) -> None:
    folder = train(SHORT[name], 0)
    check_named(SHORT[name], folder)
    if "learning_rate_high" in SHORT[name].checks:
        notes = [(note["step"], note["text"]) for note in read_run(folder).notes]
        assert [step for step, text in notes if "learning_rate_high" in text] == [3]
        assert [step for step, text in notes if "environment_trained" in text] == [1]


@pytest.mark.proof
@pytest.mark.parametrize("name", [*SHORT, *LONG])
def test_a_planted_fault_is_named_with_every_seed(train, record_property, name: str) -> None:
    plant = (SHORT | LONG)[name]
    for seed in (1, 2, 3):
        record_property(f"seed {seed}, also named", ", ".join(check_named(plant, train(plant, seed))) or "none")


@pytest.mark.proof
def test_clean_runs_have_none_of_the_faults(train, record_property) -> None:
    for seed in range(1, 9):
        record_property(f"seed {seed}, named", ", ".join(check_clean(train(CLEAN, seed))) or "none")
