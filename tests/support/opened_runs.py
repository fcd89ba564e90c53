"""The half ``opened`` of the planted runs: faults in runs of the tiny model, and runs without a fault.

Written without knowledge of the thresholds; checks were corrected after the first measurement. When a fault can be
seen follows from what was planted:

- An option or a mask that is wrong, a gradient that is 0 or not a number, and a wrong probability: in the first step.
- A learning rate of at least the weights' deviation, .02, replaces the model in one update: in the first or second
  step.
- A change that is missing or a constant cause (a rate that is too low, a gradient that is always clipped, weights that
  do not arrive, a slow process): after 5 steps; one that is missing for ever: after 20.
- Groups that are too small: after 24 groups, half of which lack a signal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from blind import Blind, clean_run, named, own, run_variants
from letter_env import AskedAgain, LetterEnv
from peft import set_peft_model_state_dict
from planted_engines import Load, in_precision, misnamed_adapter, nothing, whole, with_engine
from planted_runs import (
    EVERY,
    RESUMED,
    Episodes,
    PaysAll,
    PaysByProblem,
    RejectsAll,
    TwoTurns,
    change_masks,
    late,
    own_weights,
    scale_the_loss,
    train_everything,
)

from rstar2_env.rollout.engines.checkpoint_weights import named_weights
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.step.collector import Collector

LETTERS = {"env": LetterEnv}


def turns(number: int, **more: Any) -> Mapping[str, Any]:
    """An environment of so many turns."""
    return LETTERS | {"env_options": {"turns": number, **more}}


class PaysNobody(LetterEnv):
    """A reward of -1 for right and wrong episodes."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and take one from the reward."""
        text, reward, ended, truncated, info = super().step(action)
        return text, -1.0, ended, truncated, {**info, "correct": bool(reward)}


class PaysOddProblems(PaysByProblem):
    """A reward of 1 for the problems with an odd number, and of 0 for the others."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay by the problem."""
        text, paid, ended, truncated, info = super().step(action)
        return text, float(round(10 * paid) % 2), ended, truncated, info


def pays_the_same(completions: Sequence[str]) -> list[float]:
    """A reward that forgot to look at the answer."""
    return [0.3] * len(completions)


def no_advantages(groups: Sequence[Sequence[Any]], ranks: Any) -> list[list[float]]:
    """An advantage of 0 for every episode."""
    return [[0.0] * len(group) for group in groups]


def scale_the_loss_from(first: int, by: float) -> Callable[[pytest.MonkeyPatch, float], None]:
    """Multiply the loss from a step on."""

    def patch(patched: pytest.MonkeyPatch, strength: float) -> None:
        collect, loss, now = Collector.collect, Objective.loss, [0]

        def collected(self: Collector, step: int) -> Any:
            now[0] = step + 1
            return collect(self, step)

        patched.setattr(Collector, "collect", collected)
        patched.setattr(Objective, "loss", lambda self, *given: loss(self, *given) * (by if now[0] >= first else 1.0))

    return patch


def since(first: int) -> Callable[[Episodes], bool]:
    """The step is at least the first faulty one."""
    return lambda episodes: any(episode.step >= first for episode in episodes)


def train_one_more(row: Any) -> None:
    """Train the first token of the environment."""
    at = next((at for at, trained in enumerate(row.mask) if not trained), None)
    if at is not None:
        row.mask = [*row.mask[:at], 1, *row.mask[at + 1 :]]


def change_every(each: int, change: Callable[[Any], None]) -> Callable[[Any], None]:
    """Change the first of every so many rows."""
    number = count()

    def changed(row: Any) -> None:
        if next(number) % each == 0:
            change(row)

    return changed


def unlike(length: int) -> Callable[[Episodes], bool]:
    """Most episodes of the step lack turns that the environment always asks for."""
    return lambda episodes: sum(episode.turns < length for episode in episodes) > len(episodes) / 2


