"""``Metrics``: the metrics of the server in the format of Prometheus.

Covered: the metrics, in a separate registry for each server. Not covered: persistence over restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""Content type of the metrics page."""
BUCKETS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histograms' buckets, in seconds."""
_NAMESPACE = "rstar2_sandbox"


class Metrics:
    """The metrics that the server shows at ``/metrics``.

    Args:
        gauges: For each gauge, by name: a function that returns its value whenever the metrics are requested, and a
            help text.

    Attributes:
        calls: Counter of finished calls, by status.
        started: Counter of calls passed to the provider.
        rejected: Counter of refused calls.
        repeated: Counter of calls that were sent again under a known id, and did not run again.
        cancelled: Counter of calls that were ended because their outcomes were no longer needed.
        unauthorized: Counter of requests without the right token.
        wait: Histogram of the seconds that calls waited in the queue.
        service: Histogram of the seconds from the start of a call to its outcome.
    """

    def __init__(self, gauges: Mapping[str, tuple[Callable[[], float], str]]) -> None:
        self._registry = CollectorRegistry()
        self.calls = self._counter("calls_total", "Finished calls, by status.", "status")
        self.started = self._counter("started_total", "Calls passed to the provider.")
        self.rejected = self._counter(
            "rejected_total", "Calls refused because the queue was full or the server was stopping."
        )
        self.repeated = self._counter(
            "repeated_total", "Calls that were sent again under a known id and did not run again."
        )
        self.cancelled = self._counter(
            "cancelled_total", "Calls ended because their client cancelled them or disconnected."
        )
        self.unauthorized = self._counter("unauthorized_total", "Requests without the right token.")
        self.wait = self._histogram("wait_seconds", "Seconds that a call waited in the queue.")
        self.service = self._histogram("service_seconds", "Seconds from the provider's start of a call to its outcome.")
        for name, (read, line) in gauges.items():
            Gauge(name, line, namespace=_NAMESPACE, registry=self._registry).set_function(read)

    def page(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _counter(self, name: str, line: str, *labels: str) -> Counter:
        return Counter(name, line, labels, namespace=_NAMESPACE, registry=self._registry)

    def _histogram(self, name: str, line: str) -> Histogram:
        return Histogram(name, line, namespace=_NAMESPACE, registry=self._registry, buckets=BUCKETS_S)
