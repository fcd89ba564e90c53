"""The result of an evaluation: its episodes, and its figures as a table, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.writer import versions
from rstar2_env.core.text import html_table, text_table
from rstar2_env.evaluation.figures.boundary import Boundary
from rstar2_env.evaluation.figures.intervals import IntervalFigures, figures_by, figures_of
from rstar2_env.evaluation.figures.summary import Summary, summary_of
from rstar2_env.evaluation.figures.tally import EpisodeTally
from rstar2_env.evaluation.figures.text import boundary_text, interval_text, summary_rows
from rstar2_env.evaluation.play.log import read_episodes
from rstar2_env.evaluation.play.repeats import Repeats

if TYPE_CHECKING:
    from rstar2_env.evaluation.figures.plot import Plot

MOST_LISTED = 12
"""Maximum number of sources, or of difficulties, in the table."""


@dataclass(frozen=True, repr=False)
class EvalResult:
    """The result of an evaluation; ``str()`` gives a table of its figures.

    Attributes:
        run: Environment, player and options, as in every line of the file.
        tally: Counts by problem.
        ks: The values of k for the figures.
        planned: Number of planned episodes.
        played: Number of episodes that were played, without the episodes resumed from a file.
        seconds: Wall-clock seconds of playing.
        interrupted: Whether the evaluation was stopped before its end.
        determinism: Sentence that states whether the same seeds give the same episodes.
        repeated: Number of episodes that were played a second time, and of those that were identical both times;
            ``None`` if no episode was played again.
        boundary: Which problems this evaluation and a baseline solved; ``None`` without a baseline.
        file: The file of the episodes, if there is one.
        kept: The episodes, if they were kept in memory; otherwise ``None``.
    """

    run: Mapping[str, Any]
    tally: EpisodeTally
    ks: Sequence[int]
    planned: int
    played: int
    seconds: float
    interrupted: bool
    determinism: str = ""
    repeated: Repeats | None = None
    boundary: Boundary | None = None
    file: Path | None = None
    kept: tuple[Episode, ...] | None = None

    @property
    def env_id(self) -> str:
        """Name of the environment."""
        return str(self.run["env"])

    @property
    def agent(self) -> str:
        """Name of the agent; ``"policy"`` for a model."""
        return str(self.run["agent"])

    @property
    def problems(self) -> str:
        """Name of the problems' source; "" if the environment chose the problems."""
        return str(self.run["problems"])

    @property
    def split(self) -> str:
        """Split of the problems."""
        return str(self.run["split"])

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """Every episode in the order of the plan, including episodes resumed from a file.

        Raises:
            ConfigurationError: The episodes were neither kept nor written.
        """
        if self.kept is not None:
            return self.kept
        if self.file is None:
            raise ConfigurationError(
                "The episodes of this evaluation were not kept: give a file or folder to write them to.",
                option="out",
            )
        return tuple(sorted(read_episodes(self.file, self.planned - 1), key=lambda episode: episode.group))

    @cached_property
    def summary(self) -> Summary:
        """The figures with their standard errors."""
        return summary_of(self.tally)

    @cached_property
    def figures(self) -> IntervalFigures:
        """The figures with their intervals, including pass@k and other figures of several samples."""
        return figures_of(self.tally, self.ks, seed=self.run["seed"])

    @cached_property
    def by(self) -> dict[str, dict[str, IntervalFigures]]:
        """The figures by source and by difficulty of the problems, as ``figures_by`` returns them."""
        return figures_by(self.tally, self.ks, seed=self.run["seed"])

    @property
    def episodes_per_second(self) -> float | None:
        """Episodes per second of this run; ``None`` if no episode was played."""
        return self.played / self.seconds if self.played and self.seconds > 0 else None

    def __str__(self) -> str:
        """The figures as a table of two columns."""
        return text_table(self.title, list(self.rows().items()))

    def _repr_html_(self) -> str:
        return html_table(self.title, list(self.rows().items()))

    def plot(self) -> Plot:
        """Plot pass@k, and each figure that is a share, with intervals; a notebook shows the plot, ``save`` writes it.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from rstar2_env.evaluation.figures.plot import plot_evaluation

        return plot_evaluation(self.figures, self.ks, self.title)

    def __repr__(self) -> str:
        """Names of environment, agent, problems and split, number of episodes, and pass rate."""
        return (
            f"EvalResult(env_id={self.env_id!r}, agent={self.agent!r}, problems={self.problems!r}, "
            f"split={self.split!r}, episodes={self.tally.count}, pass_rate={self.summary.pass_rate.value!r})"
        )

    @property
    def title(self) -> str:
        """Player, environment and problems."""
        split = f" ({self.split})" if self.split else ""
        source = f", {self.problems}{split}" if self.problems else ""
        player = self.run.get("model", self.agent)
        return f"{player} on {self.env_id}{source}{' – interrupted' if self.interrupted else ''}"

    def rows(self) -> dict[str, str]:
        """The figures as text, by name."""
        rows = summary_rows(self.summary)
        samples = self.run["n"]
        if samples > 1:
            rows["problems × samples"] = f"{self.figures.problems} × {samples}"
            # avg@k is the same for every k.
            shown = [f"{kind}@{k}" for kind in ("pass", "maj", "cot_pass") for k in self.ks]
            shown.insert(len(self.ks), f"avg@{max(self.ks)}")
            rows |= {name: interval_text(self.figures.by_name[name]) for name in shown if name in self.figures.by_name}
            if self.figures.short:
                rows["left out"] = f"{self.figures.short} problems with fewer than {max(self.ks)} usable episodes"
        elif self.tally.judged:
            rows["cot_pass@1"] = interval_text(self.figures.by_name["cot_pass@1"])
        for kind, groups in self.by.items():
            if len(groups) > 1:
                for name, found in list(groups.items())[:MOST_LISTED]:
                    best = f"pass@{max(self.ks)}"
                    rows[f"{kind} {name}"] = f"{best} {interval_text(found.by_name[best])}, {found.problems} problems"
                if len(groups) > MOST_LISTED:
                    rows[f"further {kind}"] = f"{len(groups) - MOST_LISTED}, in the JSON"
        if self.boundary is not None:
            rows |= boundary_text(self.boundary)
        if self.repeated is not None:
            rows["played again"] = f"{self.repeated.same} of {self.repeated.episodes} identical"
        if self.tally.cause:
            rows["why not counted"] = self.tally.cause
        if (speed := self.episodes_per_second) is not None:
            rows["throughput"] = f"{speed:.1f} episodes/s ({self.played} in {self.seconds:.1f} s)"
        return rows

    def log_figures(self) -> dict[str, float | None]:
        """Return the figures to record in a run's log, by name: the metrics that training also logs, and pass@k."""
        return {**self.summary.figures(), **self.figures.numbers()}

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, without the episodes, as JSON values; see docs/evaluation.md."""
        numbers = self.figures.numbers()
        summary = self.summary.to_dict()
        return {
            "env_id": self.env_id,
            "agent": self.agent,
            **({"model": self.run["model"]} if "model" in self.run else {}),
            "split": self.split,
            **summary,
            "problems": self.problems,
            "n": self.run["n"],
            "k": list(self.ks),
            **{name: value for name, value in numbers.items() if name not in summary},
            "intervals": self.figures.intervals(),
            "by": {kind: {name: found.record() for name, found in groups.items()} for kind, groups in self.by.items()},
            "problem_count": self.figures.problems,
            "left_out": self.figures.short,
            **({"boundary": self.boundary.record()} if self.boundary is not None else {}),
            "seed": self.run["seed"],
            "determinism": {
                "stated": self.determinism,
                "repeated": None if self.repeated is None else self.repeated.record(),
            },
            "versions": versions(),
            "planned": self.planned,
            "played": self.played,
            "seconds": self.seconds,
            "episodes_per_second": self.episodes_per_second,
            "interrupted": self.interrupted,
        }
