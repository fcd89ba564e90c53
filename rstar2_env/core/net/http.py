"""JSON over HTTP, from any thread and any event loop: an event loop of its own, kept connections, retries.

Covered: connection loss, overload (429 with ``Retry-After``, 5xx), timeouts, cancelling (the connection is closed,
which tells the server), several servers. Not covered: streaming, proxies other than those of the environment.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, TypeVar

from rstar2_env.core.errors import MissingExtraError, ServiceError
from rstar2_env.core.net.retries import delay, failure, may_pass, reason, retry_after
from rstar2_env.core.options.declare import Rule, Seconds, checked

T = TypeVar("T")

_WORTH_ANOTHER = ("lost", "passing")
_IDLE_S = 2.0
"""Longest time for which a connection is kept unused. uvicorn, and so vLLM, closes it after 5, which is httpx's own
default too: a request that is sent in that moment is lost, and so the server seems to be."""

Pick = Callable[[Sequence[str]], AbstractContextManager[str]]
"""Chooses where to ask, given where it failed so far; the choice is held until that attempt is over."""


class HttpClient:
    """Sends requests to servers; close it when it is no longer needed.

    Args:
        needed_for: What needs it, for the message when httpx is missing.
        extra: The extra that brings httpx.
        timeout_s: Longest time to wait for an answer, and again for each connection.
        retries: Attempts after the first. An answer that takes too long is not asked for again.
        api_key: Sent as a bearer token.

    Raises:
        MissingExtraError: httpx is not installed.
        ConfigurationError: A value is out of its range.
    """

    @checked
    def __init__(
        self,
        *,
        needed_for: str,
        extra: str,
        timeout_s: Seconds = 600.0,
        retries: Annotated[int, Rule(least=0)] = 4,
        api_key: str | None = None,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtraError(extra, needed_for) from error
        self._httpx = httpx
        self._timeout_s, self._retries = timeout_s, retries
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: Any = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's loop; cancelling the awaiting task cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running_loop()))

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the client's loop; for threads that do something else meanwhile."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def run_now(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's loop, and wait; for threads without a loop of their own."""
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
        """Send a request until it is answered; to be awaited in the client's loop.

        Args:
            method: ``"GET"`` or ``"POST"``.
            where: The address before ``path``, or a function that chooses one.
            path: Begins with a slash.
            body: Sent as JSON.
            timeout_s: Instead of the client's.
            retries: Instead of the client's.

        Returns:
            The answer: its parsed JSON, else its text.

        Raises:
            ServiceError: No attempt was answered, or the server refused; the message quotes its answer, and ``cause``
                is ``lost`` or ``passing`` where a later attempt may succeed, ``late`` where there was no answer in
                time.
        """
        pick: Pick = (lambda failed: nullcontext(where)) if isinstance(where, str) else where
        most = self._retries if retries is None else retries
        failed: list[str] = []
        wait_s: float | None = None
        while True:
            with pick(failed) as base:
                if base in failed:
                    await asyncio.sleep(delay(len(failed)) if wait_s is None else wait_s)
                problem, cause, wait_s, answer = await self._once(method, base + path, body, timeout_s)
            if problem is None:
                return answer
            failed.append(base)
            if cause not in _WORTH_ANOTHER or len(failed) > most:
                raise ServiceError(failure(f"{method} {base}{path}", problem, len(failed)), cause=cause, after_s=wait_s)

    def close(self) -> None:
        """Close the connections and end the thread. A closed client starts again when it is used."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            client, self._client = self._client, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_wind_up(client), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    async def _once(
        self, method: str, url: str, body: Any, timeout_s: float | None
    ) -> tuple[str | None, str, float | None, Any]:
        """Make one attempt; returns what failed, the cause that allows another, how long to wait, and the answer."""
        httpx = self._httpx
        try:
            response = await self._client.request(method, url, json=body, timeout=timeout_s or self._timeout_s)
        except (httpx.ReadTimeout, httpx.WriteTimeout):
            return f"no answer within {timeout_s or self._timeout_s:g} s; raise timeout_s", "late", None, None
        except httpx.TransportError as error:
            return f"{type(error).__name__}: {error or 'the connection was lost'}", "lost", None, None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            return f"{type(error).__name__}: {error}", "", None, None
        kind = response.headers.get("content-type", "")
        try:
            answer = response.json() if "json" in kind else response.text
        except ValueError:
            return f"the answer is not JSON: {response.text[:200]!r}", "", None, None
        if response.is_success:
            return None, "", None, answer
        cause = "passing" if may_pass(response.status_code) else ""
        wait_s = retry_after(response.headers.get("retry-after"))
        return f"{response.status_code}: {reason(answer)}", cause, wait_s, None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                limits = self._httpx.Limits(
                    max_connections=None, max_keepalive_connections=256, keepalive_expiry=_IDLE_S
                )
                # Each of many requests may wait long; none must wait for another's connection.
                self._client = self._httpx.AsyncClient(limits=limits, headers=self._headers)
                self._thread = threading.Thread(target=self._loop.run_forever, name="rstar2-http", daemon=True)
                self._thread.start()
            return self._loop


async def _wind_up(client: Any) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.aclose()
