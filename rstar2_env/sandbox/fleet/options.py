"""Options that the providers with several sandbox servers, ``remote`` and ``ray``, share."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.options.declare import option
from rstar2_env.sandbox.options import ProviderOptions


@dataclass(frozen=True)
class FleetOptions(ProviderOptions):
    """Base class of the options of ``remote`` and ``ray``.

    Attributes:
        batch: Largest number of calls in one request.
        linger_ms: Milliseconds that a call waits for further calls, to share one request, while every server is busy.
        retries: Maximum number of times that a call is run again after its server was lost or the server's sandbox
            failed.
        reconnect_timeout_s: Seconds that a call waits for a server that is down.
    """

    batch: int = option(64, least=1)
    linger_ms: float = option(2.0, least=0, unit="milliseconds")
    retries: int = option(1, least=0)
    reconnect_timeout_s: float = option(60.0, above=0, unit="seconds", finite=False)
