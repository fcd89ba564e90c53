"""``conversations``: mixes named sets of conversations into traces for a cold start without reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.traces.conversations import mix_conversations
from rstar2_env.traces.conversations.mixture import is_file

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..shelves import LOCKED, Shelved
from ..traces import write_traces

FILE, REPORT = "traces.jsonl", "report.json"


@dataclass(frozen=True, kw_only=True)
class Conversations(CheckedOptions, Shelved):
    """Mix conversations into a file of traces; see docs/pipeline-data.md and ``rstar2_env.traces.conversations``.

    Attributes:
        sources: Maximum number of conversations from each source; ``None`` takes all. A source is the name of a data
            set, or a file of JSON lines, each with ``messages``.
        seed: Seed of the choice and of the order; ``None`` for the pipeline's seed.
    """

    sources: dict[str, int | None] = field(default_factory=dict)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = LOCKED
    outputs: ClassVar[Mapping[str, Output]] = {"traces": Output("traces", FILE)}

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is invalid, or there is no source.
        """
        super().__post_init__()
        if not self.sources:
            raise ConfigurationError("At least one source of conversations is required.", option="sources")

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        return {"sources": self.sources}

    def named_sources(self) -> Iterator[str]:
        """Return each source of problems or traces that an option names; see ``NamesSources``."""
        return filter(is_file, self.sources)

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        counts = list(self.sources.values())
        return Cost() if None in counts else Cost(count={"traces": sum(count or 0 for count in counts)})

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        with self.shelf(work) as shelf:
            found = mix_conversations(self.sources, shelf, seed=work.seed, report=work.report)
        write_json(work.folder / REPORT, found.report())
        write_traces(work.folder / FILE, found.records)
        for name, most in self.sources.items():
            short = most is not None and found.taken[name] < most
            left_out = sum(found.unusable[name].values())
            work.say(
                f"{name}: {found.taken[name]} conversations{f' of the {most} requested' if short else ''}"
                f"{f', {left_out} rows could not be used' if left_out else ''}."
            )
        return {"traces": float(len(found.records))}


STAGES.register("conversations", Conversations)
