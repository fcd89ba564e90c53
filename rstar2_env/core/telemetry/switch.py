"""``recording``: switches telemetry on for a block if environment variables request it, and flushes it at the end.

``RSTAR2_OTEL`` is ``0`` (off), ``1`` (on) or the address of a collector. Without it, any of the standard
variables ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` and
``OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`` switches telemetry on. ``OTEL_SDK_DISABLED=true`` switches it off in any case.
All other standard variables apply too (headers, sampler, intervals).

A collector that does not answer delays the end of a run by at most ``FLUSH_S`` seconds: a separate thread sends spans,
and drops them if its queue is full. Not covered: gRPC, logs.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.telemetry import spans
from rstar2_env.core.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

SWITCH = "RSTAR2_OTEL"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable that switches the recording of texts on: ``true``, ``span_only`` or ``span_and_event``."""
FLUSH_S = 3.0
"""Longest time to send the remaining spans and metrics at the end of a run, in seconds."""
GONE_S = 0.5
"""Longest time to send the remaining spans and metrics at the end of a run if sending has failed before, in seconds."""

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
_PROTOCOLS = (
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
)
_QUEUE = 1 << 15  # spans; a step of 512 episodes has some ten thousand
_LOG = logging.getLogger(__name__)


@contextmanager
def recording(
    *,
    tracers: TracerProvider | None = None,
    meters: MeterProvider | None = None,
    content: bool | None = None,
) -> Iterator[None]:
    """Within the ``with`` block, record spans and metrics, if environment variables request it or providers are given.

    Within another such block, this has no effect. OpenTelemetry's global providers are not set, and telemetry is off
    after the block.

    Args:
        tracers: Your own tracer provider, which stays open; if it is given, the environment variables are not read.
        meters: Your own meter provider; if only ``tracers`` is given, no metrics are recorded.
        content: Whether to record texts; ``None`` lets the environment variable
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` decide.

    Raises:
        ConfigurationError: ``RSTAR2_OTEL`` has an unknown value, or it requests telemetry and a standard variable
            requests an unsupported protocol or exporter.
        MissingExtraError: ``RSTAR2_OTEL`` requests telemetry, and the extra ``otel`` is not installed.
    """
    if spans.is_recording():
        yield
        return
    given = tracers is not None or meters is not None
    endpoint = None if given else _wanted()
    if not given and endpoint is None:
        yield
        return
    sender = _Sender()
    try:
        if not given:
            tracers, meters = sender.open(endpoint or "")
        recorder = _recorder(tracers, meters, _captures() if content is None else content)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        if SWITCH in os.environ or given:
            raise MissingExtraError("otel", "Telemetry") from error
        _LOG.warning(
            "The environment variables OTEL_… enable OpenTelemetry, but it is not installed, so nothing is sent: %s",
            _INSTALL,
        )
        yield
        return
    spans.use(recorder)
    try:
        yield
    finally:
        spans.use(None)
        sender.close()


_INSTALL = "pip install 'rstar2-env[otel]', or set RSTAR2_OTEL=0."


def _recorder(tracers: Any, meters: Any, content: bool) -> Any:
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.trace import NoOpTracerProvider

    from rstar2_env.core.telemetry.recorder import Recorder

    return Recorder(tracers or NoOpTracerProvider(), meters or NoOpMeterProvider(), content=content)


def _wanted() -> str | None:
    """Return the collector's address, empty if OpenTelemetry's variables define it; ``None`` if telemetry is off."""
    said = os.environ.get(SWITCH, "").strip()
    if said.lower() in ("0", "off", "false") or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if not said and not any(os.environ.get(name) for name in _ENDPOINTS):
        return None
    if problem := _unsupported():
        if said:
            raise ConfigurationError(problem)
        _LOG.warning("No telemetry is sent: %s", problem)
        return None
    if said.lower() in ("", "1", "on", "true"):
        return ""
    if re.fullmatch(r"https?://[^/\s]+(/\S*)?", said):
        return said.rstrip("/")
    raise ConfigurationError(
        f"The environment variable {SWITCH} must be 0, 1 or the address of a collector, such as "
        f"http://127.0.0.1:4318, not {said!r}."
    )


def _unsupported() -> str:
    """Describe an unsupported protocol or exporter that OpenTelemetry's variables request; empty if there is none."""
    for name in _PROTOCOLS:
        if (said := os.environ.get(name, "").strip()) not in ("", "http/protobuf"):
            return (
                f"The environment variable {name}={said} selects a protocol that is not supported: set it to "
                "http/protobuf, which collectors receive on port 4318."
            )
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"):
        if (said := os.environ.get(name, "").strip()) not in ("", "otlp", "none"):
            return (
                f"The environment variable {name}={said} selects an exporter that is not supported: set it to "
                "otlp or none."
            )
    return ""


