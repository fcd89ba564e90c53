"""What a fleet's client is told, however it finds its servers."""

from __future__ import annotations

from typing import Protocol


class FleetOptions(Protocol):
    """The options that ``RemoteOptions`` and ``RayOptions`` share."""

    @property
    def batch(self) -> int:
        """Largest number of calls in one request."""
        ...

    @property
    def linger_ms(self) -> float:
        """Milliseconds that a call waits for others to share a request with, while every server is busy."""
        ...

    @property
    def retries(self) -> int:
        """How many times a call that was lost, or that its server's sandbox failed, is retried."""
        ...

    @property
    def patience_s(self) -> float:
        """Seconds that a call waits for a server that is down."""
        ...
