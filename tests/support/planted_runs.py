"""Faults planted in real runs of the tiny model, by options, environments, engines and changes of the code.

A fault acts from the first step on, or from a resume on. The step at which it can be seen was written down before the
first measurement and uses no figure that a check reads: the first step at which the rule ``seen`` holds for the
episodes, plus ``visible`` steps less one; ``visible`` is 5 for a change that is missing or a trend, and 20 for one that
is missing for ever.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import planted_engines
import pytest
import torch
from letter_env import LetterEnv
from planted_engines import in_precision, misnamed_adapter, nothing, whole, with_engine
from torch_launcher import launch

from rstar2_env import trainers
from rstar2_env.diagnosis.record import EpisodeDigest
from rstar2_env.rollout.request import RolloutError
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.step.collector import Collector
from rstar2_env.trainers.step.group_play import GroupPlace

Episodes = Sequence[EpisodeDigest]
Patch = Callable[[pytest.MonkeyPatch, float], None]
RECIPES = ("grpo", "grpo_clip_higher", "dapo")
STEPS = 8
RESUMED = 4
"""Steps of a run before it resumes."""
PRECISIONS = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
"""Precisions of an engine, by strength from 1."""
LOSSES: Sequence[Callable[[Path], None]] = (
    lambda checkpoint: (checkpoint / "optimizer.pt").unlink(),
    lambda checkpoint: (checkpoint / "scheduler.pt").unlink(),
    lambda checkpoint: _empty(checkpoint / "optimizer.pt"),
)
"""What a checkpoint loses, by strength from 1: without the schedule, transformers reads no optimizer either."""


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


class PaysByProblem(LetterEnv):
    """A reward that depends on the problem alone."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Ask for a letter, and remember the number of the problem."""
        text, info = super().reset(seed=seed, options=options)
        self._paid = int(text[-1]) / 10
        return text, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay by the problem."""
        text, reward, ended, truncated, info = super().step(action)
        return text, self._paid, ended, truncated, {**info, "correct": bool(reward)}


class SlowEnv(TwoTurns):
    """An episode begins late in some processes.

    Args:
        seconds: How late.
        ranks: The processes.
        split: Ignored.
    """

    def __init__(self, seconds: float = 0.0, ranks: Sequence[int] = (), split: str = "train") -> None:
        super().__init__()
        self._late = seconds if int(os.environ["RANK"]) in ranks else 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Wait, and ask for a letter."""
        time.sleep(self._late)
        return super().reset(seed=seed, options=options)


class RejectsAll:
    """A selector that rejects every group."""

    def __call__(self, group: Any, keep: int, rng: Any) -> list[int]:
        """Choose nothing."""
        return []


def change_masks(change: Callable[[Any], None]) -> Patch:
    """Change the masks of all rows."""

    def patch(patched: pytest.MonkeyPatch, strength: float) -> None:
        whole = Collector._rows

        def rows(self: Collector, *given: Any) -> Any:
            found = whole(self, *given)
            for row in found:
                change(row)
            return found

        patched.setattr(Collector, "_rows", rows)

    return patch


def train_everything(row: Any) -> None:
    """Train the environment's tokens too."""
    row.mask = [1] * len(row.mask)


def scale_the_loss(times: float | None = None) -> Patch:
    """Multiply the loss, by the strength if no number is given."""

    def patch(patched: pytest.MonkeyPatch, strength: float) -> None:
        whole, by = Objective.loss, strength if times is None else times
        patched.setattr(Objective, "loss", lambda self, *given: whole(self, *given) * by)

    return patch


def another_temperature(patched: pytest.MonkeyPatch, strength: float) -> None:
    """Compute the trainer's probabilities at another temperature than the engine."""
    whole = CollectorTrainer.use_head
    patched.setattr(CollectorTrainer, "use_head", lambda self, at, *outputs: whole(self, strength * at, *outputs))


