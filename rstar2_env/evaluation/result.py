"""The result of an evaluation: its episodes, and its figures as a table, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.summary import Summary, summarize
from rstar2_env.evaluation.text import summary_rows


@dataclass(frozen=True, repr=False)
class EvalResult:
    """The result of an evaluation; ``str()`` gives a table of its figures.

    Attributes:
        env_id: The environment.
        agent: Name of the agent.
        problems: Name of the problems' source, or "" when the environment chose.
        split: Split of the source.
        episodes: Every episode, in the order of the plan; those taken up from a file included.
        played: How many of them were played now.
        seconds: Wall-clock seconds of playing.
        interrupted: Whether it was stopped before its end.
    """

    env_id: str
    agent: str
    problems: str
    split: str
    episodes: tuple[Episode, ...]
    played: int
    seconds: float
    interrupted: bool

    @cached_property
    def summary(self) -> Summary:
        """The figures."""
        return summarize(self.episodes)

    @property
    def episodes_per_second(self) -> float | None:
        """Throughput; ``None`` when nothing was played now."""
        return self.played / self.seconds if self.played and self.seconds > 0 else None

    def __str__(self) -> str:
        """The figures as a table of two columns."""
        rows = self.rows()
        width = max(map(len, rows))
        return "\n".join([self.title, *(f"  {name:<{width}}  {value}" for name, value in rows.items())])

    def __repr__(self) -> str:
        """What was evaluated, and the pass rate; the episodes are left out."""
        return (
            f"EvalResult(env_id={self.env_id!r}, agent={self.agent!r}, problems={self.problems!r}, "
            f"split={self.split!r}, episodes={len(self.episodes)}, pass_rate={self.summary.pass_rate.value!r})"
        )

    @property
    def title(self) -> str:
        """Who played what, on which problems."""
        split = f" ({self.split})" if self.split else ""
        source = f", {self.problems}{split}" if self.problems else ""
        return f"{self.agent} on {self.env_id}{source}{' – interrupted' if self.interrupted else ''}"

    def rows(self) -> dict[str, str]:
        """The figures as text, by name."""
        rows = summary_rows(self.summary)
        if (speed := self.episodes_per_second) is not None:
            rows["throughput"] = f"{speed:.1f} episodes/s ({self.played} in {self.seconds:.1f} s)"
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The figures, without the episodes, as JSON can hold them."""
        return {
            "env_id": self.env_id,
            "agent": self.agent,
            "problems": self.problems,
            "split": self.split,
            **self.summary.to_dict(),
            "played": self.played,
            "seconds": self.seconds,
            "episodes_per_second": self.episodes_per_second,
            "interrupted": self.interrupted,
        }
