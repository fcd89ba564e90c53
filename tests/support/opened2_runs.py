"""The half ``opened2`` of the planted runs: faults in runs of the tiny model, and runs without a fault.

Written without knowledge of the thresholds; checks were corrected after the first measurement. When a fault can be
seen follows from what was planted:

- An option or a mask that is wrong, a gradient that is 0 or not a number, and a wrong probability: in the first step
  that has it.
- A learning rate of at least the weights' deviation, .02, replaces the model in one update: in the step of the first
  update that has this rate.
- A change that is missing or a constant cause (a rate that is too low, a gradient that is always clipped, weights that
  do not arrive, a slow process): after 5 steps; one that is missing for ever: after 20.
- Rewards that do not tell right from wrong: in the first step that has right and wrong episodes.
- Groups that are too small: after 24 groups, half of which lack a signal.
- Answers that are cut: in the first step in which most episodes lack turns that the environment always asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from blind import Blind, clean_run, named, own, run_variants
from letter_env import AskedAgain, LetterEnv
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
from planted_runs import (
    EVERY,
    RESUMED,
    PaysByProblem,
    change_masks,
    late,
    own_weights,
    scale_the_loss,
    train_everything,
)

from rstar2_env.rollout.engines.checkpoint_weights import named_weights


class Graded(LetterEnv):
    """The verdict is that of a condition, and the reward is 1 for right and 0 for wrong episodes.

    Args:
        condition: Text with which a right answer begins; the empty text makes every answer right.
        turns: Turns of an episode.
        split: Ignored.
    """

    def __init__(self, condition: str = "", turns: int = 1, split: str = "train") -> None:
        super().__init__(turns=turns)
        self._condition = condition

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with the text."""
        text, _, ended, truncated, info = super().step(action)
        right = action.startswith(self._condition)
        return text, float(right), ended, truncated, {**info, "correct": right}


class PaysOneSum(LetterEnv):
    """The same reward for right and wrong episodes.

    Args:
        paid: The reward.
        turns: Turns of an episode.
        split: Ignored.
    """

    def __init__(self, paid: float = 1.0, turns: int = 1, split: str = "train") -> None:
        super().__init__(turns=turns)
        self._paid = paid

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay the sum."""
        text, reward, ended, truncated, info = super().step(action)
        return text, self._paid, ended, truncated, {**info, "correct": bool(reward)}


class PaysInPercent(PaysByProblem):
    """A reward from -50 to 40 that depends on the problem alone."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay by the problem."""
        text, paid, ended, truncated, info = super().step(action)
        return text, 100 * paid - 50, ended, truncated, info


def no_points(completions: Sequence[str]) -> list[float]:
    """A reward whose condition no answer meets."""
    return [0.0] * len(completions)


def tiny_advantages(groups: Sequence[Sequence[Any]], ranks: Any) -> list[list[float]]:
    """Advantages that were divided by far too large a number."""
    return [[1e-25 * (at % 2 * 2 - 1) for at in range(len(group))] for group in groups]


def train_one_before(row: Any) -> None:
    """Train the last token before each turn of the policy, as a mask does that begins one too early."""
    row.mask = [max(pair) for pair in zip(row.mask, [*row.mask[1:], 0], strict=True)]


def layers_alone(model: Any, weights: Any) -> None:
    """Load the layers, and neither the embeddings nor the head."""
    own = {name: one for name, one in named_weights(weights) if "embed" not in name and "lm_head" not in name}
    model.load_state_dict(own, strict=False)


def without_first_factors(model: Any, weights: Any) -> None:
    """Load the adapter without its first factors, which the engine drew itself."""
    set_peft_model_state_dict(model, {name: one for name, one in weights.tensors if "lora_A" not in name})


def change_state(change: Callable[[dict[Any, Any]], dict[Any, Any]]) -> Callable[[Path, float], None]:
    """Change the optimizer's state of each parameter in a checkpoint."""

    def lose(checkpoint: Path, strength: float) -> None:
        file = checkpoint / "optimizer.pt"
        state = torch.load(file, weights_only=True)
        torch.save({**state, "state": change(state["state"])}, file)

    return lose


