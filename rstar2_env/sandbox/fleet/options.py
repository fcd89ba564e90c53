"""Options of the client of a fleet, independent of how it finds its servers."""

from __future__ import annotations

from typing import Protocol


class FleetOptions(Protocol):
    """Options that ``RemoteOptions`` and ``RayOptions`` share."""

    @property
    def batch(self) -> int:
        """Largest number of calls in one request."""
        ...

    @property
    def linger_ms(self) -> float:
        """Milliseconds that a call waits to share a request with others, while every server is busy."""
        ...

    @property
    def retries(self) -> int:
        """How many times a call is retried after its server lost it or the sandbox of the server failed."""
        ...

    @property
    def patience_s(self) -> float:
        """Seconds that a call waits for a server that is down."""
        ...
