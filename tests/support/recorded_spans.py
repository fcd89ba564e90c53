"""Spans and metrics that the SDK's in-memory exporters hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rstar2_env.core.telemetry import recording


@dataclass
class Recorded:
    """What a block recorded."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Every span that has ended, in the order of their ends."""
        return self.exporter.get_finished_spans()

    def named(self, start: str) -> list[ReadableSpan]:
        """The spans whose names start so, in the order of their beginnings."""
        return sorted((one for one in self.spans if one.name.startswith(start)), key=lambda one: one.start_time or 0)

    def parents(self) -> dict[str, set[str]]:
        """The names of the parents of the spans of each name; empty for a root."""
        ids = {one.context.span_id: one.name for one in self.spans if one.context is not None}
        found: dict[str, set[str]] = {}
        for one in self.spans:
            found.setdefault(one.name, set()).add("" if one.parent is None else ids[one.parent.span_id])
        return found

    def metrics(self) -> dict[str, Any]:
        """Every metric by its name."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: metric
            for of_resource in data.resource_metrics
            for of_scope in of_resource.scope_metrics
            for metric in of_scope.metrics
        }

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """The attributes and the data of each point of a metric."""
        return [(dict(point.attributes), point) for point in self.metrics()[name].data.data_points]


@contextmanager
def recorded_spans(*, content: bool = False) -> Iterator[Recorded]:
    """Record what the block does."""
    found = Recorded()
    tracers, meters = TracerProvider(), MeterProvider(metric_readers=[found.reader])
    tracers.add_span_processor(SimpleSpanProcessor(found.exporter))
    with recording(tracers=tracers, meters=meters, content=content):
        yield found
