"""The client of OpenAI-compatible endpoints: chat completions, with the standard library only.

Covered: several attempts with growing waits, ``Retry-After``, time limits, connections that are kept between requests
and shared by threads, HTTPS, proxies of the environment. Not covered: streaming, token ids (the engine ``vllm-server``
has them), event loops (call it in a thread).
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.retries import delay, failure, may_pass, reason, retry_after

_PATH = "/chat/completions"
_FILTERED = re.compile(r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation")
_TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|context (?:window|size|length)", re.IGNORECASE)


class RequestPace(Protocol):
    """Says when a request may be sent."""

    def wait(self) -> None:
        """Wait until one may."""
        ...

    def hold(self, seconds: float) -> None:
        """Send none for so long, since the server asked for that."""
        ...


@dataclass(frozen=True, slots=True)
class _Failed:
    """An attempt without an answer.

    Attributes:
        problem: What went wrong.
        again: Whether another attempt may help.
        wait_s: How long the server asks to wait.
        cause: As in ``ServiceError``.
    """

    problem: str
    again: bool
    wait_s: float | None = None
    cause: str = ""


class ChatEndpoint:
    """Asks one OpenAI-compatible endpoint for chat completions; any thread may use it, and it may be pickled.

    Args:
        base_url: The endpoint up to and with its version, such as ``http://127.0.0.1:8000/v1``.
        api_key: Sent as a bearer token; ``None`` sends none.
        timeout_s: Seconds to wait for an answer, and again for a connection.
        retries: Attempts after the first, on temporary failures: overload (408, 409, 425, 429, 5xx), a lost connection.
        retry_timeouts: Whether a request that timed out is retried too.
        max_bytes: Longest answer that is read.
        option: Name of the caller's option that holds ``base_url``, for messages.
        pace: Says when each attempt may be sent; ``None`` sends at once.

    Attributes:
        url: The address that requests go to.

    Raises:
        ConfigurationError: ``base_url`` is not an address, or a number is out of its range.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        retries: int = 6,
        retry_timeouts: bool = False,
        max_bytes: int = 64 << 20,
        option: str = "base_url",
        pace: RequestPace | None = None,
    ) -> None:
        if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", str(base_url)):
            raise ConfigurationError(f"{option} must be an address such as http://127.0.0.1:8000/v1, not {base_url!r}.")
        if not timeout_s > 0 or retries < 0:
            raise ConfigurationError(
                f"timeout_s must be positive and retries 0 or more, not {timeout_s!r} and {retries!r}."
            )
        self._arguments: dict[str, Any] = {
            "base_url": str(base_url),
            "api_key": api_key,
            "timeout_s": timeout_s,
            "retries": retries,
            "retry_timeouts": retry_timeouts,
            "max_bytes": max_bytes,
            "option": option,
        }
        self._pace = pace
        self.url = str(base_url).rstrip("/") + _PATH
        self._timeout_s, self._retries, self._retry_timeouts = timeout_s, retries, retry_timeouts
        self._max_bytes = max_bytes
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "rstar2-env"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._route = _Route.to(self.url)
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()
        weakref.finalize(self, _close, self._idle)

    def complete(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> str:
        """Ask for the next message of a conversation.

        Args:
            messages: The conversation, each message with its ``role`` and ``content``.
            **fields: The other fields of the request: ``model`` (the name under which the endpoint serves it),
                ``temperature``, ``max_tokens``, …

        Returns:
            The text of the first choice; empty where the endpoint gives none.

        Raises:
            ServiceError: The endpoint did not answer, or refused, or answered something else; the message names it and
                quotes its answer.
        """
        answer = self.ask(messages, **fields)
        try:
            return str(answer["choices"][0]["message"]["content"] or "")
        except (KeyError, IndexError, TypeError) as error:
            raise ServiceError(
                f"{self.url} returned something other than a chat completion: {str(answer)[:300]}"
            ) from error

    def ask(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Any:
        """Ask for the next message of a conversation.

        Args:
            messages: The conversation, as the endpoint reads it.
            **fields: The other fields of the request.

        Returns:
            The endpoint's whole answer, as JSON.

        Raises:
            ServiceError: The endpoint did not answer, or refused; the message names it and quotes its answer.
        """
        # Escaped to ASCII, which lone surrogates survive.
        body = json.dumps({**fields, "messages": list(messages)}).encode("ascii")
        attempts = 0
        while True:
            attempts += 1
            if self._pace is not None:
                self._pace.wait()
            answer = self._attempt(body)
            if not isinstance(answer, _Failed):
                return answer
            if not answer.again or attempts > self._retries:
                raise ServiceError(failure(f"POST {self.url}", answer.problem, attempts), cause=answer.cause)
            if answer.wait_s is None:
                time.sleep(delay(attempts))
            elif self._pace is None:
                time.sleep(answer.wait_s)
            else:
                self._pace.hold(answer.wait_s)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its arguments, without connections."""
        return _rebuild, (self._arguments,)

    def _attempt(self, body: bytes) -> Any:
        """Make one attempt; returns the answer, or how it failed."""
        while True:
            connection = self._kept()
            fresh = connection is None
            if connection is None:
                connection = self._route.connection(self._timeout_s)
                try:
                    connection.connect()
                except OSError as error:
                    connection.close()
                    return _unreached(error)
            try:
                connection.request("POST", self._route.target, body, {**self._headers, **self._route.headers})
                response = connection.getresponse()
                data = response.read(self._max_bytes + 1)
            except TimeoutError:
                connection.close()
                return _Failed(f"no answer within {self._timeout_s:g} s; raise timeout_s", self._retry_timeouts)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if not fresh and isinstance(error, (ConnectionError, http.client.BadStatusLine)):
                    continue  # the server had closed an idle connection: this does not count as an attempt
                return _Failed(f"{type(error).__name__}: {error or 'the connection was lost'}", True)
            if response.will_close or len(data) > self._max_bytes:
                connection.close()
            else:
                self._keep(connection)
            return self._read(response, data)

    def _read(self, response: http.client.HTTPResponse, data: bytes) -> Any:
        if len(data) > self._max_bytes:
            return _Failed(f"the answer is longer than {self._max_bytes} bytes", False)
        text = data.decode("utf-8", "replace")
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not 200 <= response.status < 300:
            problem = f"{response.status}: {reason(text if answer is None else answer)}"
            cause = "refused" if _FILTERED.search(text) else "too_long" if _TOO_LONG.search(text) else ""
            wait_s = retry_after(response.headers.get("Retry-After"))
            return _Failed(problem, may_pass(response.status), wait_s, cause if response.status == 400 else "")
        return _Failed(f"the answer is not JSON: {text[:200]!r}", False) if answer is None else answer

    def _kept(self) -> http.client.HTTPConnection | None:
        """A connection from an earlier request; none of those of a process that this one was forked from."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                _close(self._idle)
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append(connection)


@dataclass(frozen=True, slots=True)
class _Route:
    """How an address is reached: directly, or through the proxy that the environment names.

    Attributes:
        secure: Whether the endpoint speaks HTTPS.
        host: Host to connect to, the endpoint's or the proxy's.
        port: Its port; ``None`` for the protocol's default.
        target: Target in the request line.
        headers: Headers for the proxy in each request.
        tunnel: Host, port and headers of the endpoint behind a proxy for HTTPS.
    """

    secure: bool
    host: str
    port: int | None
    target: str
    headers: Mapping[str, str]
    tunnel: tuple[str, int | None, Mapping[str, str]] | None = None

    @classmethod
    def to(cls, url: str) -> _Route:
        parts = urllib.parse.urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        target = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        written = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(parts.scheme)
        if not written:
            return cls(secure, host, parts.port, target, {})
        proxy = urllib.parse.urlsplit(written if "://" in written else f"http://{written}")
        said: dict[str, str] = {}
        if proxy.username:
            name = urllib.parse.unquote(f"{proxy.username}:{proxy.password or ''}")
            said["Proxy-Authorization"] = f"Basic {base64.b64encode(name.encode()).decode()}"
        to = (proxy.hostname or "", proxy.port or 80)
        if secure:
            return cls(True, *to, target, {}, (host, parts.port, said))
        return cls(False, *to, url, said)

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if not self.secure:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=context)
        if self.tunnel is not None:
            connection.set_tunnel(self.tunnel[0], self.tunnel[1], dict(self.tunnel[2]))
        return connection


def _unreached(error: OSError) -> _Failed:
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "its certificate cannot be verified; name a file of additional ones in SSL_CERT_FILE"
        return _Failed(f"{advice} ({error})", False)
    # A name that does not exist is a mistake; one that cannot be looked up now is not.
    again = not (isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME)
    return _Failed(f"it cannot be reached: {error.strerror or error or type(error).__name__}", again)


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _rebuild(arguments: Mapping[str, Any]) -> ChatEndpoint:
    return ChatEndpoint(**arguments)
