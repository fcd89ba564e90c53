"""``prepare``: filters, decontaminates, mixes and splits problems from named sources, with a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.options.declare import option
from rstar2_env.problems.files.write import write_jsonl
from rstar2_env.problems.prepare import PrepareOptions, prepare

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..shelves import LOCKED, Shelved

REPORT, REMOVED = "report.json", "removed.jsonl"


@dataclass(frozen=True, kw_only=True)
class Prepare(PrepareOptions, Shelved):
    """Prepare training problems; see docs/pipeline-data.md and ``rstar2_env.problems.prepare``.

    The outputs are the splits: ``train`` and all others that ``splits`` names. ``report.json`` counts the problems that
    each filter removed, with examples; ``removed.jsonl`` holds all removed problems with the reasons.

    Attributes:
        expect: Expected number of remaining problems, for cost estimates before any source was loaded.
    """

    expect: int | None = option(None, least=1)

    inputs: ClassVar[Mapping[str, str]] = LOCKED

    @cached_property
    def outputs(self) -> Mapping[str, Output]:
        """One file per split."""
        return {name: Output("problems", f"{name}.jsonl") for name in self.splits}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        # The runner records the seed, which is the pipeline's if the stage has none.
        return {field.name: asdict(self)[field.name] for field in fields(PrepareOptions) if field.name != "seed"}

    def named_sources(self) -> Iterator[str | Mapping[str, Any]]:
        """Return each source of problems or traces that an option names; see ``NamesSources``."""
        yield from (source.problems for source in self.sources.values())
        yield from self.against

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        left = self.total or self.expect
        if left is None:
            return Cost()
        notes = [] if self.total else [f"{left:,} problems are expected to remain"]
        return Cost(count={name: round(left * share) for name, share in self.splits.items()}, notes=notes)

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        with self.shelf(work) as shelf:
            found = prepare(self.with_seed(work.seed), shelf, report=work.report)
        removed = work.folder / REMOVED
        removed.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in found.removed), "utf-8")
        write_json(work.folder / REPORT, found.report())
        for name, problems in found.splits.items():
            write_jsonl(problems, Path(work.folder, f"{name}.jsonl"), overwrite=True)
        for filter, told in found.report()["removed"].items():
            work.say(f"{filter}: left out {told['problems']} problems; the first reason: {told['examples'][0]['why']}")
        return {name: float(len(problems)) for name, problems in found.splits.items()} | {
            "left_out": float(len(found.removed))
        }


STAGES.register("prepare", Prepare)
