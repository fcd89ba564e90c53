"""``sft``: supervised fine-tuning of a model on traces, as a cold start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.options.declare import CheckedOptions, call_with_options, option
from rstar2_env.core.run_folder import read_run
from rstar2_env.traces.reading import read_traces

from ...api import sft
from ...options.cold_start import SftOptions
from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..launched import run_launched
from ..places import HOME
from ..resuming import is_finished, newest_unfinished
from ..spread import spread_of
from ..traces import write_traces

_NOT_LEARNED = (
    *("model", "output_dir", "resume", "overwrite", "save_every"),
    *("sharding", "threads", "report_to", "progress", "seed"),
)
"""Options that ``Sft.resolved`` leaves out: the fingerprint of the stage covers ``model`` and ``seed`` separately, and
the other options do not affect the trained weights."""


@dataclass(frozen=True)
class Sft(CheckedOptions):
    """Fine-tune a model on traces, as ``rstar2 sft`` does.

    Attributes:
        model: The initial model.
        traces: One or several files of traces.
        config: File with options of the cold start.
        steps: Number of optimizer steps; ``None`` uses ``config`` or the epochs.
        launch: Command that launches the fine-tuning in separate processes; see ``train``.
        options: Further options of ``rstar2 sft``, which override ``config``.
        seed: Seed of the order of the traces; ``None`` for the pipeline's seed.
    """

    model: str
    traces: str | list[str]
    config: str | None = None
    steps: int | None = option(None, least=1)
    launch: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = {"model": "model", "traces": "traces", "config": "config"}
    outputs: ClassVar[Mapping[str, Output]] = {"model": Output("model")}

    @cached_property
    def _options(self) -> SftOptions:
        steps = {} if self.steps is None else {"steps": self.steps}
        options = {**(read_mapping(self.config) if self.config else {}), **self.options, **steps, "model": self.model}
        return call_with_options("cold start", SftOptions, options)

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        return {name: value for name, value in asdict(self._options).items() if name not in _NOT_LEARNED}

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        options, traces, spread = self._options, about.counts.get("traces"), spread_of(self.launch)
        batch = options.batch_size * (spread.train or about.machine.gpus)  # each process has its own batch
        steps = options.steps or (-(-round(options.epochs * traces) // batch) if traces else None)
        if steps is None:
            return Cost(notes=["the number of traces is not known yet"])
        spread = replace(spread, sharding=options.sharding or spread.sharding)
        return Cost.of_tuning(steps * batch, steps, options.max_length, about, spread, lora_rank=options.lora_rank)

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        if not is_finished(work.folder):
            self._train(work)
        metrics = read_run(work.folder).metrics()
        last = metrics[-1] if metrics else {}
        return {name: last[name] for name in ("step", "loss") if name in last}

    def _train(self, work: Work) -> None:
        paths = [self.traces] if isinstance(self.traces, str) else self.traces
        resumed = newest_unfinished(work.folder) is not None
        given = asdict(self._options)
        given |= {"output_dir": str(work.folder), "seed": work.seed, "progress": work.progress}
        given |= {"resume": False, "overwrite": not resumed}
        if self.launch is None:
            sft([trace for path in paths for trace in read_traces(path)], **{**given, "resume": resumed})
            return
        beside = work.folder.with_suffix(".launched")
        beside.mkdir(exist_ok=True)
        file, traces = beside / "sft.json", beside / "traces.jsonl"
        write_json(file, given)
        write_traces(traces, (trace for path in paths for trace in read_traces(path)))
        words = ["sft", "--config", str(file), "--traces", str(traces)]
        run_launched(self.launch, [*words, "--resume" if resumed else "--overwrite"], work, HOME)


STAGES.register("sft", Sft)
