"""A receiver of OTLP over HTTP, with the messages of the real ``opentelemetry-proto`` package.

It stands in for a collector, which neither PyPI nor Debian has; ``tests/bridges/test_phoenix.py`` has a server of
another project.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS: dict[str, Any] = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


@dataclass
class OtlpReceiver:
    """What arrived.

    Attributes:
        address: Where it listens.
        requests: Each request, parsed, by its path.
        headers: The headers of each request.
        scopes: Name, version and schema of the instrumentation of each request.
    """

    address: str
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def spans(self) -> list[Any]:
        """Every span."""
        return [span for of_scope in self._scopes("/v1/traces", "spans") for span in of_scope.spans]

    @property
    def metrics(self) -> list[Any]:
        """Every metric."""
        return [metric for of_scope in self._scopes("/v1/metrics", "metrics") for metric in of_scope.metrics]

    @property
    def schemas(self) -> set[str]:
        """The schema URLs of the instrumentations that sent spans."""
        return {of_scope.schema_url for of_scope in self._scopes("/v1/traces", "spans")}

    def _scopes(self, path: str, kind: str) -> list[Any]:
        """What each instrumentation sent to a path."""
        return [
            of_scope
            for sent_to, request in self.requests
            if sent_to == path
            for of_resource in getattr(request, f"resource_{kind}")
            for of_scope in getattr(of_resource, f"scope_{kind}")
        ]

    @property
    def resource(self) -> dict[str, str]:
        """The attributes of the process that sent the first request."""
        path, request = self.requests[0]
        found = (request.resource_spans if path == "/v1/traces" else request.resource_metrics)[0].resource
        return {one.key: one.value.string_value for one in found.attributes}


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Receive until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = _KINDS[self.path]()
            request.ParseFromString(body)
            receiver.headers.append(dict(self.headers))
            receiver.requests.append((self.path, request))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = OtlpReceiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
