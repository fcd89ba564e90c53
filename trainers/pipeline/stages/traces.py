"""``traces``: tool-use traces of problems with worked solutions, each replayed and checked, for a cold start."""

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

from ..base import STAGES, Figures, Output, Work
from ..cost import About, Cost
from ..plan import plain_options

FILE = "traces.jsonl"


@dataclass(frozen=True)
class Traces(CheckedOptions):
    """Write tool-use traces, as ``rstar2 traces`` does.

    Attributes:
        problems: Problems with worked solutions.
        episodes: How many traces to write, the dropped ones included; ``None`` writes one for each problem.
        env: The environment that replays them.
        env_options: Its options.
        options: Options of ``rstar2 traces``: ``error_rate``, ``wrong_rate``, ``call_mistakes``, ....
        seed: Seed of every random choice; ``None`` is the pipeline's.
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
        """See ``Stage``."""
        typed_options("traces", TraceOptions, self.options, prefix="options.")
        return plain_options(self)

    def cost(self, about: About) -> Cost:
        """See ``Stage``."""
        count = self.episodes or about.counts.get("problems", 0)
        return Cost(episodes=count, count={"traces": count} if count else {})

    def run(self, work: Work) -> Figures:
        """See ``Stage``."""
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
            raise ConfigurationError(f"None of the problems of {self.problems} gave a trace.")
        return {"traces": float(len(file.records))}


STAGES.register("traces", Traces)
