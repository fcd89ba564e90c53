"""``OwnPages``: rejects requests of foreign web pages, to protect a server that has no authentication.

A page in a browser on this machine may open a websocket to any address, and may let its own host name resolve to this
machine. Covered: HTTP and WebSocket requests, by the headers Host and Origin. Not covered: programs, which may send any
header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from rstar2_env.sandbox.serve.guard import foreign_origin

_POLICY_VIOLATION = 1008


class OwnPages:
    """Middleware that refuses requests that web pages of other sites send.

    Args:
        app: The guarded application.
        loopback: Whether the server listens on loopback only; then the header Host must name this machine. Otherwise
            the server cannot know all names of this machine, so the header Origin must name the same host as Host.
    """

    def __init__(self, app: Any, *, loopback: bool) -> None:
        self._app, self._loopback = app, loopback

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Forward the request, or refuse it if a web page of another site sent it."""
        refused = scope["type"] in ("http", "websocket") and self._refusal(HTTPConnection(scope))
        if not refused:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refused[:120]})
        else:
            await JSONResponse({"error": refused}, 403)(scope, receive, send)

    def _refusal(self, asked: HTTPConnection) -> str:
        if self._loopback:
            foreign = foreign_origin(asked)
        else:
            origin, host = asked.headers.get("origin"), asked.headers.get("host", "")
            foreign = None if origin is None or _name(origin) == _name(f"//{host}") else f"the origin {origin[:100]!r}"
        return (
            ""
            if foreign is None
            else (
                f"This server does not accept requests from web pages with {foreign}, only requests from "
                "programs and from its own pages."
            )
        )


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or "?"
    except ValueError:
        return "?"
