"""``StepSpans``: reports optimizer steps as OpenTelemetry spans, and their metrics as gauges; see docs/telemetry.md."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rstar2_env.core.telemetry import phase_span, report_figures


class StepSpans(TrainerCallback):
    """For each optimizer step, opens a root span of a trace, and inside it a span for the optimizer's update.

    The spans of a batch that is collected on demand are inside the step's span. The span of a prefetched batch, which
    another thread collects, is the root of a separate trace.
    """

    def __init__(self) -> None:
        self._opened = ExitStack()

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Open the span of an optimizer step."""
        self._opened.enter_context(phase_span("step", state.global_step + 1))

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Open the span of the optimizer's update."""
        self._opened.enter_context(phase_span("optimizer"))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Close the spans of the step."""
        self.close()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the metrics of a step; they are equal on every process, so only the first process reports them."""
        if state.is_world_process_zero and logs:
            figures = {name: float(value) for name, value in logs.items() if isinstance(value, (int, float))}
            report_figures(state.global_step, figures)

    def close(self) -> None:
        """Close the spans that are open; call it also after an exception."""
        self._opened.close()
