"""JSON over HTTP: ``HttpClient`` for coroutines, with retries and a choice of servers; ``BlockingClient`` for threads.

Covered: lost connections, overload (429 with ``Retry-After``, 5xx), timeouts, cancellation (it closes the connection),
keep-alive connections, proxies set by environment variables. Not covered: streaming.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net.retries import delay, failure, may_pass, reason, retry_after
from rstar2_env.core.options.declare import Rule, Seconds, checked
from rstar2_env.core.progress import waiting
from rstar2_env.core.secret import Secret, bearer

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_WORTH_ANOTHER = ("lost", "passing")
_IDLE_S = 2.0
"""Seconds for which an unused connection is kept. It is less than the 5 seconds after which uvicorn, and therefore
vLLM, closes a connection: a request sent at that moment would be lost."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt to send a request.

    Attributes:
        answer: The answer: its parsed JSON, else its text.
        problem: Reason of the failure; ``None`` if the server answered.
        cause: ``lost`` (no connection) or ``passing`` (overload) if a later attempt may succeed, ``late`` if there was
            no answer in time; else empty.
        wait_s: Seconds to wait before a later attempt, as the server requested; ``None`` if it did not request a wait.
        status: Status of the response; 0 without one.
        text: Body of the response.
    """

    answer: Any = None
    problem: str | None = None
    cause: str = ""
    wait_s: float | None = None
    status: int = 0
    text: str = ""


def read_attempt(status: int, headers: Mapping[str, str], text: str, *, json_only: bool) -> Attempt:
    """Convert an HTTP response to the outcome of an attempt.

    Args:
        status: Status of the response.
        headers: Headers of the response.
        text: Body of the response.
        json_only: Whether an answer must be JSON, which is then parsed; otherwise the answer is the text.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        answer = text
        if json_only and 200 <= status < 300:
            return Attempt(problem=f"the answer is not JSON: {text[:200]!r}", status=status, text=text)
    if 200 <= status < 300:
        return Attempt(answer if json_only else text, status=status, text=text)
    cause = "passing" if may_pass(status) else ""
    return Attempt(None, f"{status}: {reason(answer)}", cause, retry_after(headers.get("retry-after")), status, text)


def failed_attempt(error: Exception, timeout_s: float) -> Attempt:
    """Convert the exception of a failed request to the outcome of an attempt.

    Args:
        error: The exception; if it is not from httpx, it is raised again.
        timeout_s: Time limit of the request, in seconds, for the message.
    """
    import httpx

    if isinstance(error, (httpx.ReadTimeout, httpx.WriteTimeout)):
        return Attempt(problem=f"no answer within {timeout_s:g} s; raise timeout_s", cause="late")
    if isinstance(error, httpx.ConnectError):
        causes = list(_chain(error))
        if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes):
            advice = (
                "its TLS certificate cannot be verified; set SSL_CERT_FILE to a file with the certificate of the "
                "certificate authority that signed it"
            )
            return Attempt(problem=f"{advice} ({error})")
        # A host name that does not exist is a mistake; a lookup that failed may succeed later.
        unknown = any(isinstance(one, socket.gaierror) and one.errno == socket.EAI_NONAME for one in causes)
        return Attempt(problem=f"it cannot be reached: {error}", cause="" if unknown else "lost")
    if isinstance(error, httpx.TransportError):
        return Attempt(problem=f"{type(error).__name__}: {error or 'the connection was lost'}", cause="lost")
    if isinstance(error, (httpx.InvalidURL, httpx.HTTPError)):
        return Attempt(problem=f"{type(error).__name__}: {error}")
    raise error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def blocking_client(*, timeout_s: float, headers: Mapping[str, str] = MappingProxyType({})) -> httpx.Client:
    """Return an httpx client for threads: keep-alive, proxies from environment variables, the system's certificates."""
    import httpx

    return httpx.Client(timeout=timeout_s, headers=dict(headers), verify=ssl.create_default_context())


def sent(client: httpx.Client, method: str, url: str, body: Any = None, *, max_bytes: int = 64 << 20) -> Attempt:
    """Send a request once, and return the outcome of the attempt; the answer must be JSON.

    Args:
        client: A client from ``blocking_client``.
        method: ``"GET"`` or ``"POST"``.
        url: The address.
        body: Sent as JSON; ``None`` sends no body.
        max_bytes: Maximum length of an answer, in bytes; for a longer answer the attempt fails.
    """
    content = None if body is None else json.dumps(body).encode("ascii")  # escaped, so that lone surrogates survive
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    try:
        with client.stream(method, url, content=content, headers=headers) as response:
            data = bytearray()
            for part in response.iter_bytes():
                data += part
                if len(data) > max_bytes:
                    return Attempt(problem=f"the answer is longer than {max_bytes} bytes")
    except Exception as error:
        return failed_attempt(error, client.timeout.read or 0.0)
    text = data.decode("utf-8", "replace")
    return read_attempt(response.status_code, response.headers, text, json_only=True)


