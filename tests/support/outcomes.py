"""Outcomes of groups for samplers: of some problems, with some successes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rstar2_env.problems import FixedSource, Problem
from rstar2_env.trainers.samplers.base import GroupResult, Sampler, Start


def went(
    start: Start | str, successes: int, episodes: int = 8, *, number: int = 0, advantage: float = 0.0
) -> GroupResult:
    """How a group went; a text is the id of its problem."""
    begun = Start(number, {"problem_id": start}) if isinstance(start, str) else start
    reward = successes / episodes if episodes else 0.0
    return GroupResult(begun, number, episodes, successes, reward, advantage, episodes)


def steps(sampler: Sampler, rates: Mapping[str, float], count: int, *, batch: int = 4, episodes: int = 8) -> list[str]:
    """Play some steps in which each problem, or kind, succeeds at exactly its rate; return what was drawn.

    Args:
        sampler: Draws and observes.
        rates: Pass rates by problem, or by kind where the sampler draws by kinds.
        count: Steps.
        batch: Groups of a step.
        episodes: Episodes of a group.
    """
    drawn = []
    for _ in range(count):
        starts = sampler.draw(batch)
        told = [start.kind or start.problem_id for start in starts]
        drawn += told
        sampler.observe(
            [
                went(start, round(rates[name] * episodes), episodes, number=at)
                for at, (start, name) in enumerate(zip(starts, told, strict=True))
            ]
        )
    return drawn


def by_source(kinds: Sequence[str], each: int = 5) -> FixedSource:
    """Problems of several sources, named ``<source>-<number>``."""
    return FixedSource([Problem(f"{kind}-{n}", "What?", "1", kind) for kind in kinds for n in range(each)])
