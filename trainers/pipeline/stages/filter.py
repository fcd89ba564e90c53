"""``filter``: keeps the problems that a model solves neither too often nor too rarely.

Before its third stage, rStar2-Agent (arXiv 2508.20722, section 4.3) samples each problem 8 times from the latest policy
and drops the problems that it solved 8 times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.outputs import list_files
from rstar2_env.core.options.declare import option
from rstar2_env.problems import FiniteSource, load_problems
from rstar2_env.problems.files.write import write_jsonl

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..playing import PlayingStage

FILE = "problems.jsonl"


@dataclass(frozen=True, kw_only=True)
class Filter(PlayingStage):
    """Play each problem ``n`` times with a model; keep the problems whose share of solved episodes is in a range.

    A problem is also kept if none of its episodes counts (all ended ``unavailable``). If the problems have splits, the
    training split is used, unless ``problems: NAME:split=test`` names another split.

    Attributes:
        drop_from: Drop problems whose share of solved episodes is at least this value; the default drops problems that
            are always solved.
        drop_below: Drop problems whose share is less than this value; the default drops none.
        expect: Expected number of remaining problems, for cost estimates before any episode was played.
    """

    n: int = option(8, least=1)
    drop_from: float = option(1.0, above=0)
    drop_below: float = option(0.0, least=0, most=1)
    expect: int | None = option(None, least=1)

    split: ClassVar[str] = "train"
    inputs: ClassVar[Mapping[str, str]] = {"model": "model", "problems": "problems"}
    outputs: ClassVar[Mapping[str, Output]] = {"problems": Output("problems", FILE), "episodes": Output("episodes")}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        return {name: value for name, value in super().resolved().items() if name != "expect"}

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        cost = super().cost(about)
        if self.expect is None:
            return cost
        return replace(
            cost,
            count={"problems": self.expect},
            notes=[*cost.notes, f"{self.expect:,} problems are expected to remain"],
        )

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        if self.problems is None:
            raise ConfigurationError("A stage of the kind filter requires the option `problems`.", option="problems")
        source = load_problems(self.problems, split=self.split)
        if not isinstance(source, FiniteSource):
            raise ConfigurationError(
                f"A stage of the kind filter requires a finite number of problems, but {source.name} "
                "generates problems without end. Write a finite list with a stage of the kind data, and "
                "filter its output.",
                option="problems",
            )
        tally = self.play(work).tally
        kept, total = [], 0
        for problem in source:
            counts = tally.problems.get(problem.id)
            if counts is None and problem.id not in tally.lost:
                continue  # the problem was not played
            total += 1
            share = counts.correct / counts.episodes if counts else None
            if share is None or self.drop_below <= share < self.drop_from:
                kept.append(problem)
        if not kept:
            raise ConfigurationError(
                f"The filter removed all {total} problems, because the share of solved episodes of each "
                f"problem is below {self.drop_below} or at least {self.drop_from}. Use other problems or "
                "bounds, or omit this stage."
            )
        list_files(work.folder, FILE)
        write_jsonl(kept, work.folder / FILE, overwrite=True)
        return {"kept": float(len(kept)), "dropped": float(total - len(kept))}


STAGES.register("filter", Filter)