def _captures() -> bool:
    said = os.environ.get(CONTENT, "").strip().lower()
    if said in ("true", "span_only", "span_and_event"):
        return True
    if said not in ("", "false", "no_content"):
        _LOG.warning(
            "The environment variable %s=%s does not enable the recording of prompts and replies: set it to span_only "
            "to record them on spans.",
            CONTENT,
            said,
        )
    return False


@dataclass(slots=True)
class _Sender:
    """The OpenTelemetry providers that ``recording`` created, and their exporters.

    Attributes:
        closing: One function per provider, which sends the remaining data and shuts the provider down.
        abandoning: One function per exporter, which makes the exporter stop retrying.
    """

    closing: list[Callable[[], Any]] = field(default_factory=list)
    abandoning: list[Callable[[], Any]] = field(default_factory=list)
    _told: _FirstFailure | None = None

    def open(self, endpoint: str) -> tuple[Any, Any]:
        """Return a tracer provider and a meter provider that send to a collector.

        A provider is ``None`` if its exporter is switched off. If ``endpoint`` is empty, OpenTelemetry's environment
        variables define the collector.
        """
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        about = {"service.version": __version__, **({} if named else {"service.name": "rstar2-env"})}
        if (rank := os.environ.get("RANK")) is not None:
            about["service.instance.id"] = rank
        resource = Resource.create(about)
        self._told = told = _FirstFailure()
        tracers = meters = None
        if os.environ.get("OTEL_TRACES_EXPORTER", "").strip() != "none":
            spans_out = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces" if endpoint else None)
            tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
            queue = None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else _QUEUE
            tracers.add_span_processor(BatchSpanProcessor(spans_out, max_queue_size=queue))
            self.closing.append(tracers.shutdown)
            self.abandoning.append(spans_out.shutdown)
        if os.environ.get("OTEL_METRICS_EXPORTER", "").strip() != "none":
            metrics_out = OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics" if endpoint else None)
            reader = PeriodicExportingMetricReader(metrics_out)
            meters = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
            self.closing.append(meters.shutdown)
            self.abandoning.append(metrics_out.shutdown)
        told.sending = True
        return tracers, meters

    def close(self) -> None:
        """Send the remaining spans and metrics, for at most ``FLUSH_S`` seconds; then give up."""
        threads = [threading.Thread(target=_quietly, args=(one,), daemon=True) for one in self.closing]
        for thread in threads:
            thread.start()
        ends = time.monotonic() + FLUSH_S
        gone = time.monotonic() + GONE_S
        while (late := _alive(threads, 0.02)) and time.monotonic() < (gone if self._failed else ends):
            pass
        if late:
            for abandon in self.abandoning:
                _quietly(abandon)
            _alive(threads, 0.2)
        if self._told is not None:
            self._told.remove(late=late)

    @property
    def _failed(self) -> bool:
        return self._told is not None and self._told.said


def _alive(threads: list[threading.Thread], seconds: float) -> bool:
    """Wait at most ``seconds`` for each thread; return whether any thread still runs."""
    for thread in threads:
        thread.join(seconds)
    return any(thread.is_alive() for thread in threads)


def _quietly(work: Callable[[], Any]) -> None:
    try:
        work()
    except Exception as error:
        _LOG.debug("OpenTelemetry: %s", error)


class _FirstFailure(logging.Handler):
    """Passes on only the first log message about a failure to send, so that a dead collector floods no terminal.

    Attributes:
        sending: Whether the providers are open; messages before they open are about the environment variables.
        said: Whether sending has failed.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logger = logging.getLogger("opentelemetry")
        self._before, self._logger.propagate = self._logger.propagate, False
        self.sending = self.said = False
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Log every message about an environment variable, but only the first message about a failure to send."""
        if not self.sending:
            _LOG.warning("OpenTelemetry could not use an environment variable: %s", record.getMessage())
        elif not self.said:
            self.said = True
            _LOG.warning(
                "Telemetry could not be sent to the collector; the run continues without it: %s", record.getMessage()
            )

    def remove(self, *, late: bool) -> None:
        """Stop handling the SDK's log messages; if ``late``, warn that data could not be sent in time."""
        if late and not self.said:
            _LOG.warning("Telemetry could not be sent within %g s of the end of the run.", FLUSH_S)
        self._logger.removeHandler(self)
        self._logger.propagate = self._before
