"""``filter``: the problems that a model does not solve every time: difficulty as the model itself has it.

rStar2-Agent (arXiv 2508.20722, section 4.3) lets the newest policy play each problem 8 times before its third stage,
and drops those that it solved 8 times of 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.problems import FiniteSource, load_problems
from rstar2_env.problems.files.write import write_jsonl

from ..base import STAGES, Figures, Output, Work
from ..cost import About, Cost
from ..played import Played

FILE = "problems.jsonl"


@dataclass(frozen=True, kw_only=True)
class Filter(Played):
    """Let a model play each problem ``n`` times, and keep those whose share of solved episodes is in a range.

    A problem none of whose episodes counts (they ended ``unavailable``) is kept. Where the problems have splits, those
    to train on are played and kept; ``problems: NAME:split=test`` says otherwise.

    Attributes:
        drop_from: Problems are dropped whose share of solved episodes is this or more; the default drops those that are
            solved every time.
        drop_below: Problems are dropped whose share is less than this; the default drops none.
        expect: How many problems are expected to be left, for costs before anything was played.
    """

    n: int = option(8, least=1)
    drop_from: float = option(1.0, above=0)
    drop_below: float = option(0.0, least=0, most=1)
    expect: int | None = option(None, least=1)

    split: ClassVar[str] = "train"
    inputs: ClassVar[Mapping[str, str]] = {"model": "model", "problems": "problems"}
    outputs: ClassVar[Mapping[str, Output]] = {"problems": Output("problems", FILE), "episodes": Output("episodes")}

    def resolved(self) -> Mapping[str, Any]:
        """See ``Stage``."""
        return {name: value for name, value in super().resolved().items() if name != "expect"}

    def cost(self, about: About) -> Cost:
        """See ``Stage``."""
        cost = super().cost(about)
        if self.expect is None:
            return cost
        return replace(
            cost,
            count={"problems": self.expect},
            notes=[*cost.notes, f"{self.expect:,} problems are expected to be left"],
        )

    def run(self, work: Work) -> Figures:
        """See ``Stage``."""
        if self.problems is None:
            raise ConfigurationError("A filter needs the problems to choose from.", option="problems")
        source = load_problems(self.problems, split=self.split)
        if not isinstance(source, FiniteSource):
            raise ConfigurationError(
                f"{source.name} never ends, and a filter keeps problems of a list: write as many as you want with a "
                "stage of the kind data, and filter what it leaves.",
                option="problems",
            )
        tally = self.play(work).tally
        kept, total = [], 0
        for problem in source:
            counts = tally.problems.get(problem.id)
            if counts is None and problem.id not in tally.lost:
                continue  # not among those that were played
            total += 1
            share = counts.correct / counts.episodes if counts else None
            if share is None or self.drop_below <= share < self.drop_from:
                kept.append(problem)
        if not kept:
            raise ConfigurationError(
                f"None of the {total} problems is left: the model's share of solved episodes is outside of "
                f"{self.drop_below} to {self.drop_from} for each. Play harder problems, or end the pipeline before."
            )
        write_jsonl(kept, work.folder / FILE, overwrite=True)
        return {"kept": float(len(kept)), "dropped": float(total - len(kept))}


STAGES.register("filter", Filter)