def half_of(state: dict[Any, Any]) -> dict[Any, Any]:
    """The state of every second parameter."""
    return {at: one for at, one in state.items() if at % 2}


def counts_alone(state: dict[Any, Any]) -> dict[Any, Any]:
    """A state with moments of 0, which still counts its updates."""
    return {
        at: {name: one if name == "step" else torch.zeros_like(one) for name, one in of_one.items()}
        for at, of_one in state.items()
    }


def without_files(checkpoint: Path, strength: float) -> None:
    """Neither the optimizer's file nor that of the schedule was copied."""
    without_file(checkpoint, strength)
    (checkpoint / "scheduler.pt").unlink()


def unchanged(patched: pytest.MonkeyPatch, strength: float) -> None:
    """No change of the code."""


WIDE, MANY = {"group_size": 6, "problems_per_step": 5}, {"group_size": 4, "problems_per_step": 10}

OPENED2_RUNS = run_variants(
    {
        "the learning rate is too high": (
            ("opo", 11011, 0.05, WIDE, AT_ONCE),
            ("cispo", 11012, 0.5, {"lora_rank": 4}, AT_ONCE),
            ("grpo", 11013, 0.4, {"warmup_steps": 4} | MANY, {"visible": 2}),
        ),
        "the learning rate is too low": (
            ("rloo", 11021, 5e-9, {}, {"visible": 5, "steps": 12}),
            ("sapo", 11022, 1e-10, WIDE, {"visible": 5}),
            ("luspo", 11023, 2e-9, {"lora_rank": 8}, {"visible": 5, "steps": 12}),
        ),
        "the gradient is zero": (
            ("opo", 11031, 1.0, {}, {"patch": scale_the_loss_from(4, 0.0), "seen": since(4), "steps": 10}),
            ("gmpo", 11032, 1.0, {"lora_rank": 8}, {"patch": scale_the_loss(0.0)}),
            ("grpo", 11033, 1.0, {"advantage": tiny_advantages} | WIDE, {"patch": unchanged}),
        ),
        "the gradient is not a number": (
            (
                "opo",
                11041,
                1.0,
                {},
                {"patch": scale_the_loss_from(6, float("nan")), "seen": since(6), "steps": 10},
            ),
            (
                "dr_grpo",
                11042,
                1.0,
                {"lora_rank": 4},
                {"patch": scale_the_loss_from(4, float("inf")), "seen": since(4)},
            ),
            ("sapo", 11043, 1.0, MANY, {"patch": scale_the_loss_from(2, -float("inf")), "seen": since(2)}),
        ),
        "the gradient is always clipped": (
            (
                "rloo",
                11051,
                1.0,
                {"max_grad_norm": 1.0},
                own({}) | {"patch": scale_the_loss(1e5), "visible": 5, "steps": 10},
            ),
            ("cispo", 11052, 1e-6, {"lora_rank": 4}, {"visible": 5, "steps": 10}),
            ("gspo", 11053, 3e-6, {"updates_per_rollout": 2} | WIDE, {"visible": 5}),
        ),
        "every episode is wrong": (
            ("opo", 11061, 1.0, WIDE, own({"env": Graded, "env_options": {"condition": "QQ"}})),
            ("cispo", 11062, 1.0, {}, own({"env": Graded, "env_options": {"condition": "42", "turns": 2}})),
            ("dr_grpo", 11063, 1.0, MANY, own(turns(4, reward=0.0))),
        ),
        "every episode is right": (
            ("rloo", 11071, 1.0, WIDE, own({"env": Graded})),
            ("gspo", 11072, 1.0, {}, own({"env": Graded, "env_options": {"turns": 3}})),
            ("dr_grpo", 11073, 1.0, {"group_size": 12, "problems_per_step": 2}, own(turns(1, reward=1.0))),
        ),
        "a selector rejects every group": (
            ("rloo", 11081, 1.0, {"group_size": 6}, own({"selector": "balanced_band:low=1.0,high=1.0"})),
            (
                "gspo",
                11082,
                1.0,
                {},
                own({"selector": "deviation:beta=50.0,begin=2,filter_from=3"}) | {"seen": since(3), "steps": 10},
            ),
            ("cispo", 11083, 1.0, MANY, own({"selector": "minimum_group:least=16"})),
        ),
        "groups of two": (
            ("opo", 11091, 1.0, {"problems_per_step": 8}, {"visible": 3}),
            ("dr_grpo", 11092, 1.0, {"problems_per_step": 10} | turns(3), {"visible": 3}),
            ("sapo", 11093, 1.0, {"problems_per_step": 24}, {"visible": 1}),
        ),
        "every episode is paid": (
            ("opo", 11101, 1.0, WIDE, own({"env": PaysOneSum})),
            ("gspo", 11102, 1.0, MANY, own(turns(2, reward=None) | {"reward": [no_points]})),
            ("cispo", 11103, 1.0, {}, own({"env": PaysOneSum, "env_options": {"paid": 0.1, "turns": 3}})),
        ),
        "the problem is paid": (
            ("rloo", 11111, 1.0, WIDE, own({"env": PaysByProblem, "env_options": {"turns": 2}})),
            ("dr_grpo", 11112, 1.0, MANY, own({"env": PaysInPercent})),
            ("gspo", 11113, 1.0, {"group_size": 8, "problems_per_step": 3}, {}),
        ),
        "the engine has another temperature": (
            ("rloo", 11121, 0.7, {}, {}),
            ("gspo", 11122, 1.5, WIDE, {}),
            ("opo", 11123, 2.0, {"temperature": 0.7}, {}),
        ),
        "the engine has another top-p": (
            ("opo", 11131, 0.97, {}, {}),
            ("dr_grpo", 11132, 1.0, WIDE, own({"top_k": 50})),
            ("cispo", 11133, 0.7, {"temperature": 1.2}, {}),
        ),
        "no token is ever clipped": (
            ("grpo", 11141, 1e-4, clipping(0.9, 5.0, 2), {"steps": 26}),
            ("dapo", 11142, 2e-5, clipping(1.0, 30.0, 4), {"steps": 26}),
            ("dr_grpo", 11143, 2e-6, clipping(0.2, 0.2, 2), {"steps": 26}),
        ),
        "most tokens are clipped": (
            ("dr_grpo", 11151, 3e-4, clipping(1e-8, 1e-8, 6), {"steps": 12}),
            ("lite_ppo", 11152, 2e-3, clipping(1e-7, 1e-7, 5), {"steps": 12}),
            ("grpo", 11153, 1e-3, clipping(1e-6, 1e-6, 8), {"steps": 12}),
        ),
        "tokens of the environment train": (
            ("dr_grpo", 11161, 1.0, turns(4), {}),
            ("cispo", 11162, 1.0, WIDE, {"patch": change_masks(change_every(2, train_everything))}),
            ("rloo", 11163, 1.0, turns(3), {"patch": change_masks(train_one_before)}),
        ),
        "answers are cut by tokens": (
            ("gspo", 11171, 1.0, {"max_episode_tokens": 6}, own(turns(3)) | {"seen": unlike(3)}),
            ("dr_grpo", 11172, 1.0, {"max_episode_tokens": 10} | MANY, own(turns(4)) | {"seen": unlike(4)}),
            (
                "opo",
                11173,
                1.0,
                {"max_episode_tokens": 16, "max_turn_tokens": 12},
                own(turns(4)) | {"seen": unlike(4)},
            ),
        ),
        "the engine has another precision": (
            ("gspo", 11181, 1.0, own_weights(5e-4, dtype="float32"), {"patch": with_engine(in_levels(127))}),
            (
                "opo",
                11182,
                1.0,
                own_weights(3e-4, dtype="float32") | WIDE,
                {"patch": with_engine(in_precision(torch.float8_e4m3fn))},
            ),
            ("dr_grpo", 11183, 1.0, own_weights(1e-4, dtype="float32"), {"patch": with_engine(in_levels(1))}),
        ),
        "new weights never reach the engine": (
            ("rloo", 11191, 5e-4, WIDE, {"patch": with_engine(nothing), "steps": 12}),
            (
                "opo",
                11192,
                1e-3,
                {},
                {
                    "patch": arrives(5, whole),
                    "seen": since(6),
                    "steps": 16,
                },
            ),
            ("cispo", 11193, 1e-3, MANY, {"patch": with_engine(layers_alone), "steps": 12}),
        ),
        "new adapters never reach the engine": (
            ("cispo", 11201, 5e-4, {"lora_rank": 16}, {"patch": with_engine(nothing, "adapter"), "steps": 12}),
            (
                "opo",
                11202,
                2e-3,
                {"lora_rank": 4},
                {"patch": with_engine(without_first_factors, "adapter"), "steps": 12},
            ),
            (
                "gspo",
                11203,
                1e-3,
                {"lora_rank": 8},
                {
                    "patch": arrives(3, adapter, "adapter"),
                    "seen": since(4),
                    "steps": 14,
                },
            ),
        ),
        "a resume loses the optimizer": (
            ("opo", 11211, 1.0, MANY, {"loses": without_files}),
            ("cispo", 11212, 1.0, {}, {"loses": change_state(half_of)}),
            ("grpo", 11213, 1.0, WIDE, {"loses": change_state(counts_alone)}),
        ),
        "two processes have the same seeds": (
            ("gspo", 11221, 1.0, {"problems_per_step": 4, "group_size": 6}, {}),
            ("opo", 11222, 1.0, {"problems_per_step": 12}, {}),
            ("cispo", 11223, 1.0, {"problems_per_step": 6, "group_size": 8}, {}),
        ),
        "one process is slow": (
            ("rloo", 11231, 1.2, {}, own(late(0)(1.2)) | {"visible": 5}),
            ("opo", 11232, 2.2, {"problems_per_step": 4}, own(late(1)(2.2)) | {"visible": 5}),
            ("gspo", 11233, 0.9, {"group_size": 8, "problems_per_step": 4}, own(late(1)(0.9)) | {"visible": 5}),
        ),
    }
)
"""Three variants of each fault, by its name."""