def in_levels(levels: int) -> Load:
    """Load all weights, rounded to so many values of each sign and 0 for each tensor."""

    def load(model: Any, weights: Any) -> None:
        found = {}
        for name, one in named_weights(weights):
            step = one.abs().max().clamp_min(1e-8) / levels
            found[name] = (one / step).round() * step
        model.load_state_dict(found)

    return load


def embeddings_alone(model: Any, weights: Any) -> None:
    """Load the embeddings, and none of the layers."""
    model.load_state_dict({name: one for name, one in named_weights(weights) if "embed" in name}, strict=False)


def whole_times(most: int, load: Load) -> Load:
    """Load what is sent so many times, and never again."""
    times = count()

    def loaded(model: Any, weights: Any) -> None:
        if next(times) < most:
            load(model, weights)

    return loaded


def arrives(most: int, load: Load, takes: str = "weights") -> Callable[[pytest.MonkeyPatch, float], None]:
    """An engine to which weights arrive so many times."""
    return lambda patched, strength: with_engine(whole_times(most, load), takes)(patched, strength)


def half_an_adapter(model: Any, weights: Any) -> None:
    """Load the adapter without its second factors, so that it stays without effect."""
    set_peft_model_state_dict(model, {name: one for name, one in weights.tensors if "lora_B" not in name})


def without_file(checkpoint: Path, strength: float) -> None:
    """The optimizer's file was not copied."""
    (checkpoint / "optimizer.pt").unlink()


def without_moments(checkpoint: Path, strength: float) -> None:
    """The optimizer's moments are 0, and it counts from 0."""
    file = checkpoint / "optimizer.pt"
    state = torch.load(file, weights_only=True)
    kept = {at: {name: torch.zeros_like(one) for name, one in own.items()} for at, own in state["state"].items()}
    torch.save({**state, "state": kept}, file)


def without_state(checkpoint: Path, strength: float) -> None:
    """The optimizer's state is empty."""
    file = checkpoint / "optimizer.pt"
    torch.save({**torch.load(file, weights_only=True), "state": {}}, file)


def clipping(low: float, high: float, updates: int) -> Mapping[str, Any]:
    """Bounds of the ratio, and updates of a rollout."""
    return {"loss": [f"ppo_clip:low={low},high={high}"], "updates_per_rollout": updates}


BIG, SMALL = {"group_size": 8, "problems_per_step": 4}, {"group_size": 5, "problems_per_step": 5}
AT_ONCE: Mapping[str, Any] = {"visible": 1}

