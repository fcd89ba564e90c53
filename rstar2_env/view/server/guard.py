"""Access control of the viewer's server, and the security headers of its responses.

Without a token, only requests to a loopback name are accepted, because a foreign page can make its own host name
resolve to 127.0.0.1. With a token, opening the link that contains the token sets a cookie; scripts cannot read this
cookie, and requests from other sites do not include it. Covered: method, Host, Origin, token, length of addresses,
response headers. Not covered: encryption; use a tunnel (``ssh -L``) or a proxy.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rstar2_env.core.secret import secret_of
from rstar2_env.sandbox.serve.options import is_loopback
from rstar2_env.view.server.options import ViewOptions

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_MOST_ADDRESS = 8192


class RequestGuard:
    """Middleware that forwards the requests of the viewer's page, and refuses all others.

    It refuses a request with a method other than GET or HEAD, with a foreign host name or origin, with a long address,
    or without the required token.

    Args:
        app: The guarded application.
        options: Options of the server, with the actual port.
    """

    def __init__(self, app: ASGIApp, options: ViewOptions) -> None:
        self._app, self._options = app, options
        self._token = secret_of(options.token)
        # Browsers share cookies between all ports of a host, so the name includes the port.
        self._cookie = f"rstar2_view_{options.port}"
        own = {socket.gethostname(), socket.getfqdn(), options.host, *options.names}
        self._names = {name.lower().rstrip(".") for name in own}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or forward it."""
        if scope["type"] != "http":
            return  # websockets are not supported; uvicorn rejects them itself
        request = Request(scope)
        app = self._refusal(request) or self._app
        cookie = self._cookie_for(request)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *_HEADERS]
                if cookie is not None:
                    headers.append((b"set-cookie", cookie))
                message = {**message, "headers": headers}
            await send(message)

        await app(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return _error("This server is read-only and accepts only GET requests.", 405)
        if len(request.scope.get("raw_path") or b"") + len(request.scope.get("query_string") or b"") > _MOST_ADDRESS:
            return _error(f"The address of the request is longer than {_MOST_ADDRESS} bytes.", 414)
        host = request.headers.get("host", "")
        if not self._is_ours(_name_in(f"//{host}")):
            return _error(
                f"This server does not accept requests for the host name {host[:100]!r}: add it with --allow-host.", 403
            )
        origin = request.headers.get("origin")
        if origin is not None and _netloc(origin) != host.lower():
            return _error("This server accepts only requests from the viewer's own page.", 403)
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and (
            request.headers.get("sec-fetch-mode") != "navigate"
        ):
            return _error("This server accepts only requests from the viewer's own page.", 403)
        if self._token is not None and not (self._in_link(request) or self._same(self._in_cookie(request))):
            return _error("This viewer requires a token: open the link that `rstar2 view` printed.", 401)
        return None

    def _is_ours(self, name: str) -> bool:
        if self._token is None:
            return is_loopback(name)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return is_loopback(name) or name.rstrip(".") in self._names
        return True

    def _in_link(self, request: Request) -> bool:
        return self._same(request.query_params.get("token", ""))

    def _in_cookie(self, request: Request) -> str:
        try:
            found = SimpleCookie(request.headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _same(self, shown: str) -> bool:
        if self._token is None:
            return False
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self._token.reveal().encode())

    def _cookie_for(self, request: Request) -> bytes | None:
        if self._token is None or not self._in_link(request):
            return None
        return f"{self._cookie}={self._token.reveal()}; Path=/; HttpOnly; SameSite=Strict".encode()


def _netloc(origin: str) -> str:
    """Return host and port of an origin; empty for ``null`` and for invalid origins."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme in ("http", "https") else ""


def _name_in(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def _error(text: str, status: int) -> Response:
    return JSONResponse({"error": text}, status)
