"""Simulate the treatment of a step's last groups, and its effect on the training data.

    python benchmarks/long_tail.py [--steps 400] [--seeds 3]

A step trains on 32 groups of 16 episodes. A problem has a difficulty between 0 and 1, drawn evenly: an episode of it is
right with one minus that chance, and log-normal with sigma 0.5 around 1,000 tokens, three times that for the hardest,
1.5 times for a wrong answer. It has four turns of equal length. All episodes of a step begin together and are written
at the same speed, so a step takes as long as the longest episode that it waits for.

``wait`` begins 32 groups and waits for all. ``drop`` begins more, and drops those that have not ended when 32 have.
``carry`` lets the next step continue them: whole turns are kept, an unfinished turn is lost, and a group is carried
over at most as often as the collector allows.

What it does not show: engines that are full (where more groups cost time), tools, and what learning makes of the bias.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np

from rstar2_env.trainers.step.step_group import MOST_STEPS

GROUPS, EPISODES, TURNS = 32, 16, 4
HARD = 0.75
"""Difficulty from which on a problem counts as hard: a quarter of them are."""


@dataclass
class Played:
    """One group.

    Attributes:
        difficulty: Difficulty of its problem.
        right: Whether the answer of each episode is right.
        tokens: Number of tokens of each episode at its end.
        done: Number of tokens of each episode in finished turns so far.
        steps: Number of steps that carried it over.
        older: Number of tokens that were generated before the step in which it is trained on.
    """

    difficulty: float
    right: np.ndarray
    tokens: np.ndarray
    done: np.ndarray
    steps: int = 0
    older: float = 0.0

    @property
    def left(self) -> float:
        """Tokens that its longest episode still has to write."""
        return float((self.tokens - self.done).max())


@dataclass
class Tally:
    """Sums over the steps of one policy."""

    waited: float = 0.0
    written: float = 0.0
    lost: float = 0.0
    trained: list[Played] = field(default_factory=list)
    begun: int = 0
    most_steps: int = 0

    def figures(self) -> dict[str, float]:
        """Shares and means, by name."""
        tokens = sum(float(group.tokens.sum()) for group in self.trained)
        return {
            "tokens a step waits for": self.waited,
            "pass rate seen": float(np.mean([group.right.mean() for group in self.trained])),
            "mean length": float(np.mean([group.tokens.mean() for group in self.trained])),
            "hard problems": float(np.mean([group.difficulty > HARD for group in self.trained])),
            "groups never trained": 1 - len(self.trained) / self.begun,
            "tokens lost": self.lost / self.written,
            "tokens of older weights": sum(group.older for group in self.trained) / tokens,
            "longest delay in steps": float(self.most_steps),
        }


def fresh(rng: np.random.Generator) -> Played:
    """A group of a new problem."""
    difficulty = float(rng.random())
    right = rng.random(EPISODES) < 1 - difficulty
    tokens = 1000 * (1 + 2 * difficulty) * rng.lognormal(0.0, 0.5, EPISODES) * np.where(right, 1.0, 1.5)
    return Played(difficulty, right, tokens, np.zeros(EPISODES))


def simulate(tail: str, spare: float, steps: int, seed: int) -> dict[str, float]:
    """Play so many steps under one policy.

    Args:
        tail: ``wait``, ``drop`` or ``carry``.
        spare: Groups begun beyond those that train, as a share of them.
        steps: Number of steps.
        seed: Seed of all draws.
    """
    rng = np.random.default_rng(seed)
    tally, left = Tally(), list[Played]()
    for _ in range(steps):
        count = GROUPS if tail == "wait" else int(np.ceil(GROUPS * (1 + spare)))
        new = max(0, count - len(left))
        tally.begun += new
        playing = left + [fresh(rng) for _ in range(new)]
        ends = sorted(group.left for group in playing)
        put_off = any(group.steps >= MOST_STEPS for group in playing)
        until = ends[-1] if put_off or tail == "wait" else ends[GROUPS - 1]
        tally.waited += until / steps
        left = []
        for group in playing:
            wrote = np.minimum(group.tokens - group.done, until)
            tally.written += float(wrote.sum())
            if group.left <= until:
                group.older = float(group.done.sum())
                tally.trained.append(group)
                tally.most_steps = max(tally.most_steps, group.steps)
            elif tail == "drop":
                tally.lost += float(wrote.sum())
            else:
                turn = group.tokens / TURNS
                kept = np.where(group.done + wrote >= group.tokens, group.tokens, (group.done + wrote) // turn * turn)
                tally.lost += float((group.done + wrote - kept).sum())
                group.done, group.steps = kept, group.steps + 1
                left.append(group)
    tally.begun -= len(left)  # these still train
    return tally.figures()


ARMS = [("wait", 0.0), ("drop", 0.25), ("drop", 0.5), ("carry", 0.25), ("carry", 0.5), ("carry", 1.0)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for tail, spare in ARMS:
        found = [simulate(tail, spare, arguments.steps, seed) for seed in range(arguments.seeds)]
        print(tail if tail == "wait" else f"{tail}, spare_groups={spare}")
        for name in found[0]:
            value = float(np.mean([one[name] for one in found]))
            print(f"    {name:24} {value:9.3f}" if value < 10 else f"    {name:24} {value:9.0f}")


if __name__ == "__main__":
    main()
