"""Runs without a fault, written after the halves of the measurement, as honest users' runs differ from each other.

Their author had read no threshold of a check. The runs vary the recipe, sizes, temperatures, learning rates,
precisions, updates of a rollout, evaluations, and environments. The folders vary problems, lengths, costs, and figures
that drift or scatter within what is usual.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import torch
from blind import Blind, clean_folder, clean_run, named
from blind_folders import lengths
from letter_env import AskedAgain, LetterEnv
from opened2_folders import ENTROPY, KL, MEMORY, MISMATCH, ROLLOUT, WAITING
from opened_folders import figure, injects, lagging, noisy, several
from opened_runs import intact, turns
from planted_engines import in_precision, with_engine
from planted_folders import call_status, of_a_share, of_each, unavailable, wrappers
from planted_runs import EVERY, RESUMED, own_weights

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus


class WinsOrLoses(LetterEnv):
    """The reward is 1 for a right turn and -1 for a wrong one."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay for it or charge for it."""
        text, reward, ended, truncated, info = super().step(action)
        return text, 2 * reward - 1, ended, truncated, {**info, "correct": bool(reward)}


class PartlyRight(LetterEnv):
    """The reward is 1 for a lower-case letter, which is right, and 0.3 for an upper-case one, which is not."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Report whether the turn begins with a lower-case letter, and pay in part for another letter."""
        text, reward, ended, truncated, info = super().step(action)
        return text, reward or 0.3 * action[:1].isupper(), ended, truncated, {**info, "correct": bool(reward)}


FLOOR: Mapping[str, Any] = {
    "lr_scheduler": "cosine_with_min_lr",
    "trl_options": {"lr_scheduler_kwargs": {"min_lr_rate": 0.1}},
}
"""A learning rate that falls to a tenth."""


LATER_CLEAN_RUNS: tuple[Blind, ...] = (
    clean_run("gpg", 41901, 12, {"temperature": 1.1, "group_size": 5, "eval": {"every": 2, "episodes": 24}}),
    clean_run(
        "reinforce",
        41902,
        14,
        {"env": WinsOrLoses, "group_size": 6, "lr_scheduler": "inverse_sqrt", "warmup_steps": 3},
    ),
    clean_run("grpo", 41903, 3, {"group_size": 16, "problems_per_step": 2, "max_turn_tokens": 3}),
    clean_run(
        "vespo",
        41904,
        20,
        {"minibatches": 2, "problems_per_step": 8, "learning_rate": 5e-4, "eval": {"every": 10, "episodes": 32}},
    ),
    clean_run(
        "m2po",
        41905,
        20,
        {
            "updates_per_rollout": 2,
            "minibatches": 2,
            "problems_per_step": 8,
            "group_size": 5,
            "learning_rate": 1e-4,
        },
    ),
    clean_run(
        "topr",
        41906,
        12,
        {"temperature": 0.7, "group_size": 8, "problems_per_step": 4, "weight_decay": 0.01, "dtype": "bfloat16"},
    ),
    clean_run(
        "kl_cov",
        41907,
        16,
        {"selector": "all:reject_equal=true,equal=correct", "refill": 2, "minibatches": 2, "learning_rate": 2e-4},
    ),
    clean_run("polaris", 41908, 14, {"selector": "all:reject_equal=true", "problems_per_step": 10, "group_size": 5}),
    clean_run(
        "gvpo",
        41909,
        12,
        {"lora_rank": 8, "lora_alpha": 8.0, "learning_rate": 1e-3, "warmup_steps": 2, "env": LetterEnv},
    ),
    clean_run("otb", 41910, 10, {"max_episode_tokens": 128, "group_size": 6} | turns(4)),
    clean_run("grpo_roc", 41911, 12, {"selector": "roc", "oversample": 2, "max_grad_norm": 0.0, **FLOOR}),
    clean_run(
        "clip_cov",
        41912,
        RESUMED + 8,
        {"warmup_steps": 2, "learning_rate": 4e-4, "eval": {"every": 4, "episodes": 24}},
        loses=intact,
    ),
    clean_run(
        "lite_ppo",
        41913,
        10,
        {"env": AskedAgain, "group_size": 8, "problems_per_step": 4, "eval": {"every": 5, "episodes": 16}},
        processes=2,
    ),
    clean_run(
        "reinforce_pp",
        41914,
        12,
        own_weights(2e-4, dtype="bfloat16", group_size=6),
        patch=with_engine(in_precision(torch.bfloat16)),
    ),
    clean_run(
        "grpo_passk",
        41915,
        12,
        {
            "env": PartlyRight,
            "advantage": "pass_at_k:k=2",
            "group_size": 7,
            "problems_per_step": 5,
            "learning_rate": 5e-5,
            "trl_options": {"adam_beta2": 0.95},
        },
    ),
)
"""Real runs without a fault."""


def settles(age: int, much: float) -> float:
    """Entropy that falls slowly, and less and less."""
    return 0.24 + 0.36 * math.exp(-age / 25)


def behind(age: int, much: float) -> Mapping[str, float]:
    """Weights that lag by up to two updates, which is the bound of the run."""
    return {"policy/lag": min(2.0, 1.3 * noisy(0.35, age, "lag"))}


