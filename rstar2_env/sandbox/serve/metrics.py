"""The server's metrics in the format of Prometheus.

Covered: which metrics there are, in a registry for each server. Not covered: persistence over restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""Content type of the page."""
BUCKETS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histograms, in seconds."""
_NAMESPACE = "rstar2_sandbox"


class Metrics:
    """Everything that ``/metrics`` shows.

    Args:
        gauges: Values read when the page is requested, by name: a function and a help text.

    Attributes:
        calls: Calls that have an outcome, by its status.
        started: Calls given to the provider.
        rejected: Calls that were refused.
        repeated: Calls that were sent again and not run again.
        cancelled: Calls ended because their outcomes were no longer needed.
        unauthorized: Requests without the right token.
        wait: Seconds that calls waited in the queue.
        service: Seconds from a call's start to its outcome.
    """

    def __init__(self, gauges: Mapping[str, tuple[Callable[[], float], str]]) -> None:
        self._registry = CollectorRegistry()
        self.calls = self._counter("calls_total", "Calls that have an outcome, by its status.", "status")
        self.started = self._counter("started_total", "Calls given to the provider.")
        self.rejected = self._counter(
            "rejected_total", "Calls refused because the queue was full or the server was stopping."
        )
        self.repeated = self._counter(
            "repeated_total", "Calls that were sent again under a known id, and not run again."
        )
        self.cancelled = self._counter("cancelled_total", "Calls ended because their client asked for it or went away.")
        self.unauthorized = self._counter("unauthorized_total", "Requests without the right token.")
        self.wait = self._histogram("wait_seconds", "Seconds that a call waited in the queue.")
        self.service = self._histogram("service_seconds", "Seconds from the provider's start of a call to its outcome.")
        for name, (read, line) in gauges.items():
            Gauge(name, line, namespace=_NAMESPACE, registry=self._registry).set_function(read)

    def page(self) -> bytes:
        """The page."""
        return generate_latest(self._registry)

    def _counter(self, name: str, line: str, *labels: str) -> Counter:
        return Counter(name, line, labels, namespace=_NAMESPACE, registry=self._registry)

    def _histogram(self, name: str, line: str) -> Histogram:
        return Histogram(name, line, namespace=_NAMESPACE, registry=self._registry, buckets=BUCKETS_S)
