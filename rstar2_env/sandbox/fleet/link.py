"""``Link``: a client's connection to one sandbox server; tracks the server's state and capacity, and sends requests.

Covered: the capabilities that a server reports, and the requests to the server. Not covered: the choice of calls for a
server (``dispatch``). Everything here runs in the client's event loop.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from rstar2_env.sandbox.fleet.codec import PROTOCOL, dump
from rstar2_env.sandbox.job import Capability

if TYPE_CHECKING:
    import httpx

_BEATS = 5
"""Number of heartbeat intervals without data after which a server's answer counts as lost."""


class LinkError(Exception):
    """A server does not give a valid answer or cannot be used; the message gives the reason."""


class Link:
    """The client's connection to one sandbox server.

    Args:
        url: Address of the server.
        http: The client's HTTP pool.
        strict: Whether to refuse a server that lacks a required layer of isolation.
        name: Name of the server in messages; by default its address.
    """

    def __init__(self, url: str, http: httpx.AsyncClient, *, strict: bool, name: str = "") -> None:
        self.url = url
        self.name = name or url
        self.up = False
        self.gone = False
        """Whether the server has certainly ended, with all its programs, and will not come back."""
        self.why = "it has not been contacted yet"
        """Reason why the server is down."""
        self.down_since = 0.0
        self.boot = ""
        self.slots = 1
        self.room = 1
        """Largest number of running and waiting calls that the server accepts."""
        self.max_request_bytes = 1 << 20
        self.max_limits: dict[str, float | None] = {}
        self.layers: tuple[Capability, ...] = ()
        self.in_flight = 0
        self.talks: set[asyncio.Task[None]] = set()
        """The asyncio tasks of requests that are in progress."""
        self.sessions = 0
        """Number of sessions on the server."""
        self.strikes = 0
        """Number of consecutive failures of the server's sandbox; while above 0, the server gets one call at a time."""
        self.blocked_until = 0.0
        """Time until which the server gets no calls, on the clock of the event loop."""
        self.failures = 0
        """Number of consecutive lost connections."""
        self._http = http
        self._strict = strict
        self.silence_s = 10.0
        """Seconds without data after which the server's answer counts as lost."""
        self._cut_warned = False

    async def connect(self, within_s: float) -> None:
        """Request the capabilities of the server, and mark it as up.

        Raises:
            LinkError: The server cannot be used.
        """
        import httpx

        try:
            answer = await self._http.get(f"{self.url}/capabilities", timeout=within_s)
            if answer.status_code != 200:
                raise LinkError(refusal(answer.status_code, answer.content))
            self._read_capabilities(answer.json())
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LinkError(str(error) or type(error).__name__) from None
        except (KeyError, TypeError, ValueError) as error:
            raise LinkError(f"it did not answer like a sandbox server ({type(error).__name__}: {error})") from None
        self.up = True

    @asynccontextmanager
    async def send(self, calls: Sequence[bytes]) -> AsyncIterator[httpx.Response]:
        """Send calls, each encoded as JSON; the answer has one line per call.

        Raises:
            httpx.HTTPError: The server could not be reached, or the connection was lost.
        """
        import httpx

        body = b"".join((b'{"boot":"', self.boot.encode(), b'","calls":[', b",".join(calls), b"]}"))
        timeout = httpx.Timeout(connect=5.0, read=self.silence_s, write=self.silence_s, pool=None)
        async with self._http.stream("POST", f"{self.url}/v1/calls", content=body, timeout=timeout) as answer:
            yield answer

    async def post(self, path: str, value: Any) -> None:
        """Post a message to the server; failures are ignored."""
        import httpx

        with suppress(httpx.HTTPError):
            await self._http.post(f"{self.url}{path}", content=dump(value), timeout=2.0)

    def warn_of_cut(self, names: Sequence[str]) -> None:
        """Warn, only once for each server, that the server lowered limits of a job; ``names`` lists these limits."""
        if not self._cut_warned:
            self._cut_warned = True
            bounds = ", ".join(f"{name} {self.max_limits.get(name)}" for name in names)
            text = (
                f"The sandbox server {self.name} allows smaller limits than a program requested, and uses its "
                f"own: {bounds}."
            )
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _read_capabilities(self, reported: dict[str, Any]) -> None:
        if reported["protocol"] != PROTOCOL:
            raise LinkError(
                f"it uses version {reported['protocol']} of the protocol, and this client uses version "
                f"{PROTOCOL}: install the same version of rstar2-env on both machines"
            )
        self.layers = tuple(Capability(**layer) for layer in reported["layers"])
        missing = [f"{layer.name} ({layer.detail})" for layer in self.layers if layer.required and not layer.active]
        if missing and self._strict:
            raise LinkError(
                "isolation='strict' requires layers of isolation that this server does not provide: "
                f"{'; '.join(missing)}"
            )
        self.boot = str(reported["boot"])
        self.slots = max(1, int(reported["slots"]))
        self.room = max(1, int(reported["room"]))
        self.max_request_bytes = int(reported["max_request_bytes"])
        self.max_limits = dict(reported["max_limits"])
        self.silence_s = max(5.0, _BEATS * float(reported["beat_s"]))


def refusal(status: int, body: bytes) -> str:
    """Extract the reason from a server's answer with a status other than 200."""
    try:
        text = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        text = body[:200].decode("utf-8", "replace")
    if status == 401:
        text = "it rejected the token" if text else "it requires a token: set the option token"
    return f"{text} (HTTP {status})"
