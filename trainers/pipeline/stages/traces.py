"""``traces``: writes tool-use traces from worked solutions for a cold start, and replays and checks each trace."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option, typed_options
from rstar2_env.problems import load_problems
from rstar2_env.traces.file import TraceFile
from rstar2_env.traces.writer import TraceOptions, generate_traces

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..plan import plain_options

FILE = "traces.jsonl"


@dataclass(frozen=True)
class Traces(CheckedOptions):
    """Write tool-use traces, as ``rstar2 traces`` does.

    Attributes:
        problems: Problems with worked solutions.
        episodes: Number of traces to make, including those that are dropped; ``None`` for one per problem.
        env: The environment that replays the traces.
        env_options: Options of the environment.
        options: Options of ``rstar2 traces``, such as ``error_rate``, ``wrong_rate`` and ``call_mistakes``.
        seed: Seed of every random choice; ``None`` for the pipeline's seed.
    """

    problems: str
    episodes: int | None = option(None, least=1)
    env: str = "rstar2/MathTool-v0"
    env_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = {"problems": "problems"}
    outputs: ClassVar[Mapping[str, Output]] = {"traces": Output("traces", FILE)}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        typed_options("traces", TraceOptions, self.options, prefix="options.")
        return plain_options(self)

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        count = self.episodes or about.counts.get("problems", 0)
        return Cost(episodes=count, count={"traces": count} if count else {})

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        from rstar2_env.wrappers.make import make_env

        run = {**plain_options(self), "seed": work.seed}
        file = TraceFile(work.folder / FILE, run=run, resume=work.resumed, overwrite=not work.resumed)
        source = load_problems(self.problems)
        traces = generate_traces(
            partial(make_env, self.env, **self.env_options),
            source,
            episodes=self.episodes,
            seed=work.seed,
            start=file.next,
            **self.options,
        )
        with file, contextlib.closing(traces):
            for trace in traces:
                file.write(trace)
                if self.episodes:
                    work.report(trace.index + 1, self.episodes)
        if not file.records:
            raise ConfigurationError(f"No trace could be written for any of the problems of {self.problems}.")
        return {"traces": float(len(file.records))}


STAGES.register("traces", Traces)