def same_seeds(patched: pytest.MonkeyPatch, strength: float) -> None:
    """Let each process draw the problems and the tokens of the first process."""
    make, size = Collector.__init__, int(os.environ["WORLD_SIZE"])

    def init(self: Collector, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        draw, each = self.sampler.draw, self._options.problems_per_step // size
        patched.setattr(self.sampler, "draw", lambda count: draw(count // size) * size)
        place = "rstar2_env.trainers.step.collector.GroupPlace"
        patched.setattr(place, lambda number, drawn: GroupPlace(number, (drawn[0], drawn[1] % each)))

    patched.setattr(Collector, "__init__", init)


def _empty(optimizer: Path) -> None:
    state = torch.load(optimizer, weights_only=True)
    torch.save({**state, "state": {}}, optimizer)


def chosen(from_one: Sequence[Any], strength: float) -> Any:
    """The variant of a strength, from 1."""
    return from_one[round(strength) - 1]


def resumed(episodes: Episodes) -> bool:
    """The step follows the resume."""
    return any(episode.step > RESUMED for episode in episodes)


def always(episodes: Episodes) -> bool:
    """Every step shows the fault."""
    return True


def equal_rewards(episodes: Episodes) -> bool:
    """All episodes of the step have the same reward."""
    return len({episode.reward for episode in episodes}) == 1


def equal_in_groups(episodes: Episodes) -> bool:
    """The episodes of each group have the same text."""
    return len({(one.group, one.text) for one in episodes}) == len({one.group for one in episodes})


def right_and_wrong(episodes: Episodes) -> bool:
    """The step has right and wrong episodes."""
    return len({episode.correct for episode in episodes}) == 2


def mostly_one_turn(episodes: Episodes) -> bool:
    """Half of the episodes lack the second turn, which this environment always asks for."""
    return sum(episode.turns < 2 for episode in episodes) > len(episodes) / 2


@dataclass(frozen=True)
class PlantedRun:
    """A fault of a real run.

    Attributes:
        check: The check that must name it.
        strengths: The weakest and the strongest fault; what they mean depends on the fault.
        options: Options that plant it, given the strength.
        patch: A change of the code that plants it, given the strength.
        seen: Whether the episodes of a step show it.
        visible: Number of such steps after which it can be seen.
        steps: Steps of the run.
        loses: What the checkpoint of step ``RESUMED`` loses before the run resumes from it, given the strength;
            ``None`` does not interrupt the run.
        processes: Number of processes of the run.
    """

    check: str
    strengths: tuple[float, float] = (1.0, 1.0)
    options: Callable[[float], Mapping[str, Any]] = lambda strength: {}
    patch: Patch = lambda patched, strength: None
    seen: Callable[[Episodes], bool] = always
    visible: int = 1
    steps: int = STEPS
    loses: Callable[[Path, float], None] | None = None
    processes: int = 1


def own_weights(rate: float, **more: Any) -> Mapping[str, Any]:
    """Options of a run whose engine has a copy of the weights, and is trusted to have the right ones."""
    return {"engine": planted_engines.NAME, "handover_tolerance": 100.0, "learning_rate": rate} | more


def late(*ranks: int) -> Callable[[float], Mapping[str, Any]]:
    """Options of a run in which episodes of some processes begin late."""
    return lambda seconds: {"env": SlowEnv, "env_options": {"seconds": seconds, "ranks": list(ranks)}}


def clips(bound: float, updates: int = 2) -> Callable[[float], Mapping[str, Any]]:
    """Options with bounds of the ratio, and several updates of a rollout."""
    return lambda strength: {
        "loss": [f"ppo_clip:low={min(1.0, bound)},high={bound}"],
        "updates_per_rollout": updates,
        "learning_rate": strength,
    }


RUNS: dict[str, PlantedRun] = {
    "the learning rate is too high": PlantedRun("learning_rate_high", (0.1, 1.0), lambda rate: {"learning_rate": rate}),
    "the learning rate is too low": PlantedRun(
        "learning_rate_low", (1e-9, 1e-11), lambda rate: {"learning_rate": rate}, visible=5
    ),
    "the gradient is zero": PlantedRun("gradient_zero", patch=scale_the_loss(0.0)),
    "the gradient is not a number": PlantedRun("gradient_nan", patch=scale_the_loss(float("nan"))),
    "the gradient is always clipped": PlantedRun(
        "gradient_clipped", (1e-4, 1e-7), lambda bound: {"max_grad_norm": bound}, visible=5
    ),
    "every episode is wrong": PlantedRun("all_wrong", options=lambda _: {"env": AlwaysWrong}, seen=equal_rewards),
    "every episode is right": PlantedRun("all_right", options=lambda _: {"env": AlwaysRight}, seen=equal_rewards),
    "a selector rejects every group": PlantedRun("all_rejected", options=lambda _: {"selector": RejectsAll()}),
    "groups of two": PlantedRun(
        "group_small", options=lambda _: {"group_size": 2, "problems_per_step": 12}, visible=5, seen=right_and_wrong
    ),
    "every episode is paid": PlantedRun("reward_constant", options=lambda _: {"env": PaysAll}, seen=right_and_wrong),
    "the problem is paid": PlantedRun(
        "reward_equal_within", options=lambda _: {"env": PaysByProblem}, seen=right_and_wrong
    ),
    "the engine has another temperature": PlantedRun("engine_differs", (0.6, 0.3), patch=another_temperature),
    "the engine has another top-p": PlantedRun("sampling_truncated", (0.95, 0.3), lambda top: {"top_p": top}),
    "no token is ever clipped": PlantedRun("clip_never", (1e-4, 1e-5), clips(10.0), visible=20, steps=24),
    "most tokens are clipped": PlantedRun("clip_always", (3e-3, 3e-2), clips(1e-7, 4), visible=5, steps=12),
    "tokens of the environment train": PlantedRun("environment_trained", patch=change_masks(train_everything)),
    "answers are cut by tokens": PlantedRun(
        "cut_by_tokens", (2.0, 2.0), lambda most: {"max_episode_tokens": round(most)}, seen=mostly_one_turn
    ),
    "the engine has another precision": PlantedRun(
        "engine_differs",
        (1.0, 3.0),
        lambda _: own_weights(3e-4, dtype="float32"),
        lambda patched, number: with_engine(in_precision(chosen(PRECISIONS, number)))(patched, number),
    ),
    "new weights never reach the engine": PlantedRun(
        "weights_stale", (2e-4, 1e-3), own_weights, with_engine(nothing), visible=5
    ),
    "new adapters never reach the engine": PlantedRun(
        "weights_stale",
        (5e-4, 1e-3),
        lambda rate: own_weights(rate, lora_rank=4),
        with_engine(misnamed_adapter, "adapter"),
        visible=5,
    ),
    "a resume loses the optimizer": PlantedRun(
        "optimizer_lost", (1.0, 3.0), seen=resumed, loses=lambda checkpoint, number: chosen(LOSSES, number)(checkpoint)
    ),
    "two processes have the same seeds": PlantedRun("same_seeds", patch=same_seeds, processes=2),
    "one process is slow": PlantedRun("process_waits", (1.0, 2.0), late(1), visible=5, processes=2),
}
"""The faults by name."""

LATER: dict[str, PlantedRun] = {
    "sampling is greedy": PlantedRun(
        "episodes_identical", (1e-3, 1e-5), lambda temperature: {"temperature": temperature}, seen=equal_in_groups
    ),
}
"""Faults whose checks were added after the sets of others were written; only ``tried`` and ``aside`` have them."""

LOOK_ALIKES: dict[str, PlantedRun] = {
    "an engine computes in the low precision of the run": PlantedRun(
        "engine_differs",
        options=lambda _: own_weights(3e-4, dtype="bfloat16"),
        patch=with_engine(in_precision(torch.bfloat16)),
    ),
    "new weights reach an engine": PlantedRun("weights_stale", (1e-3, 1e-3), own_weights, with_engine(whole)),
    "new adapters reach an engine": PlantedRun(
        "weights_stale",
        (1e-3, 1e-3),
        lambda rate: own_weights(rate, lora_rank=4),
        with_engine(planted_engines.adapter, "adapter"),
    ),
    "a run resumes": PlantedRun("optimizer_lost", loses=lambda checkpoint, strength: None),
    "two processes are slow": PlantedRun("process_waits", (1.0, 1.0), late(0, 1), processes=2),
}
"""Runs without a fault that look like one, by name; the check of each must stay silent."""
EVERY = {**RUNS, **LATER, **LOOK_ALIKES}
"""Faults and look-alikes by name."""


def train(
    model: Path, folder: Path, fault: PlantedRun | None, *, strength: float = 1.0, seed: int = 0, recipe: str = "grpo"
) -> Path:
    """Train the tiny model with a fault, or without one; returns the run's folder.

    Args:
        model: Folder of the tiny model.
        folder: The run's folder.
        fault: The fault, or a look-alike; ``None`` for a clean run.
        strength: Strength of the fault.
        seed: Seed of the run.
        recipe: The recipe.
    """
    more = {"strength": strength, "seed": seed, "recipe": recipe}
    if fault is None or fault.processes == 1:
        train_here(model, folder, fault, **more)
    else:
        name = next(name for name, one in EVERY.items() if one is fault)
        train_together((model, folder, name, more), processes=fault.processes)
    return folder


def train_together(*runs: tuple[Path, Path, str, Mapping[str, Any]], processes: int = 2) -> None:
    """Train several runs, one after the other, in processes that torchrun starts; see ``planted_process``."""
    script = Path(__file__).with_name("planted_process.py")
    launch(script, json.dumps(runs, default=str), processes=processes)


def train_here(model: Path, folder: Path, fault: PlantedRun | None, *, strength: float, seed: int, recipe: str) -> None:
    """Train in this process, as one of the processes of the run; see ``train``."""
    options: dict[str, Any] = {
        "model": str(model),
        "env": TwoTurns,
        "output_dir": str(folder),
        "steps": fault.steps if fault else STEPS,
        "problems_per_step": 6,
        "group_size": 4,
        "minibatches": 1,  # so that each step has episodes
        "tokens_per_device": 1024,
        "learning_rate": 3e-4,
        "weight_decay": 0.0,
        "max_episode_tokens": 64,
        "max_turn_tokens": 2,
        "save_every": 0,
        "selector": "all",
        "threads": 1,
        "seed": seed,
        "progress": False,
    }
    with pytest.MonkeyPatch.context() as patched:
        if fault is not None:
            options |= fault.options(strength)
            fault.patch(patched, strength)
            if fault.loses is not None:
                _train({**options, "steps": RESUMED, "save_every": RESUMED}, recipe)
                fault.loses(folder / f"checkpoint-{RESUMED}", strength)
                options |= {"resume": True}
        _train(options, recipe)


def _train(options: Mapping[str, Any], recipe: str) -> None:
    with (
        closing(trainers.make(recipe, **options)) as trainer,
        suppress(RolloutError),  # weights that are not numbers draw no tokens, which ends the run
    ):
        trainer.train()