class BlockingClient:
    """Sends requests from threads, each of which waits for its answer. A forked process opens its own connections.

    Args:
        timeout_s: Longest wait in seconds: for a connection, and then for the answer.
        headers: Sent with each request.
        max_bytes: Maximum length of an answer, in bytes; for a longer answer the attempt fails.
    """

    def __init__(self, *, timeout_s: float, headers: Mapping[str, str], max_bytes: int) -> None:
        self._timeout_s, self._headers, self._max_bytes = timeout_s, headers, max_bytes
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._pid = 0

    def attempt(self, method: str, url: str, body: Any) -> Attempt:
        """Send a request once, without retries, and return the outcome."""
        return sent(self._connected(), method, url, body, max_bytes=self._max_bytes)

    def _connected(self) -> httpx.Client:
        with self._lock:
            if self._client is None or self._pid != os.getpid():
                self._client, self._pid = blocking_client(timeout_s=self._timeout_s, headers=self._headers), os.getpid()
                weakref.finalize(self, self._client.close)
            return self._client

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments, without connections."""
        return partial(BlockingClient, timeout_s=self._timeout_s, headers=self._headers, max_bytes=self._max_bytes), ()


Pick = Callable[[Sequence[str]], AbstractContextManager[str]]
"""Function that chooses a server, given the servers that failed so far. It returns a context manager that yields the
server's address; the caller leaves the context when the attempt ends."""


class HttpClient:
    """Sends requests with retries from coroutines, in an event loop of its own; close it after use.

    Args:
        timeout_s: Longest wait in seconds: for a connection, and then for the answer.
        retries: Maximum number of further attempts after a failure. A request that timed out is not retried.
        api_key: Sent as a bearer token.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    @checked
    def __init__(
        self,
        *,
        timeout_s: Seconds = 600.0,
        retries: Annotated[int, Rule(least=0)] = 4,
        api_key: str | Secret | None = None,
    ) -> None:
        self._timeout_s, self._retries = timeout_s, retries
        self._headers = bearer(api_key)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: Any = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's event loop and return its result; a cancelled call cancels the coroutine."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running_loop()))

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the client's event loop, and return the future of its result without waiting."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def run_now(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's event loop, and wait for its result; for threads without an event loop."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def ask(
        self,
        method: str,
        where: str | Pick,
        path: str,
        body: Any = None,
        *,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Any:
        """Send a request, with retries, until it is answered. Await this in the client's event loop.

        Args:
            method: ``"GET"`` or ``"POST"``.
            where: The address before ``path``, or a function that chooses one.
            path: Path of the request, which begins with a slash.
            body: Sent as JSON.
            timeout_s: Overrides the client's timeout.
            retries: Overrides the client's number of retries.

        Returns:
            The answer: its parsed JSON, else its text.

        Raises:
            ServiceError: No attempt was answered, or the server refused; the message quotes its answer, and ``cause``
                is ``lost`` or ``passing`` if a later attempt may succeed, ``late`` if there was no answer in time.
        """
        pick: Pick = (lambda failed: nullcontext(where)) if isinstance(where, str) else where
        most = self._retries if retries is None else retries
        failed: list[str] = []
        wait_s: float | None = None
        problem = ""
        while True:
            with pick(failed) as base, waiting(base) as report:
                if failed:
                    report(f"{problem}; attempt {len(failed) + 1} of {most + 1}")
                if base in failed:
                    await asyncio.sleep(delay(len(failed)) if wait_s is None else wait_s)
                attempt = await self._attempt(method, base + path, body, timeout_s or self._timeout_s)
            if attempt.problem is None:
                return attempt.answer
            failed.append(base)
            problem, wait_s = attempt.problem, attempt.wait_s
            if attempt.cause not in _WORTH_ANOTHER or len(failed) > most:
                message = failure(f"{method} {base}{path}", attempt.problem, len(failed))
                raise ServiceError(message, cause=attempt.cause, after_s=wait_s)

    def close(self) -> None:
        """Close the connections and end the event loop's thread. A closed client starts again when it is used."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            client, self._client = self._client, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_wind_up(client), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    async def _attempt(self, method: str, url: str, body: Any, timeout_s: float) -> Attempt:
        try:
            response = await self._client.request(method, url, json=body, timeout=timeout_s)
        except Exception as error:
            return failed_attempt(error, timeout_s)
        is_json = "json" in response.headers.get("content-type", "")
        return read_attempt(response.status_code, response.headers, response.text, json_only=is_json)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                import httpx

                self._loop = asyncio.new_event_loop()
                limits = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=_IDLE_S)
                # No limit on connections: requests may take long, and none should wait for another's connection.
                self._client = httpx.AsyncClient(limits=limits, headers=self._headers)
                self._thread = threading.Thread(target=self._loop.run_forever, name="rstar2-http", daemon=True)
                self._thread.start()
            return self._loop


async def _wind_up(client: Any) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.aclose()
