"""Sending calls to servers, and handling the failure of a server.

Covered: refusals, lost connections, lost servers, giving up. A call is sent again to the server that may have accepted
it, under the same id, and that server answers from memory; it goes to another only when its server is known to have
lost it or never to have had it. Not covered: how many go where at once (``balance``), and threads (``client``).
Everything here runs in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox.remote.balance import Balance
from rstar2_env.sandbox.remote.calls import Call
from rstar2_env.sandbox.remote.codec import outcome_from_json
from rstar2_env.sandbox.remote.homes import Homes
from rstar2_env.sandbox.remote.link import Link, LinkError, refusal
from rstar2_env.sandbox.remote.options import RemoteOptions

if TYPE_CHECKING:
    import httpx

_BATCH_BYTES = 8 << 20
_SWEEP_S = 0.25
_ASK_S = 5.0
_SLOWEST_ASK_S = 2.0


class Dispatcher:
    """Sends calls to servers and collects their outcomes.

    Args:
        options: The provider's options.
        http: The pool of connections.
        client: This client's own name.
    """

    def __init__(self, options: RemoteOptions, http: httpx.AsyncClient, client: str) -> None:
        self.links = [Link(url, http, strict=options.isolation == "strict") for url in options.urls]
        self.homes = Homes(client, self._end_session)
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Call] = deque()
        self._pinned: dict[Link, deque[Call]] = {link: deque() for link in self.links}  # for that server only
        self._sent: dict[Call, Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reviving: set[Link] = set()
        self._dark_since = 0.0
        self._balance = Balance(options.batch, options.linger_ms / 1e3, self._pump)
        self._sweeping = False
        self._closed = False

    async def start(self) -> None:
        """Find the servers.

        Raises:
            LinkError: None can be used; the message says why of each.
        """
        await asyncio.gather(*(self._first_word(link) for link in self.links))
        if not any(link.up for link in self.links):
            raise LinkError("; ".join(f"{link.url}: {link.why}" for link in self.links))
        for link in self.links:
            if not link.up:
                self._down(link, link.why)

    def submit(self, calls: Iterable[Call]) -> None:
        """Take calls on."""
        now = self._loop.time()
        for call in calls:
            call.since = now
            if call.session is None or self.homes.enter(call):
                self._queue_up(call)
        self._pump()

    def drop(self, calls: Iterable[Call]) -> None:
        """Stop waiting for these calls and end their programs."""
        sent: dict[Link, list[str]] = {}
        for call in calls:
            call.given_up = True
            if (link := self._sent.get(call)) is not None:
                sent.setdefault(link, []).append(call.id)
        for link, ids in sent.items():
            self._spawn(link.post("/v1/cancel", {"ids": ids}))

    def end_session(self, name: str) -> None:
        """End a session and forget its state. Unknown names are ignored."""
        self.homes.end(name)

    async def close(self, within_s: float) -> None:
        """End every call and session on the servers, as far as they answer in time."""
        self._closed = True
        self.drop(list(self._sent))
        for name in self.homes:
            self.homes.end(name)
        if self._tasks:
            telling = [task for task in self._tasks if task.get_name() == "tell"]
            if telling:
                await asyncio.wait(telling, timeout=within_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Choosing

    def _queue_up(self, call: Call, *, first: bool = False) -> None:
        """Put a call into the queue of its server, or of all servers."""
        link = self.homes.place(call.home) if call.home is not None else None
        queue = self._queue if link is None else self._pinned[link]
        if first:
            queue.appendleft(call)
        else:
            queue.append(call)
        if not any(each.up for each in self.links) or (link is not None and not link.up):
            self._sweep()

    def _pump(self) -> None:
        """Send the calls that can be sent now."""
        if self._closed:
            return
        for link in self.links:
            queue = self._pinned[link]
            while queue and (count := self._balance.takes(link, len(queue))):
                self._send(link, queue, count)
        while self._queue and (chosen := self._balance.choose(self.links, len(self._queue))):
            self._send(chosen[0], self._queue, chosen[1])

    # Sending

    def _send(self, link: Link, queue: deque[Call], count: int) -> None:
        """Send up to ``count`` calls from a queue in one request."""
        batch: list[Call] = []
        size = 0
        most = min(_BATCH_BYTES, link.max_request_bytes - 200)
        while queue and len(batch) < count and (not batch or size + len(queue[0].body) <= most):
            call = queue.popleft()
            if call.given_up:
                self._finish(call)
                continue
            if len(call.body) + 300 > link.max_request_bytes:
                self._too_large(call, link)
                continue
            size += len(call.body) + 300
            if call.home is not None:
                self.homes.settle(call.home, link)
            self._sent[call] = link
            batch.append(call)
        if batch:
            link.in_flight += len(batch)
            self._spawn(self._converse(link, batch), "send")

    async def _converse(self, link: Link, batch: list[Call]) -> None:
        """Send a batch and read its answers."""
        import httpx

        left, boot = {call.id: call for call in batch}, link.boot
        try:
            async with link.send([call.written() for call in batch]) as answer:
                if answer.status_code != 200:
                    self._refused(link, boot, left, answer.status_code, await answer.aread())
                    return
                rest = b""
                async for data in answer.aiter_raw():
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        if line:
                            self._answered(link, left, json.loads(line))
                    link.failures = 0
                    self._pump()
            if left:
                self._doubt(link, boot, left, "its answer ended too early")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._back(left)  # nothing of it was sent
            self._down(link, str(error) or type(error).__name__)
        except Exception as error:  # after any failure, the calls must be asked for again
            self._doubt(link, boot, left, str(error) or type(error).__name__)
        finally:
            self._forget(link, left)
            self._pump()

    def _answered(self, link: Link, left: dict[str, Call], said: dict[str, Any]) -> None:
        """Handle one line of an answer: an outcome, an error of the caller, or a refusal.

        Raises:
            ValueError, KeyError, TypeError: It is none of these; the call still waits.
        """
        outcome = outcome_from_json(said["outcome"]) if "outcome" in said else None
        call = left.pop(said["id"], None)
        if call is None:
            return
        self._unsend(link, call)
        if outcome is None and "error" not in said:
            call.doubt = None
            self._back({call.id: call})
            self._hold(link, said["refused"], said["retry_after_s"])
            return
        if outcome is None:
            call.fail(ConfigurationError(said["error"]))
        else:
            if call.starts:
                outcome = replace(outcome, attempts=outcome.attempts + call.starts)
            if call.home is not None:
                outcome = self.homes.tell(call.home, outcome)
            if said.get("cut"):
                link.tell_of_cut(said["cut"])
            call.resolve(outcome)
        self._finish(call)

    def _refused(self, link: Link, boot: str, left: dict[str, Call], status: int, body: bytes) -> None:
        """Handle the refusal of a whole batch."""
        try:
            said = json.loads(body)
            why, after = str(said["refused"]), float(said["retry_after_s"])
        except (ValueError, KeyError, TypeError):
            why, after = "", 0.0
        if status in (429, 503) and why:  # without a reason, the answer is from a proxy in between
            self._back(left)
            self._hold(link, why, after)
        elif status == 401:
            self._back(left)
            self._down(link, refusal(status, body))
        elif status in (413, 415, 422):
            for call in left.values():
                self._lose(call, f"The server {link.url} rejected the call: {refusal(status, body)}")
        elif status == 409:  # calls that it had not accepted before the restart never ran
            self._back({call.id: call for call in left.values() if call.doubt is None})
            self._doubt(
                link, boot, {call.id: call for call in left.values() if call.doubt is not None}, "it was restarted"
            )
        else:
            self._doubt(link, boot, left, refusal(status, body))

    # Failing

    def _doubt(self, link: Link, boot: str, left: dict[str, Call], why: str) -> None:
        """The server may have accepted these calls: ask it, under the same ids, as soon as it answers."""
        now = self._loop.time()
        for call in left.values():
            if call.doubt is None:
                call.doubt, call.since = boot, now
            self._pinned[link].append(call)
        link.failures += 1
        self._down(link, why)

    def _back(self, left: dict[str, Call]) -> None:
        """The server did not accept these calls: queue them again."""
        for call in reversed(left.values()):
            link = self._sent.get(call)
            if call.doubt is not None and link is not None:
                self._pinned[link].appendleft(call)
                continue
            if call.home is not None:
                self.homes.unsettle(call.home)
            self._queue_up(call, first=True)

    def _hold(self, link: Link, why: str, after_s: float) -> None:
        """The server refused calls: send it nothing for ``after_s`` seconds."""
        if why == "stopping":
            self._down(link, "it is stopping")
        elif why == "full":
            link.blocked_until = max(link.blocked_until, self._loop.time() + after_s)
            self._loop.call_at(link.blocked_until + 1e-3, self._pump)

    def _down(self, link: Link, why: str) -> None:
        """Mark a server as down, and ask it until it answers."""
        link.why = why
        if link.up:
            link.up, link.down_since = False, self._loop.time()
            if not any(each.up for each in self.links):
                self._dark_since = link.down_since
        if link not in self._reviving:
            self._reviving.add(link)
            self._spawn(self._revive(link), "revive")
        self._sweep()

    async def _revive(self, link: Link) -> None:
        delay = min(_SLOWEST_ASK_S, 0.02 * 2 ** min(link.failures, 8))
        try:
            while not link.up:
                await asyncio.sleep(delay)
                delay = min(_SLOWEST_ASK_S, delay * 2)
                try:
                    await link.ask(_ASK_S)
                except LinkError as error:
                    link.why = str(error)
        finally:
            self._reviving.discard(link)
        self._returned(link)

    def _returned(self, link: Link) -> None:
        """A server is up again: after a restart, the calls that it had are lost."""
        gone, self._pinned[link] = _part(self._pinned[link], partial(self._gone, link))
        for call in reversed(gone):
            if call.doubt is not None:
                call.doubt = None
                call.starts += 1
                call.since = self._loop.time()
            if call.starts > self._options.retries:
                self._lose(call, f"The server {link.url} was restarted while it had the call.")
            else:
                self._queue_up(call, first=True)
        self._pump()

    def _gone(self, link: Link, call: Call) -> bool:
        if call.doubt is not None:
            return call.doubt != link.boot
        return call.home is not None and self.homes.place(call.home) is None

    def _sweep(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            self._loop.call_later(_SWEEP_S, self._swept)

    def _swept(self) -> None:
        """Give up calls that waited too long for a server that is down."""
        self._sweeping = False
        horizon = self._loop.time() - self._options.patience_s
        any_up = any(link.up for link in self.links)
        for link in self.links:
            if link.up:
                continue
            late, self._pinned[link] = _part(self._pinned[link], partial(_late, link, horizon))
            for call in late:
                if call.doubt is None and call.home is not None and any_up and not call.given_up:
                    self.homes.move(call.home, f"The server {link.url}, where the session lived, is down: {link.why}.")
                    self._queue_up(call)
                else:
                    self._lose(call, f"The sandbox server {link.url} is down: {link.why}")
        if not any_up and self._dark_since < horizon:
            whys = "; ".join(f"{link.url}: {link.why}" for link in self.links)
            late, self._queue = _part(self._queue, lambda call: call.since < horizon)
            for call in late:
                self._lose(call, f"No sandbox server answers: {whys}")
        if any(not link.up and self._pinned[link] for link in self.links) or (self._queue and not any_up):
            self._sweep()
        self._pump()

    # Bookkeeping

    def _finish(self, call: Call) -> None:
        """A call has its outcome: the next cell of its session may go."""
        if (following := self.homes.leave(call)) is not None:
            self._queue_up(following)

    def _lose(self, call: Call, why: str) -> None:
        """Resolve a call that was lost without a fault of its program, together with its session."""
        if call.home is not None:
            self.homes.reset(call.home)
        call.lose(why)
        self._finish(call)

    def _unsend(self, link: Link, call: Call) -> None:
        if self._sent.pop(call, None) is not None:
            link.in_flight -= 1

    def _forget(self, link: Link, left: dict[str, Call]) -> None:
        for call in left.values():
            self._unsend(link, call)

    def _too_large(self, call: Call, link: Link) -> None:
        call.fail(
            ConfigurationError(
                f"The job is too large: it has {len(call.body)} bytes, and the server {link.url} accepts requests of "
                f"{link.max_request_bytes} (rstar2 sandbox serve --max-request)."
            )
        )
        self._finish(call)

    async def _first_word(self, link: Link) -> None:
        try:
            await link.ask(self._options.start_s)
        except LinkError as error:
            link.why = str(error)

    def _end_session(self, link: Link, wire: str) -> None:
        self._spawn(link.post("/v1/sessions/end", {"sessions": [wire]}))

    def _spawn(self, work: Any, name: str = "tell") -> None:
        task: asyncio.Task[None] = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _late(link: Link, horizon: float, call: Call) -> bool:
    """Whether a call has waited too long for a server that is down."""
    return call.since < horizon and (call.doubt is not None or link.down_since < horizon)


def _part(calls: Iterable[Call], chosen: Callable[[Call], bool]) -> tuple[deque[Call], deque[Call]]:
    """The calls for which ``chosen`` holds, and the others, each in their order."""
    parts: tuple[deque[Call], deque[Call]] = (deque(), deque())
    for call in calls:
        parts[not chosen(call)].append(call)
    return parts