OPENED_RUNS = run_variants(
    {
        "the learning rate is too high": (
            ("dr_grpo", 411, 0.02, BIG, {"visible": 2, "steps": 10}),
            ("gspo", 5309, 0.2, {}, AT_ONCE),
            ("rloo", 77, 2.0, SMALL, AT_ONCE),
        ),
        "the learning rate is too low": (
            ("cispo", 19, 2e-8, {}, {"visible": 5, "steps": 12}),
            ("grpo", 233, 1e-12, BIG, {"visible": 5}),
            ("gmpo", 7001, 3e-4, {"warmup_steps": 10**6}, {"visible": 5, "steps": 12}),
        ),
        "the gradient is zero": (
            ("gspo", 31, 0.0, {"lora_rank": 4}, AT_ONCE),
            ("dapo", 900, 0.0, {"advantage": no_advantages}, {"patch": lambda patched, strength: None}),
            ("rloo", 12, 1e-30, BIG, {"patch": scale_the_loss()}),
        ),
        "the gradient is not a number": (
            ("reinforce_pp", 88, 1.0, {}, {"patch": scale_the_loss(float("inf"))}),
            ("grpo", 4, 1.0, BIG, {"patch": scale_the_loss_from(5, float("nan")), "seen": since(5)}),
            ("cispo", 61, 1.0, {"lora_rank": 2}, {"patch": scale_the_loss_from(3, float("nan")), "seen": since(3)}),
        ),
        "the gradient is always clipped": (
            ("gmpo", 3, 1e-3, {}, {"visible": 5}),
            ("grpo", 555, 3e-5, BIG, {"visible": 5, "steps": 12}),
            ("dr_grpo", 14, 1e-9, SMALL, {"visible": 5}),
        ),
        "every episode is wrong": (
            ("rloo", 70, 1.0, BIG, own(turns(1, reward=0.0))),
            ("gspo", 71, 1.0, {}, own(turns(2, reward=-1.0))),
            ("grpo", 72, 1.0, SMALL, own(turns(3, reward=0.0))),
        ),
        "every episode is right": (
            ("cispo", 170, 1.0, BIG, own(turns(1, reward=1.0))),
            ("opo", 171, 1.0, {}, own(turns(2, reward=0.5))),
            ("grpo_clip_higher", 172, 1.0, SMALL, own(turns(3, reward=1.0))),
        ),
        "a selector rejects every group": (
            ("grpo", 21, 1.0, {}, own({"selector": "balanced_band:low=0.55,high=0.7"})),
            ("dr_grpo", 22, 1.0, {"group_size": 8}, own({"selector": "balanced_band:low=0.4,high=0.45"})),
            ("lite_ppo", 23, 1.0, SMALL, own({"selector": RejectsAll()})),
        ),
        "groups of two": (
            ("rloo", 41, 1.0, {"problems_per_step": 6}, {"visible": 4}),
            ("grpo", 42, 1.0, {"problems_per_step": 16}, {"visible": 2}),
            ("gspo", 43, 1.0, {"problems_per_step": 24} | turns(1), {"visible": 1}),
        ),
        "every episode is paid": (
            ("rloo", 91, 1.0, BIG, own({"env": PaysAll})),
            ("grpo", 92, 1.0, {}, own({"env": TwoTurns, "reward": [pays_the_same]})),
            ("dr_grpo", 93, 1.0, SMALL, own({"env": PaysNobody})),
        ),
        "the problem is paid": (
            ("gmpo", 101, 1.0, BIG, {}),
            ("cispo", 102, 1.0, {}, own({"env": PaysOddProblems})),
            ("reinforce_pp", 103, 1.0, SMALL, {}),
        ),
        "the engine has another temperature": (
            ("cispo", 201, 0.85, {}, {}),
            ("grpo", 202, 1.3, BIG, {}),
            ("dr_grpo", 203, 2.5, {"temperature": 0.9}, {}),
        ),
        "the engine has another top-p": (
            ("gspo", 211, 0.9, {}, {}),
            ("rloo", 212, 0.6, BIG, {}),
            ("grpo", 213, 1.0, {}, own({"top_k": 12})),
        ),
        "no token is ever clipped": (
            ("grpo_clip_higher", 301, 2e-5, clipping(1.0, 20.0, 3), {"steps": 26}),
            ("dr_grpo", 302, 5e-5, clipping(1.0, 100.0, 2), {"steps": 26}),
            ("lite_ppo", 303, 1e-5, clipping(1.0, 3.0, 4), {"steps": 26}),
        ),
        "most tokens are clipped": (
            ("grpo", 311, 1e-3, clipping(1e-8, 1e-8, 4), {"steps": 12}),
            ("dr_grpo", 312, 1e-2, clipping(1e-7, 1e-7, 6), {"steps": 12}),
            ("grpo_clip_higher", 313, 3e-3, clipping(1e-6, 1e-6, 4), {"steps": 12}),
        ),
        "tokens of the environment train": (
            ("rloo", 401, 1.0, turns(3), {}),
            ("gspo", 402, 1.0, BIG, {"patch": change_masks(change_every(4, train_everything))}),
            ("grpo", 403, 1.0, {}, {"patch": change_masks(train_one_more)}),
        ),
        "answers are cut by tokens": (
            ("rloo", 501, 1.0, {"max_episode_tokens": 3}, own({"env": TwoTurns}) | {"seen": unlike(2)}),
            (
                "grpo",
                502,
                1.0,
                {"max_episode_tokens": 8, "max_turn_tokens": 8},
                own(turns(2)) | {"seen": unlike(2)},
            ),
            (
                "cispo",
                503,
                1.0,
                {"max_episode_tokens": 4, "max_turn_tokens": 4},
                own(turns(3)) | {"seen": unlike(3)},
            ),
        ),
        "the engine has another precision": (
            ("dr_grpo", 601, 1.0, own_weights(1e-4, dtype="float32"), {"patch": with_engine(in_levels(7))}),
            (
                "gspo",
                602,
                1.0,
                own_weights(1e-3, dtype="float32"),
                {"patch": with_engine(in_precision(torch.bfloat16))},
            ),
            (
                "rloo",
                603,
                1.0,
                own_weights(3e-4, dtype="float32") | BIG,
                {"patch": with_engine(in_precision(torch.float8_e5m2))},
            ),
        ),
        "new weights never reach the engine": (
            ("dr_grpo", 701, 3e-4, BIG, {"patch": with_engine(nothing), "steps": 12}),
            ("gspo", 702, 1e-3, {}, {"patch": with_engine(embeddings_alone), "steps": 12}),
            ("grpo", 703, 1e-3, {}, {"patch": arrives(3, whole), "seen": since(4), "steps": 14}),
        ),
        "new adapters never reach the engine": (
            ("rloo", 711, 1e-3, {"lora_rank": 2}, {"patch": with_engine(misnamed_adapter, "adapter"), "steps": 12}),
            ("grpo", 712, 2e-3, {"lora_rank": 8}, {"patch": with_engine(nothing, "adapter"), "steps": 12}),
            ("dr_grpo", 713, 1e-3, BIG, {"patch": with_engine(half_an_adapter, "adapter"), "steps": 12}),
        ),
        "a resume loses the optimizer": (
            ("rloo", 721, 1.0, {}, {"loses": without_file}),
            ("dr_grpo", 722, 1.0, BIG, {"loses": without_moments}),
            ("gspo", 723, 1.0, {"lora_rank": 4}, {"loses": without_state}),
        ),
        "two processes have the same seeds": (
            ("rloo", 731, 1.0, {"problems_per_step": 4}, {}),
            ("grpo", 732, 1.0, {"problems_per_step": 8}, {}),
            ("dr_grpo", 733, 1.0, {"problems_per_step": 10, "group_size": 3}, {}),
        ),
        "one process is slow": (
            ("dr_grpo", 741, 0.8, {}, own(late(1)(0.8)) | {"visible": 5}),
            ("rloo", 742, 1.5, {}, own(late(0)(1.5)) | {"visible": 5}),
            ("grpo", 743, 3.0, {}, own(late(1)(3.0)) | {"visible": 5}),
        ),
    }
)
"""Three variants of each fault, by its name."""


