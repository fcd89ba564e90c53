"""The half ``blind`` of the planted runs: faults in runs of the tiny model, and runs without a fault.

Written without knowledge of the thresholds. When a fault can be seen follows from what was planted:

- An option or a mask that is wrong, a gradient that is 0 or not a number, and a wrong probability: in the first step
  that has it. Most tokens are clipped: in the third step that has it, without the first update of a rollout.
- A learning rate of at least the weights' deviation, .02, replaces the model in one update: in the step of the first
  update that has this rate.
- A change that is missing or a constant cause (a rate that is too low, a gradient that is always clipped, weights that
  do not arrive, a slow process): after 5 steps; one that is missing for ever: after 20.
- Rewards that do not tell right from wrong: in the first step that has right and wrong episodes.
- Groups that are too small: after 24 groups, half of which lack a signal.
- Answers that are cut: in the first step in which most episodes lack turns that the environment always asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from blind import Blind, clean_run, named, own, run_variants
from letter_env import AskedAgain
from opened2_runs import Graded, PaysOneSum, change_state
from opened_runs import (
    AT_ONCE,
    arrives,
    change_every,
    clipping,
    in_levels,
    intact,
    scale_the_loss_from,
    since,
    turns,
    unlike,
    without_file,
)
from peft import set_peft_model_state_dict
from planted_engines import adapter, in_precision, nothing, whole, with_engine
from planted_runs import EVERY, LOSSES, RESUMED, PaysByProblem, change_masks, late, own_weights, scale_the_loss

from rstar2_env.rollout.engines.checkpoint_weights import named_weights


class PaysLargeNumbers(PaysByProblem):
    """A reward of 1 for the problems with a number from 5 on, and of -1 for the others."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay by the problem."""
        text, paid, ended, truncated, info = super().step(action)
        return text, 1.0 if paid >= 0.5 else -1.0, ended, truncated, info


class WantsThreeRewards:
    """A selector that keeps the groups with three different rewards, which a reward of 0 or 1 never has."""

    def __call__(self, group: Any, keep: int, rng: Any) -> list[int]:
        """Choose the first episodes of such a group."""
        return list(range(keep)) if len({episode.reward for episode in group}) > 2 else []


def full_points(completions: Sequence[str]) -> list[float]:
    """A reward whose condition every answer meets."""
    return [1.0] * len(completions)


def train_before_turns(row: Any) -> None:
    """Train the last two tokens of the environment before each turn, as the header of the turn."""
    after = [*row.mask[1:], 0], [*row.mask[2:], 0, 0]
    row.mask = [max(three) for three in zip(row.mask, *after, strict=True)]


def train_every_second(row: Any) -> None:
    """Train every second token of the environment."""
    row.mask = [max(trained, at % 2) for at, trained in enumerate(row.mask)]


def without_the_head(model: Any, weights: Any) -> None:
    """Load neither the head nor the embeddings nor the last norm, as if their names were not known."""
    own = {name: one for name, one in named_weights(weights) if ".layers." in name}
    model.load_state_dict(own, strict=False)


def first_projections_alone(model: Any, weights: Any) -> None:
    """Load the adapter of the queries and values, and not that of the other projections."""
    set_peft_model_state_dict(model, {name: one for name, one in weights.tensors if ".q_" in name or ".v_" in name})


def from_zero(state: dict[Any, Any]) -> dict[Any, Any]:
    """A state that counts from 0, with moments of 0 for the second half of the parameters."""
    return {
        at: {name: one if name != "step" and 2 * at < len(state) else torch.zeros_like(one) for name, one in of.items()}
        for at, of in state.items()
    }


def unscheduled(checkpoint: Path, strength: float) -> None:
    """The file of the schedule was not copied, so that the optimizer is not read either."""
    LOSSES[1](checkpoint)


