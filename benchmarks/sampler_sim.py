"""What samplers do to the share of groups that can teach, in the smallest policies that have a pass rate.

    python benchmarks/sampler_sim.py [--seeds 5]

A policy is a pass rate for each problem, or for each kind of problem; an episode is a coin toss. Nothing learns, but in
``curriculum``: MoPPS finds the problems of middling difficulty, DUMP the kind with the largest advantages, EnvGen's
mixture goes to the skill that fails. NumPy and the package's own samplers; no model.

What it does not show: that a model learns more from what they choose.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rstar2_env.problems import FixedSource, Problem
from rstar2_env.trainers.samplers.base import Outcome, Sampler, Start
from rstar2_env.trainers.samplers.curriculum import Curriculum
from rstar2_env.trainers.samplers.dump import Dump
from rstar2_env.trainers.samplers.hard_focus import HardFocus
from rstar2_env.trainers.samplers.mopps import Mopps
from rstar2_env.trainers.samplers.skill_gap import SkillGap
from rstar2_env.trainers.samplers.uniform import Uniform

PROBLEMS, BATCH, GROUP = 500, 32, 8
LEARNABLE = {"easy": 0.05, "hard": 0.10, "right": 0.60, "near": 0.20}
"""Mean absolute advantage of each kind, for DUMP."""


def outcome(start: Start, number: int, rate: float, rng: np.random.Generator, size: int = GROUP) -> Outcome:
    """How a group of a problem with that pass rate went."""
    right = int(rng.binomial(size, rate))
    share = right / size
    return Outcome(start, number, size, right, share, 2 * share * (1 - share), size if 0 < right < size else 0)


def play(sampler: Sampler, rate: Callable[[Start], float], steps: int, seed: int, batch: int = BATCH) -> list[Outcome]:
    """The groups of some steps."""
    rng = np.random.default_rng([seed, 1])
    played: list[Outcome] = []
    for _ in range(steps):
        step = [outcome(start, number, rate(start), rng) for number, start in enumerate(sampler.draw(batch))]
        sampler.observe(step)
        played += step
    return played


def mixed_share(outcomes: Sequence[Outcome]) -> float:
    """Share of the groups with right and wrong answers."""
    return sum(0 < one.successes < one.episodes for one in outcomes) / len(outcomes)


def problems(seed: int) -> tuple[list[str], dict[str, float]]:
    """Problems whose pass rates are of Beta(.6, .6): many near 0 and 1, as in a run."""
    rates = np.random.default_rng([seed, 2]).beta(0.6, 0.6, PROBLEMS)
    ids = [f"p{number}" for number in range(PROBLEMS)]
    return ids, dict(zip(ids, rates.tolist(), strict=True))


def mopps(steps: int, seed: int) -> dict[str, float]:
    """Share of mixed groups with MoPPS and without it, and how well its posterior knows the pass rates."""
    ids, rates = problems(seed)
    known = Mopps(ids, seed, batch=BATCH)
    found = play(known, lambda start: rates[start.problem_id], steps, seed)
    plain = play(Uniform(ids, seed), lambda start: rates[start.problem_id], steps, seed)
    seen = sorted({ids.index(one.start.problem_id) for one in found})
    mean = known.alpha / (known.alpha + known.beta)
    correlation = np.corrcoef(mean[seen], [rates[ids[place]] for place in seen])[0, 1]
    return {"mopps": mixed_share(found), "uniform": mixed_share(plain), "correlation": float(correlation)}


def kinds_source(names: Sequence[str], each: int = 50) -> FixedSource:
    """A source with some problems of each kind."""
    return FixedSource([Problem(f"{kind}-{n}", "?", "1", kind) for kind in names for n in range(each)])


def dump(steps: int, seed: int, batch: int = 8) -> dict[str, float]:
    """How often each kind is played, where their mean absolute advantages differ and stay."""
    sampler = Dump(seed, kinds_source(list(LEARNABLE)))
    rng = np.random.default_rng([seed, 3])
    played: Counter[str] = Counter()
    for _ in range(steps):
        starts = sampler.draw(batch)
        played.update(start.kind for start in starts)
        sampler.observe(
            [
                Outcome(start, at, GROUP, 4, 0.5, abs(float(rng.normal(LEARNABLE[start.kind], 0.02))), GROUP)
                for at, start in enumerate(starts)
            ]
        )
    return {kind: played[kind] / played.total() for kind in LEARNABLE}


def skill_gap(rates: Mapping[str, float], seed: int = 0) -> list[dict[str, float]]:
    """The shares of each cycle, where the skills succeed at these rates."""
    sampler = SkillGap(seed, kinds_source(list(rates)), every=10)
    shares = []
    for _ in range(4):
        play(sampler, lambda start: rates[start.kind], 10, seed)
        shares.append(sampler.shares)
    return shares


def curriculum(seed: int = 0, above: float = 0.5) -> list[str]:
    """The level of each step, where a level is learned by being played: its pass rate rises by 1 % a group."""
    sampler = Curriculum(seed, kinds_source(["1", "2", "3"]), by="source", above=above, window=32)
    played: Counter[str] = Counter()

    def rate(start: Start) -> float:
        played[start.kind] += 1
        return min(0.95, 0.01 * played[start.kind])

    levels = []
    for _ in range(40):
        levels.append(sampler.level)
        play(sampler, rate, 1, seed, batch=8)
    return levels


def hard_focus(seed: int = 0) -> tuple[list[float], list[int]]:
    """Mean pass rate of what is played in each stretch of ten steps, and how many problems may come."""
    ids, rates = problems(seed)
    sampler = HardFocus(ids, seed, every=10)
    means, sizes = [], []
    for stretch in range(8):
        found = play(sampler, lambda start: rates[start.problem_id], 10, seed + stretch)
        means.append(float(np.mean([rates[one.start.problem_id] for one in found])))
        sizes.append(len(sampler.problems))
    return means, sizes


def _mean(found: Sequence[Mapping[str, float]]) -> str:
    return "  ".join(f"{name} {np.mean([one[name] for one in found]):.3f}" for name in found[0])


def main() -> None:
    """Simulate every sampler and print what it did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(parser.parse_args().seeds)
    rows: dict[str, Any] = {
        "mixed groups, 200 steps": _mean([mopps(200, seed) for seed in seeds]),
        "dump, 400 steps": _mean([dump(400, seed) for seed in seeds]),
        "skill_gap, last cycle": _mean([skill_gap({"a": 0.9, "b": 0.5, "c": 0.1}, seed)[-1] for seed in seeds]),
        "curriculum, steps a level": dict(Counter(curriculum())),
        "hard_focus, pass rate": [round(value, 2) for value in hard_focus()[0]],
    }
    for name, told in rows.items():
        print(f"{name:28} {told}")


if __name__ == "__main__":
    main()
