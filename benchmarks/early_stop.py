"""What stopping a group early saves, and what it does to what trains.

    python benchmarks/early_stop.py [--steps 100] [--seeds 3]

The policy and the episodes are those of ``roc_sim.py``, 32 a group of which 16 train; here they have lengths too. The
episodes of a group begin together and are written at the same speed. A length is log-normal with sigma 0.5 around
1,000 tokens, 1.3 times that for each failed call and 1.5 times for a wrong answer. So what is short is right and clean
more often than what is long, as in practice; stopping early then favours it.

What it does not show: problems of unlike difficulty, engines that are not full.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
from roc_sim import START, Arm, errors, play, simulate

from rstar2_env.core.episode import Episode, Group
from rstar2_env.trainers.selectors.base import Settles
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect

PLAYED, KEPT = 32, 16


def lengths(group: Group, rng: np.random.Generator, *, dependent: bool = True) -> np.ndarray:
    """Tokens of each episode; without ``dependent`` they have nothing to do with how it went."""
    drawn = 1000 * rng.lognormal(0.0, 0.5, len(group))
    if not dependent:
        return drawn
    wrong = np.array([not episode.correct for episode in group])
    return drawn * 1.3 ** np.array(errors(group)) * np.where(wrong, 1.5, 1.0)


def stop_at(group: Group, tokens: np.ndarray, selector: Settles) -> float:
    """The length of the episode whose end settles the group; infinite when it plays to its end."""
    ended: list[Episode | None] = [None] * len(group)
    for position in np.argsort(tokens):
        ended[position] = group[position]
        if selector.settled(ended, KEPT):
            return float(tokens[position])
    return np.inf


@dataclass
class Stopped:
    """A selector that sees only what had ended when the group was settled; it notes what that came to."""

    inner: ResampleOnCorrect
    early: bool = True
    dependent: bool = True
    figures: dict[str, list[float]] = field(default_factory=dict)

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """See ``Selector``."""
        tokens = lengths(group, rng, dependent=self.dependent)
        stop = stop_at(group, tokens, self.inner) if self.early else np.inf
        ended = [position for position in range(len(group)) if tokens[position] <= stop]
        kept = [ended[at] for at in self.inner([group[position] for position in ended], keep, rng)]
        right = [position for position in kept if group[position].correct]
        self._note("cancelled", 1 - len(ended) / len(group))
        self._note("tokens saved", 1 - float(np.minimum(tokens, stop).sum() / tokens.sum()))
        self._note("time saved", 1 - float(min(stop, tokens.max()) / tokens.max()))
        self._note("pass rate seen", float(np.mean([group[position].correct for position in ended])))
        if kept:
            self._note("length kept", float(tokens[kept].mean()))
        if right:
            self._note("errors kept", float(np.mean(errors([group[position] for position in right]))) / 4)
        return kept

    def _note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)


def one_batch(selector: Stopped, groups: int = 1000, seed: int = 0) -> dict[str, float]:
    """The means over fresh groups of an untrained policy."""
    rng = np.random.default_rng(seed)
    for _ in range(groups):
        selector(play(START, PLAYED, rng), KEPT, rng)
    return {name: float(np.mean(values)) for name, values in selector.figures.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for spare in (None, 2.0, 1.5, 1.0):

        def make(spare: float | None = spare) -> Stopped:
            return Stopped(ResampleOnCorrect(spare=spare or 1.0), early=spare is not None)

        figures = one_batch(make())
        trained = [simulate(Arm("", PLAYED, KEPT, make()), arguments.steps, seed) for seed in range(arguments.seeds)]
        print("played to the end" if spare is None else f"early stop, spare={spare}")
        for name, value in figures.items():
            print(f"    {name:15} {value:8.0f}" if name == "length kept" else f"    {name:15} {value:8.3f}")
        print(f"    error rate after {arguments.steps} steps, from {START}: {np.mean(trained):.3f}")


if __name__ == "__main__":
    main()