TALL, FLAT, DEEP = (
    {"group_size": 10, "problems_per_step": 3},
    {"group_size": 3, "problems_per_step": 12},
    {"group_size": 7, "problems_per_step": 4},
)
FIVE: dict[str, Any] = {"visible": 5, "steps": 11}


def graded(condition: str, turns: int = 1) -> dict[str, Any]:
    """An environment whose right answers begin with a text."""
    return dict(own({"env": Graded, "env_options": {"condition": condition, "turns": turns}}))


def from_step(first: int, by: float, steps: int = 9) -> dict[str, Any]:
    """A loss that is multiplied from a step on."""
    return {"patch": scale_the_loss_from(first, by), "seen": since(first), "steps": steps}


def engine(load: Any, takes: str = "weights", **more: Any) -> dict[str, Any]:
    """An engine that loads weights in its own way."""
    return {"patch": with_engine(load, takes), "steps": 12, **more}


def cut(length: int) -> dict[str, Any]:
    """Episodes that should have so many turns."""
    return dict(own(turns(length))) | {"seen": unlike(length)}


def slow(rank: int, seconds: float) -> dict[str, Any]:
    """Episodes of a process that begin late."""
    return dict(own(late(rank)(seconds))) | {"visible": 5}


def float32(rate: float) -> dict[str, Any]:
    """An engine with weights of its own, and a trainer in full precision."""
    return dict(own_weights(rate, dtype="float32"))


