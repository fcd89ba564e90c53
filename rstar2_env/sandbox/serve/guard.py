"""``ServiceGuard``: checks requests before they reach the application: token, content type, size.

Covered: every request except ``/healthz`` and ``/ping``, before its body is read; while the server stops, new calls are
refused, and each connection is closed after its response. If no token is required, programs on this machine may send
requests, but web pages in a browser on this machine may not: the Host header must name this machine (a page could make
its own name resolve to 127.0.0.1), and the Origin header must not name another host. Not covered: encryption (TLS
options or a proxy), and rate limits.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rstar2_env.core.secret import Secret
from rstar2_env.sandbox.serve.body import too_large
from rstar2_env.sandbox.serve.options import is_loopback

if TYPE_CHECKING:
    from rstar2_env.sandbox.serve.service import Service

_OPEN = ("/healthz", "/ping")
_WHILE_STOPPING = ("/healthz", "/metrics", "/v1/cancel")


class ServiceGuard:
    """Passes a request to the application, or answers with an error if a check fails.

    Args:
        app: The application.
        token: The required token, sent as a bearer token or as the password of basic authentication (for clients that
            accept only a host name: ``user:TOKEN@host``); ``None`` requires none.
        max_bytes: Largest size of a request's body, in bytes.
        service: The service of the application; while the service stops, new calls are refused.
    """

    def __init__(self, app: ASGIApp, token: Secret | None, max_bytes: int, service: Service) -> None:
        self._app = app
        self._token = token
        self._max_bytes = max_bytes
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or forward the request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(Request(scope)) or self._app
        with contextlib.suppress(ClientDisconnect):  # the client disconnected before its request was complete
            await answer(scope, receive, _closing(send) if self._service.draining else send)

    def _refusal(self, request: Request) -> Response | None:
        # The raw path: in older versions of Starlette, the Host header can change the path of ``request.url``.
        path = request.scope["path"]
        if path in _OPEN:
            return None
        if self._token is not None:
            given = _read_token(request.headers.get("authorization", ""))
            if given is None or not hmac.compare_digest(given, self._token.reveal().encode()):
                self._service.metrics.unauthorized.inc()
                text = "This server requires a token: send the header 'Authorization: Bearer TOKEN'."
                return JSONResponse({"error": text}, 401, headers={"WWW-Authenticate": "Bearer"})
        elif (origin := foreign_origin(request)) is not None:
            self._service.metrics.unauthorized.inc()
            text = f"Without a token, this server accepts only requests from local programs, not from {origin}."
            return JSONResponse({"error": text}, 403)
        if self._service.draining and path not in _WHILE_STOPPING:
            self._service.metrics.rejected.inc()
            return JSONResponse(
                {
                    "error": "The server is stopping and does not accept calls any more.",
                    "refused": "stopping",
                    "retry_after_s": 1.0,
                },
                503,
            )
        if request.method != "POST":
            return None
        # A browser lets any web page post other content types to loopback ports, but not JSON.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return JSONResponse(
                {"error": "The request must be JSON, with the header 'Content-Type: application/json'."}, 415
            )
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._max_bytes:
            return too_large(self._max_bytes)
        return None


def _closing(send: Send) -> Send:
    """Wrap ``send`` so that the connection closes after the response and does not keep a stopping server alive."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return send_and_close


def foreign_origin(request: HTTPConnection) -> str | None:
    """Return a text such as ``the host 'a.com'`` if the Host or Origin header names another machine, else ``None``."""
    for header, start in (("host", "//"), ("origin", "")):
        value = request.headers.get(header, "//localhost".removeprefix(start))
        try:
            name = urlsplit(start + value).hostname or ""
        except ValueError:
            name = ""
        if not is_loopback(name):
            return f"the {header} {value[:100]!r}"
    return None


def _read_token(header: str) -> bytes | None:
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return value.strip().encode()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return None
    return None