def intact(checkpoint: Path, strength: float) -> None:
    assert (checkpoint / "optimizer.pt").exists()


CLEAN_OPENED_RUNS: tuple[Blind, ...] = (
    clean_run("grpo", 8001, 12, BIG),
    clean_run("dr_grpo", 8002, 12, turns(1)),
    clean_run("gspo", 8003),
    clean_run("cispo", 8004, 12, {"updates_per_rollout": 2}),
    clean_run("rloo", 8005, 16, SMALL),
    clean_run("reinforce_pp", 8006),
    clean_run("gmpo", 8007, 10, {"env": AskedAgain}),
    clean_run("lite_ppo", 8008, 10, {"lora_rank": 4, "learning_rate": 1e-3}),
    clean_run("opo", 8009, 10, {"temperature": 0.8}),
    clean_run("sapo", 8010, 12, {"warmup_steps": 4}),
    clean_run("maxrl", 8011, 10, turns(3)),
    clean_run("grpo", 8012, 12, {"lr_scheduler": "cosine", "eval": {"every": 4, "episodes": 16}}),
    clean_run("dapo", 8013, RESUMED + 6, loses=intact),
    clean_run("grpo_clip_higher", 8014, 10, own_weights(3e-4), patch=with_engine(whole)),
    clean_run("luspo", 8015, 10, {"dtype": "bfloat16", "group_size": 6}),
)
"""Runs without a fault."""

EVERY |= named("opened", OPENED_RUNS, CLEAN_OPENED_RUNS)