BLIND_RUNS = run_variants(
    {
        "the learning rate is too high": (
            ("gmpo", 31011, 0.03, TALL, AT_ONCE),
            ("maxrl", 31012, 0.1, {"lora_rank": 16}, AT_ONCE),
            ("reinforce_pp", 31013, 0.3, {"lr_scheduler": "linear"} | FLAT, AT_ONCE),
        ),
        "the learning rate is too low": (
            ("opo", 31021, 1e-8, TALL, FIVE),
            ("reinforce_pp", 31022, 4e-10, {"lora_rank": 2}, FIVE),
            ("dapo", 31023, 1e-4, {"warmup_steps": 200_000}, FIVE),
        ),
        "the gradient is zero": (
            ("gpg", 31031, 1.0, {}, from_step(3, 0.0)),
            ("luspo", 31032, 1.0, {"lora_rank": 16} | TALL, from_step(6, 0.0, 11)),
            ("cispo", 31033, 1.0, FLAT, {"patch": scale_the_loss(0.0)}),
        ),
        "the gradient is not a number": (
            ("rloo", 31041, 1.0, DEEP, from_step(7, float("nan"), 11)),
            ("grpo", 31042, 1.0, {"updates_per_rollout": 2} | TALL, from_step(5, float("nan"))),
            ("gspo", 31043, 1.0, {"lora_rank": 8}, from_step(3, float("inf"))),
        ),
        "the gradient is always clipped": (
            ("maxrl", 31051, 1e-4, {}, FIVE),
            ("sapo", 31052, 1e-5, {"lora_rank": 8}, FIVE),
            ("opo", 31053, 1.0, {"max_grad_norm": 0.5} | DEEP, {**own({}), **FIVE, "patch": scale_the_loss(3e4)}),
        ),
        "every episode is wrong": (
            ("luspo", 31061, 1.0, TALL, graded("0000")),
            ("maxrl", 31062, 1.0, {}, graded("zzzz", 3)),
            ("gmpo", 31063, 1.0, FLAT, own(turns(2, reward=0.0))),
        ),
        "every episode is right": (
            ("sapo", 31071, 1.0, DEEP, graded("", 2)),
            ("reinforce_pp", 31072, 1.0, {}, graded("", 4)),
            ("maxrl", 31073, 1.0, FLAT, own(turns(3, reward=1.0))),
        ),
        "a selector rejects every group": (
            ("opo", 31081, 1.0, {"group_size": 4}, own({"selector": "balanced_band:low=0.55,high=0.65"})),
            ("gmpo", 31082, 1.0, {"group_size": 8}, own({"selector": "minimum_group:least=9"})),
            ("sapo", 31083, 1.0, DEEP, own({"selector": WantsThreeRewards()})),
        ),
        "groups of two": (
            ("cispo", 31091, 1.0, {"problems_per_step": 4}, {"visible": 6, "steps": 10}),
            ("dapo", 31092, 1.0, {"problems_per_step": 14}, {"visible": 2}),
            ("gmpo", 31093, 1.0, {"problems_per_step": 9} | turns(2), {"visible": 3}),
        ),
        "every episode is paid": (
            ("luspo", 31101, 1.0, TALL, own({"env": PaysOneSum, "env_options": {"paid": -0.25}})),
            ("opo", 31102, 1.0, FLAT, own(turns(3, reward=None) | {"reward": [full_points]})),
            ("maxrl", 31103, 1.0, {}, own({"env": PaysOneSum, "env_options": {"paid": 3.0, "turns": 2}})),
        ),
        "the problem is paid": (
            ("opo", 31111, 1.0, {}, own({"env": PaysLargeNumbers})),
            ("sapo", 31112, 1.0, FLAT, own({"env": PaysLargeNumbers, "env_options": {"turns": 3}})),
            ("maxrl", 31113, 1.0, TALL, own({"env": PaysByProblem, "env_options": {"turns": 4}})),
        ),
        "the engine has another temperature": (
            ("opo", 31121, 0.8, DEEP, {}),
            ("gmpo", 31122, 0.6, {"lora_rank": 4}, {}),
            ("reinforce_pp", 31123, 1.7, {"temperature": 1.3}, {}),
        ),
        "the engine has another top-p": (
            ("luspo", 31131, 0.95, {}, {}),
            ("reinforce_pp", 31132, 0.8, {"temperature": 0.8} | DEEP, {}),
            ("sapo", 31133, 1.0, FLAT, own({"top_k": 30})),
        ),
        "no token is ever clipped": (
            ("lite_ppo", 31141, 3e-5, clipping(1.0, 15.0, 2), {"steps": 26}),
            ("grpo", 31142, 1e-6, clipping(0.3, 0.3, 3), {"steps": 26}),
            ("dapo", 31143, 5e-5, clipping(0.95, 50.0, 2), {"steps": 26}),
        ),
        "most tokens are clipped": (
            ("dapo", 31151, 2e-3, clipping(1e-7, 1e-7, 6), {"steps": 12, "visible": 4}),
            ("dr_grpo", 31152, 5e-3, clipping(1e-8, 1e-8, 8), {"steps": 12, "visible": 4}),
            ("lite_ppo", 31153, 1e-3, clipping(1e-6, 1e-6, 6) | TALL, {"steps": 12, "visible": 4}),
        ),
        "tokens of the environment train": (
            ("opo", 31161, 1.0, turns(3), {"patch": change_masks(train_before_turns)}),
            ("gmpo", 31162, 1.0, DEEP | turns(5), {"patch": change_masks(train_every_second)}),
            ("sapo", 31163, 1.0, {}, {"patch": change_masks(change_every(3, train_every_second))}),
        ),
        "answers are cut by tokens": (
            ("maxrl", 31171, 1.0, {"max_episode_tokens": 8} | FLAT, cut(3)),
            ("sapo", 31172, 1.0, {"max_episode_tokens": 12}, cut(5)),
            ("luspo", 31173, 1.0, {"max_episode_tokens": 14, "max_turn_tokens": 10} | TALL, cut(3)),
        ),
        "the engine has another precision": (
            ("cispo", 31181, 1.0, float32(2e-4), {"patch": with_engine(in_precision(torch.float16))}),
            ("rloo", 31182, 1.0, float32(1e-3) | DEEP, {"patch": with_engine(in_levels(15))}),
            ("gmpo", 31183, 1.0, float32(5e-4), {"patch": with_engine(in_levels(63))}),
        ),
        "new weights never reach the engine": (
            ("gmpo", 31191, 2e-3, {}, engine(nothing)),
            ("maxrl", 31192, 1e-3, DEEP, {"patch": arrives(7, whole), "seen": since(8), "steps": 18}),
            ("reinforce_pp", 31193, 1e-3, {}, engine(without_the_head)),
        ),
        "new adapters never reach the engine": (
            ("sapo", 31201, 3e-3, {"lora_rank": 2}, engine(nothing, "adapter")),
            ("maxrl", 31202, 2e-3, {"lora_rank": 16} | DEEP, engine(first_projections_alone, "adapter")),
            (
                "luspo",
                31203,
                1e-3,
                {"lora_rank": 4},
                {"patch": arrives(4, adapter, "adapter"), "seen": since(5)} | {"steps": 15},
            ),
        ),
        "a resume loses the optimizer": (
            ("sapo", 31211, 1.0, DEEP, {"loses": change_state(from_zero)}),
            ("maxrl", 31212, 1.0, {"lora_rank": 8}, {"loses": without_file}),
            ("reinforce_pp", 31213, 1.0, {}, {"loses": unscheduled}),
        ),
        "two processes have the same seeds": (
            ("maxrl", 31221, 1.0, {"problems_per_step": 6, "group_size": 5}, {}),
            ("sapo", 31222, 1.0, {"problems_per_step": 16, "group_size": 3}, {}),
            ("gmpo", 31223, 1.0, {"problems_per_step": 4, "group_size": 10}, {}),
        ),
        "one process is slow": (
            ("gmpo", 31231, 1.0, {}, slow(0, 1.0)),
            ("sapo", 31232, 1.8, {"problems_per_step": 4, "group_size": 6}, slow(1, 1.8)),
            ("reinforce_pp", 31233, 2.6, {"problems_per_step": 8, "group_size": 3}, slow(0, 2.6)),
        ),
    }
)
"""Three variants of each fault, by its name."""


