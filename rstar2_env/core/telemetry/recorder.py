"""``Recorder``: creates all spans and metrics of the package with given OpenTelemetry providers.

Covered: parent spans across coroutines and threads (``spans.carried``), failures, texts (recorded only on request),
secrets (replaced by ``***``). Not covered: exporters (``switch``), spans inside a sandbox or an inference server.

Names that a policy chooses are not recorded: a call of an unknown tool has no ``gen_ai.tool.name``, and the class of an
exception is recorded only if Python defines it. An exception's message is never recorded.
"""

from __future__ import annotations

import asyncio
import builtins
import json
import threading
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from opentelemetry import context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider, set_span_in_context

from rstar2_env.core.episode import Episode
from rstar2_env.core.secret import hidden
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.telemetry import conventions as names
from rstar2_env.core.telemetry.spans import NoSpan
from rstar2_env.core.text import encodable
from rstar2_env.core.version import __version__

SCOPE = "rstar2_env"
"""Name of OpenTelemetry's instrumentation scope; also recorded as the provider of operations that have none."""

_EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)


class Recorder:
    """Creates spans and metrics; the functions in ``spans`` call its methods while telemetry is on.

    Args:
        tracers: Provides the tracer.
        meters: Provides the meter.
        content: Whether to record the texts of prompts, turns and tools.
    """

    def __init__(self, tracers: TracerProvider, meters: MeterProvider, *, content: bool = False) -> None:
        self.content = content
        self.tracer = tracers.get_tracer(SCOPE, __version__, names.SCHEMA_URL)
        meter = self._meter = meters.get_meter(SCOPE, __version__, names.SCHEMA_URL)
        seconds, tokens = list(names.SECONDS_BUCKETS), list(names.TOKEN_BUCKETS)
        self.durations = meter.create_histogram(
            names.OPERATION_DURATION,
            unit=names.UNITS[names.OPERATION_DURATION],
            description="Duration of a turn, a tool call or an episode.",
            explicit_bucket_boundaries_advisory=seconds,
        )
        self.tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            unit=names.UNITS[names.TOKEN_USAGE],
            description="Number of tokens of a turn: input or output.",
            explicit_bucket_boundaries_advisory=tokens,
        )
        self.phases = meter.create_histogram(
            names.PHASE_DURATION,
            unit="s",
            description="Duration of a phase of training.",
            explicit_bucket_boundaries_advisory=seconds,
        )
        self._jobs = meter.create_histogram(
            names.JOB_DURATION,
            unit="s",
            description="Duration of a sandboxed program.",
            explicit_bucket_boundaries_advisory=seconds,
        )
        self.episodes = meter.create_counter(names.EPISODES, unit="{episode}", description="Episodes that ended.")
        self.rewards = meter.create_histogram(
            names.EPISODE_REWARD,
            unit="1",
            description="Return of an episode that is neither unavailable nor cancelled.",
            explicit_bucket_boundaries_advisory=[-1.0, 0.0, 0.25, 0.5, 0.75, 1.0],
        )
        self._gauges: dict[str, Any] = {}
        self._lock = threading.Lock()

    def agent(self, agent: str, model: str, provider: str) -> OpenSpan:
        """Create the span of one episode; see ``spans.agent_span``."""
        return self._operation(names.INVOKE_AGENT, agent, {names.AGENT: agent}, model=model, provider=provider)

    def turn(self, model: str, provider: str, params: Any) -> OpenSpan:
        """Create the span of one turn that an engine generates; see ``spans.chat_span``."""
        asked = {
            names.MAX_TOKENS: params.max_tokens,
            names.TEMPERATURE: float(params.temperature),
            names.TOP_P: float(params.top_p),
            names.TOP_K: params.top_k or None,
            names.STOP: list(params.stop) or None,
        }
        return self._operation(names.CHAT, model, {}, asked, model=model, provider=provider)

    def request(self, url: str, fields: Mapping[str, Any]) -> OpenSpan:
        """Create the span of one request to an endpoint; see ``spans.endpoint_span``."""
        parts = urlsplit(url)
        address = {
            names.ADDRESS: parts.hostname or "",
            names.PORT: parts.port or (443 if parts.scheme == "https" else 80),
        }
        asked = {
            names.MAX_TOKENS: fields.get("max_tokens"),
            names.TEMPERATURE: fields.get("temperature"),
            names.TOP_P: fields.get("top_p"),
            names.SEED: fields.get("seed"),
        }
        model = str(fields.get("model", ""))
        return self._operation(names.CHAT, model, address, asked, model=model, provider="openai", kind=SpanKind.CLIENT)

    def tool(self, name: str) -> OpenSpan:
        """Create the span of one tool call; see ``spans.tool_span``."""
        named = {names.TOOL: name} if name else {}
        return self._operation(names.EXECUTE_TOOL, name, named, {names.TOOL_TYPE: "function"})

    def phase(self, name: str, step: int | None) -> OpenSpan:
        """Create the span of a training phase; see ``spans.phase_span``."""
        of_step = {} if step is None else {names.STEP: step}
        return OpenSpan(self, f"rstar2.train.{name}", SpanKind.INTERNAL, {names.PHASE: name}, of_step, self.phases)

    def job(self, provider: str, status: ToolStatus, wall_s: float) -> None:
        """Count one sandboxed job and its duration; see ``spans.report_job``."""
        self._jobs.record(wall_s, {names.SANDBOX: provider, names.STATUS: str(status)})

    def figures(self, step: int, figures: Mapping[str, float]) -> None:
        """Report the metrics of a training step; see ``spans.report_figures``."""
        for name, value in {"step": step, **figures}.items():
            if value == value:  # a share of nothing is not a number
                self._gauge(name).set(value)

    def _gauge(self, figure: str) -> Any:
        with self._lock:
            if figure not in self._gauges:
                self._gauges[figure] = self._meter.create_gauge(
                    names.FIGURE.format(figure.replace("/", ".")),
                    unit=names.unit_of(figure),
                    description=f"{figure} of the last logged step.",
                )
            return self._gauges[figure]

    def _operation(
        self,
        operation: str,
        subject: str,
        measured: Mapping[str, Any],
        more: Mapping[str, Any] | None = None,
        *,
        model: str = "",
        provider: str = "",
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> OpenSpan:
        measured = {names.OPERATION: operation, names.PROVIDER: provider or SCOPE, **measured}
        if model:
            measured[names.MODEL] = model
        return OpenSpan(self, f"{operation} {subject}".rstrip(), kind, measured, more or {}, self.durations)


class OpenSpan(NoSpan):
    """A recorded span; it begins when its ``with`` block is entered, and is the parent of all spans within the block.

    Args:
        recorder: The recorder that created the span.
        name: Name of the span.
        kind: Kind of the span.
        measured: Attributes of the span and of its metrics.
        more: Attributes of the span only, not of its metrics; attributes with the value ``None`` are omitted.
        durations: Histogram to which the span's duration is added.
    """

    __slots__ = ("_begun", "_durations", "_kind", "_measured", "_more", "_name", "_recorder", "_span", "_token")
    on = True

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        kind: SpanKind,
        measured: Mapping[str, Any],
        more: Mapping[str, Any],
        durations: Any,
    ) -> None:
        self._recorder, self._name, self._kind, self._durations = recorder, name, kind, durations
        self._measured, self._more = dict(measured), more

    @property
    def content(self) -> bool:  # type: ignore[override]  # a constant while telemetry is off
        """Whether texts of prompts, turns and tools are recorded."""
        return self._recorder.content

    def __enter__(self) -> Self:
        """Begin the span."""
        more = {name: value for name, value in self._more.items() if value is not None}
        self._span = self._recorder.tracer.start_span(
            self._name, kind=self._kind, attributes={**self._measured, **more}
        )
        self._token = context.attach(set_span_in_context(self._span))
        self._begun = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the span, and record its duration; the message of an exception is not recorded."""
        if kind is not None and names.ERROR not in self._measured:
            self.fail("cancelled" if issubclass(kind, asyncio.CancelledError) else kind.__name__)
        context.detach(self._token)
        self._span.end()
        self._durations.record(time.perf_counter() - self._begun, self._measured)

    def fail(self, error_type: str) -> None:
        """Mark the operation as failed; see ``NoSpan.fail``."""
        self._measured[names.ERROR] = error_type
        self._span.set_attribute(names.ERROR, error_type)
        self._span.set_status(Status(StatusCode.ERROR))

    def episode(self, episode: Episode) -> None:
        """Add the outcome of an episode; see ``NoSpan.episode``."""
        usage, prompt = episode.usage, len(episode.prompt_ids)
        tokens_in = int(usage.get("prompt_tokens", sum(prompt + turn.start for turn in episode.steps if prompt)))
        tokens_out = int(usage.get("completion_tokens", episode.policy_tokens))
        self._span.set_attributes(
            {
                names.ENVIRONMENT: episode.task,
                names.END: episode.end,
                names.CORRECT: episode.correct,
                names.REWARD: float(episode.reward),
                names.TURNS: episode.turns,
                names.TOOL_CALLS: episode.tool_calls,
                names.TOOL_ERRORS: sum(status.is_error for status in episode.statuses),
                names.GROUP: episode.group,
                names.INPUT_TOKENS: tokens_in,
                names.OUTPUT_TOKENS: tokens_out,
            }
        )
        if episode.failed or episode.unusable:
            self.fail(episode.end)
        recorder = self._recorder
        recorder.episodes.add(
            1,
            {names.ENVIRONMENT: episode.task, names.END: episode.end, names.CORRECT: episode.correct},
        )
        if episode.available:
            recorder.rewards.record(float(episode.reward), {names.ENVIRONMENT: episode.task})

    def generation(self, prompt_tokens: int | None, completion_tokens: int | None, finish: str) -> None:
        """Add token counts and finish reason of a turn; see ``NoSpan.generation``."""
        if finish:
            self._span.set_attribute(names.FINISH, [finish])
        for name, kind, count in (
            (names.INPUT_TOKENS, "input", prompt_tokens),
            (names.OUTPUT_TOKENS, "output", completion_tokens),
        ):
            if count is not None:
                self._span.set_attribute(name, count)
                self._recorder.tokens.record(count, {**self._measured, names.TOKEN_TYPE: kind})

    def texts(self, messages: Iterable[tuple[str, str]], text: str, finish: str) -> None:
        """Add the conversation and the turn; see ``NoSpan.texts``."""
        said = [{"role": role, "parts": [_part(content)]} for role, content in messages]
        replied = [{"role": "assistant", "parts": [_part(text)], "finish_reason": finish}]
        self._span.set_attributes({names.INPUT_MESSAGES: _json(said), names.OUTPUT_MESSAGES: _json(replied)})

    def tool_result(
        self, status: ToolStatus, error_type: str | None, injected: bool, arguments: Mapping[str, Any], text: str
    ) -> None:
        """Add the outcome of a tool call; see ``NoSpan.tool_result``."""
        self._measured[names.STATUS] = str(status)
        self._span.set_attribute(names.STATUS, str(status))
        if injected:
            self._measured[names.INJECTED] = True
            self._span.set_attribute(names.INJECTED, True)
        if status.is_error or status is ToolStatus.UNAVAILABLE:
            self.fail(str(status))
        if status is ToolStatus.EXCEPTION and error_type:
            self._span.set_attribute(names.EXCEPTION, error_type if error_type in _EXCEPTIONS else names.OTHER)
        if self.content:
            self._span.set_attribute(names.TOOL_ARGUMENTS, _json(dict(arguments)))
            self._span.set_attribute(names.TOOL_RESULT, _plain(text))


def _part(content: str) -> dict[str, str]:
    return {"type": "text", "content": content}


def _json(value: Any) -> str:
    return _plain(json.dumps(value, ensure_ascii=False, default=str))


def _plain(text: str) -> str:
    return encodable(hidden(text))