def wanders(age: int) -> float:
    """A length that wanders around the first one."""
    return 1 + 0.22 * math.sin(age / 4) + 0.12 * math.sin(age / 1.7)


def after_evaluations(age: int, much: float) -> float:
    """The time of a rollout: every fifth step begins after an evaluation, with an empty cache."""
    return 1.4 if age % 5 == 1 else 1.0


def in_evaluations(age: int, much: float) -> float:
    """Memory that is larger in the steps that end with an evaluation."""
    return 2.4 + 0.5 * (age % 5 == 0)


def to_a_tenth(age: int, much: float) -> Mapping[str, float]:
    """A learning rate that falls to a tenth in 32 steps, with changes of the weights in proportion."""
    share = 0.1 + 0.45 * (1 + math.cos(math.pi * min(age, 32) / 32))
    return {"learning_rate": 1e-6 * share, "weights/change": 2e-5 * share * noisy(0.2, age, "weights")}


def rarely_fails(episode: Episode, draw: Random) -> None:
    """A program that takes too long in one episode of 25, and a sandbox that fails one of 150."""
    chance = draw.random()
    if chance < 0.04:
        call_status(ToolStatus.TIMEOUT)(episode, draw)
    elif chance > 0.9933:
        unavailable(episode, draw)


def pays_fewer_calls(episode: Episode, draw: Random, strength: float) -> None:
    """Pay a right answer, and a little less for each call after the first."""
    episode.reward = float(bool(episode.correct)) * (1 - 0.1 * max(0, episode.turns - 2))
    episode.rewards = {"return": episode.reward}


LATER_CLEAN_FOLDERS: tuple[Blind, ...] = (
    clean_folder("gpg", 42901, 5, made={"eval_every": 0}),
    clean_folder(
        "vespo", 42902, 70, figures=figure(ENTROPY, settles, 0.08), made={"eval_every": 14, "checkpoint_every": 10}
    ),
    clean_folder(
        "m2po",
        42903,
        32,
        options=lagging(2),
        figures=several(behind, figure(MISMATCH, lambda age, much: 3e-3, 0.3)),
    ),
    clean_folder(
        "kl_cov",
        42904,
        30,
        figures=figure(ENTROPY, lambda age, much: 0.3 + 0.004 * age, 0.1),
        made={"slope": 0.5, "problems": 320, "problems_per_step": 6, "size": 8, "refill": 3},
    ),
    clean_folder("clip_cov", 42905, 28, made={"slope": 3.4, "problems": 48, "size": 6, "eval_every": 4}),
    clean_folder(
        "fipo",
        42906,
        36,
        **{**lengths(1, wanders), "made": {"problems_per_step": 7, "problems": 280, "eval_every": 12}},
    ),
    clean_folder(
        "gvpo",
        42907,
        44,
        figures=several(
            figure(KL, lambda age, much: 0.004 + 0.005 * math.sqrt(age), 0.2),
            figure(ENTROPY, lambda age, much: 0.45 - 0.004 * age, 0.06),
        ),
        made={"size": 5},
    ),
    clean_folder(
        "dro",
        42908,
        30,
        figures=several(
            figure("*grad_norm", lambda age, much: 1.0, 0.5),
            figure("*" + ENTROPY, lambda age, much: 1.3, 0.2),
            figure("*" + MISMATCH, lambda age, much: 1.0, 0.6),
            figure("*" + KL, lambda age, much: 1.0, 0.5),
            figure(ROLLOUT, lambda age, much: 1.0, 0.25),
        ),
    ),
    clean_folder(
        "glm5",
        42909,
        35,
        figures=several(figure(ROLLOUT, after_evaluations, 0.1), figure(MEMORY, in_evaluations, 0.01)),
        made={"eval_every": 5, "size": 6},
    ),
    clean_folder("topr", 42910, 30, plays=of_a_share(rarely_fails), made={"slips": (0.08, 0.04)}),
    clean_folder(
        "dppo",
        42911,
        24,
        processes=4,
        figures=figure(WAITING, lambda age, much: 0.12, 0.4),
        made={"problems_per_step": 12, "problems": 360},
    ),
    clean_folder(
        "polaris",
        42912,
        30,
        figures=figure(ENTROPY, lambda age, much: 0.35 + 0.15 * min(1.0, age / 30), 0.08),
        made={"eval_every": 2, "problems": 240},
    ),
    clean_folder("mopps", 42913, 34, 0.1, options=wrappers, plays=of_each(injects), made={"problems": 100}),
    clean_folder("reinforce", 42914, 30, check="optimizer_lost", since=17, processes=2, made={"end": "", "size": 6}),
    clean_folder(
        "grpo_roc_ties",
        42915,
        32,
        options=lambda much: {"optim": dict(FLOOR)},
        figures=to_a_tenth,
        plays=of_each(pays_fewer_calls),
        made={"slips": (0.4, 0.12)},
    ),
)
"""Recorded folders without a fault: short and long ones, few and hard problems, figures that drift or scatter, lags
within the bound of the run, costs of evaluations, rare failures, several processes, a resume."""

EVERY |= named("later", {}, LATER_CLEAN_RUNS)
