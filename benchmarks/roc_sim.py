"""What Resample-on-Correct does to tool errors, in the smallest policy that can make them.

    python benchmarks/roc_sim.py [--steps 300] [--seeds 3] [--right 0.5]

The policy is one number, the logit of the chance that a call fails. An episode makes four calls; whether its answer is
right is a coin toss that no call touches, so nothing in the reward speaks of errors. Plain GRPO then leaves the error
rate where it was; Resample-on-Correct lowers it, because the successes that it keeps are the clean ones. NumPy and the
package's own selectors and advantages; no model. With ``--right 1`` every answer is right: groups have no advantage
then, and only what compares the calls of right answers (``quality_ties``) still lowers the error rate.

What it does not show: anything about accuracy, or errors that do hinder an answer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.advantages.base import Advantage
from rstar2_env.trainers.advantages.group import GroupNorm
from rstar2_env.trainers.advantages.quality_ties import QualityTies as TiesByQuality
from rstar2_env.trainers.ranks import ONE
from rstar2_env.trainers.selectors.base import Selector, all_equal
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.quality_ties import QualityTies
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect, penalty, quotas

START, PASS_RATE, CALLS, PROMPTS, RATE = 0.15, 0.5, 4, 16, 0.65
"""Error rate at the start, chance of a right answer, calls of an episode, groups of a step, learning rate."""


@dataclass(frozen=True)
class SortedBothWays:
    """A mistake of the first released code: failures, too, are kept by the lowest penalty."""

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """See ``Selector``."""
        if all_equal(group):
            return []
        sides = [[i for i, e in enumerate(group) if e.correct is correct] for correct in (True, False)]
        kept = quotas(len(sides[0]), len(sides[1]), keep)
        order = [sorted(side, key=lambda i: penalty(group[i]))[:n] for side, n in zip(sides, kept, strict=True)]
        return sorted(order[0] + order[1])


@dataclass(frozen=True)
class Arm:
    """One way of training: how many episodes are played, how many train, which, on what reward and advantage."""

    name: str
    played: int
    kept: int
    selector: Selector
    error_cost: float = 0.0
    advantage: Advantage = field(default_factory=GroupNorm)


ARMS = [
    Arm("GRPO, 16", 16, 16, KeepAll()),
    Arm("GRPO, 32", 32, 32, KeepAll()),
    Arm("RoC, rank", 32, 16, ResampleOnCorrect(mode="rank")),
    Arm("RoC, sample", 32, 16, ResampleOnCorrect(mode="sample")),
    Arm("sorted negatives", 32, 16, SortedBothWays()),
    Arm("reward - 0.25 p_err", 16, 16, KeepAll(), error_cost=0.25),
    Arm("RoC, ties", 32, 16, QualityTies("(roc:mode=rank)"), advantage=TiesByQuality()),
]


def play(
    error_rate: float, count: int, rng: np.random.Generator, error_cost: float = 0.0, right_rate: float = PASS_RATE
) -> list[Episode]:
    """One group of episodes.

    Args:
        error_rate: How often a call of the policy fails.
        count: Episodes.
        rng: Source of the tosses.
        error_cost: What failed calls cost in the reward.
        right_rate: How often an answer is right.
    """
    failed = rng.random((count, CALLS)) < error_rate
    right = rng.random(count) < right_rate
    return [
        Episode(
            statuses=[ToolStatus.EXCEPTION if f else ToolStatus.OK for f in row],
            correct=bool(r),
            reward=float(r) - error_cost * float(row.mean()),
            answer_tags=1,
            turns=CALLS + 1,
        )
        for row, r in zip(failed, right, strict=True)
    ]


def errors(group: Group) -> list[int]:
    """How many calls of each episode failed."""
    return [sum(status.is_error for status in episode.statuses) for episode in group]


def simulate(
    arm: Arm,
    steps: int,
    seed: int,
    on_step: Callable[[int, float], None] | None = None,
    right_rate: float = PASS_RATE,
) -> float:
    """Train for so many steps; returns the error rate at the end.

    Args:
        arm: The way of training.
        steps: How many.
        seed: Seed of everything.
        on_step: Told of every step and the error rate before it.
        right_rate: How often an answer is right.
    """
    rng = np.random.default_rng(seed)
    logit = np.log(START / (1 - START))
    for step in range(steps):
        rate = 1 / (1 + np.exp(-logit))
        gradient, calls = 0.0, 0
        for _ in range(PROMPTS):
            group = play(rate, arm.played, rng, arm.error_cost, right_rate)
            kept = [group[i] for i in arm.selector(group, arm.kept, rng)]
            advantages = arm.advantage([kept], ONE)[0]
            # The score of a call that failed with that chance is 1 - rate, of one that did not -rate.
            gradient += sum(a * (e - CALLS * rate) for a, e in zip(advantages, errors(kept), strict=True))
            calls += CALLS * len(kept)
        logit += RATE * gradient / max(calls, 1)
        if on_step is not None:
            on_step(step, rate)
    return float(1 / (1 + np.exp(-logit)))


def one_batch(selector: Selector, groups: int = 400, seed: int = 0) -> tuple[float, float]:
    """Share of errors in the calls of the successes of fresh groups, before the selection and after it."""
    rng = np.random.default_rng(seed)
    before, after = [], []
    for _ in range(groups):
        group = play(START, 32, rng)
        before += errors([episode for episode in group if episode.correct])
        after += errors([group[i] for i in selector(group, 16, rng) if group[i].correct])
    return float(np.mean(before)) / CALLS, float(np.mean(after)) / CALLS


def main() -> None:
    """Simulate every arm and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--right", type=float, default=PASS_RATE, help="how often an answer is right")
    arguments = parser.parse_args()
    print(f"error rate of a call after {arguments.steps} steps from {START}, mean of {arguments.seeds} seeds")
    for arm in ARMS:
        begin = time.perf_counter()
        ends = [simulate(arm, arguments.steps, seed, right_rate=arguments.right) for seed in range(arguments.seeds)]
        print(
            f"{arm.name:20} {np.mean(ends):.4f}  ({np.min(ends):.4f} to {np.max(ends):.4f}, "
            f"{time.perf_counter() - begin:.1f} s)"
        )
    print("share of errors in the successes of one batch, before and after the selection")
    for arm in ARMS[2:4]:
        before, after = one_batch(arm.selector)
        print(f"{arm.name:20} {before:.3f} -> {after:.3f}")


if __name__ == "__main__":
    main()