CLEAN_OPENED2_RUNS: tuple[Blind, ...] = (
    clean_run("grpo", 11901, 14, {"temperature": 1.2}),
    clean_run("dr_grpo", 11902, 12, {"group_size": 12, "problems_per_step": 3}),
    clean_run("rloo", 11903, 12, turns(4)),
    clean_run("gspo", 11904, 10, {"updates_per_rollout": 2} | WIDE),
    clean_run("cispo", 11905, 10, {"lora_rank": 8, "learning_rate": 5e-4}),
    clean_run("opo", 11906, 12, {"max_grad_norm": 1.0, "weight_decay": 0.01}),
    clean_run("sapo", 11907, 10, {"env": AskedAgain, "max_turn_tokens": 4}),
    clean_run("reinforce_pp", 11908, 10, MANY),
    clean_run("dapo", 11909, 12, {"lr_scheduler": "linear", "learning_rate": 1e-4}),
    clean_run("grpo", 11910, 10, {"dtype": "bfloat16", "temperature": 0.9}),
    clean_run("gmpo", 11911, 12, turns(1) | {"eval": {"every": 3, "episodes": 16}}),
    clean_run("rloo", 11912, 10, own_weights(3e-4, lora_rank=4), patch=with_engine(adapter, "adapter")),
    clean_run("grpo", 11913, RESUMED + 8, WIDE, loses=intact),
    clean_run("maxrl", 11914, 10, {"learning_rate": 1e-4, "warmup_steps": 3}),
    clean_run("dr_grpo", 11915, 10, {"problems_per_step": 8}, processes=2),
)
"""Runs without a fault."""

EVERY |= named("opened2", OPENED2_RUNS, CLEAN_OPENED2_RUNS)