CLEAN_RUNS: tuple[Blind, ...] = (
    clean_run("rloo", 31901, 16, {"temperature": 0.9} | TALL),
    clean_run("grpo", 31902, 10, {"temperature": 1.4} | DEEP),
    clean_run("opo", 31903, 6, FLAT),
    clean_run("gspo", 31904, 12, {"updates_per_rollout": 3, "learning_rate": 1e-4}),
    clean_run("dapo", 31905, 14, {"warmup_steps": 6, "learning_rate": 5e-4} | DEEP),
    clean_run("cispo", 31906, 12, {"lr_scheduler": "cosine", "learning_rate": 6e-4}),
    clean_run("gmpo", 31907, 10, {"lora_rank": 16, "learning_rate": 1e-3}),
    clean_run("sapo", 31908, 12, {"env": AskedAgain, "group_size": 6}),
    clean_run("reinforce_pp", 31909, 12, turns(5)),
    clean_run("maxrl", 31910, 20, {"eval": {"every": 10, "episodes": 24}} | turns(1)),
    clean_run("luspo", 31911, 10, {"max_turn_tokens": 6, "weight_decay": 0.1}),
    clean_run("lite_ppo", 31912, RESUMED + 9, {"lora_rank": 4}, loses=intact),
    clean_run("dr_grpo", 31913, 12, own_weights(5e-4) | DEEP, patch=with_engine(whole)),
    clean_run("grpo_clip_higher", 31914, 10, {"dtype": "bfloat16", "learning_rate": 1e-4}),
    clean_run("rloo", 31915, 10, {"problems_per_step": 12}, processes=2),
)
"""Runs without a fault: other temperatures and shapes, a short one, warm-up, schedules, adapters, a resume."""

EVERY |= named("blind", BLIND_RUNS, CLEAN_RUNS)
