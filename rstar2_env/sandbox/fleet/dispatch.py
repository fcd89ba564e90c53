"""``Dispatcher``: sends calls to servers, and handles lost connections and lost servers.

Covered: calls that a server refuses, lost connections, lost servers, and when a call is given up. After a lost
connection, a call is sent again under the same id to the server that may have accepted it; if that server has run the
call, it answers from memory. The call is sent to another server only if the first server has certainly lost it or never
accepted it. Not covered: the distribution of calls (``balance``), threads (``client``). Everything here runs in one
event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.base import settle
from rstar2_env.sandbox.fleet.balance import Balance
from rstar2_env.sandbox.fleet.calls import FleetCall
from rstar2_env.sandbox.fleet.codec import outcome_from_json
from rstar2_env.sandbox.fleet.homes import Homes
from rstar2_env.sandbox.fleet.link import Link, refusal
from rstar2_env.sandbox.fleet.options import FleetOptions
from rstar2_env.sandbox.fleet.servers import FleetServers

_BATCH_BYTES = 8 << 20
_SWEEP_S = 0.25
_REST_S, _LONGEST_REST_S = 0.05, 5.0


class Dispatcher:
    """Sends calls to servers and collects their outcomes.

    Args:
        options: The provider's options.
        client: Unique name of this client.
    """

    def __init__(self, options: FleetOptions, client: str) -> None:
        self.servers = FleetServers(self._returned, lambda work: self._spawn(work, "revive"))
        self.homes = Homes(client, self._end_session)
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._queue: deque[FleetCall] = deque()
        self._pinned: defaultdict[Link, deque[FleetCall]] = defaultdict(deque)  # calls that only this server may run
        self._sent: dict[FleetCall, Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._balance = Balance(options.batch, options.linger_ms / 1e3, self.pump)
        self._sweeping = False
        self._closed = False

    def submit(self, calls: Iterable[FleetCall]) -> None:
        """Accept calls, and send those for which a server has room."""
        now = self._loop.time()
        for call in calls:
            call.since = now
            if call.session is None or self.homes.enter(call):
                self._queue_up(call)
        self.pump()

    def drop(self, calls: Iterable[FleetCall]) -> None:
        """Stop waiting for the outcomes of these calls, and end their programs."""
        sent: dict[Link, list[str]] = {}
        for call in calls:
            call.given_up = True
            if (link := self._sent.get(call)) is not None:
                sent.setdefault(link, []).append(call.id)
        for link, ids in sent.items():
            self._spawn(link.post("/v1/cancel", {"ids": ids}))

    async def close(self, within_s: float) -> None:
        """End every call and session, on each server that answers within ``within_s`` seconds."""
        self._closed = True
        self.drop(list(self._sent))
        for name in self.homes:
            self.homes.end(name)
        if self._tasks:
            notices = [task for task in self._tasks if task.get_name() == "notice"]
            if notices:
                await asyncio.wait(notices, timeout=within_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Queueing

    def _queue_up(self, call: FleetCall, *, first: bool = False) -> None:
        """Put a call into the queue of the server that must run it, or into the common queue if any server may.

        Args:
            call: The call.
            first: Whether to put it at the head of the queue; otherwise at the end.
        """
        link = self.homes.place(call.home) if call.home is not None else None
        queue = self._queue if link is None else self._pinned[link]
        if first:
            queue.appendleft(call)
        else:
            queue.append(call)
        if not self.servers.any_up or (link is not None and not link.up):
            self._sweep()

    def pump(self) -> None:
        """Send the waiting calls for which a server has room now."""
        if self._closed:
            return
        for link, queue in list(self._pinned.items()):
            while queue and (count := self._balance.takes(link, len(queue))) and self._send(link, queue, count):
                pass
        links = list(self.servers.links)
        while self._queue and (chosen := self._balance.choose(links, len(self._queue))):
            if not self._send(chosen[0], self._queue, chosen[1]):
                links.remove(chosen[0])  # every waiting call avoids this server

    # Sending

    def _send(self, link: Link, queue: deque[FleetCall], count: int) -> bool:
        """Send up to ``count`` calls from a queue in one request; return whether the queue is shorter now."""
        batch: list[FleetCall] = []
        elsewhere: list[FleetCall] = []
        size, before = 0, len(queue)
        most = min(_BATCH_BYTES, link.max_request_bytes - 200)
        while queue and len(batch) < count and (not batch or size + len(queue[0].body) <= most):
            call = queue.popleft()
            if call.given_up:
                self._finish(call)
                continue
            if len(call.body) + 300 > link.max_request_bytes:
                self._too_large(call, link)
                continue
            # A call that this server may have accepted must be requested here.
            avoided = call.avoid is link and call.doubt is None
            if avoided and any(other.up for other in self.servers.links if other is not link):
                elsewhere.append(call)
                continue
            size += len(call.body) + 300
            if call.home is not None:
                self.homes.settle(call.home, link)
            self._sent[call] = link
            batch.append(call)
        queue.extendleft(reversed(elsewhere))
        if batch:
            link.in_flight += len(batch)
            talk = self._spawn(self._converse(link, batch), "send")
            link.talks.add(talk)
            talk.add_done_callback(link.talks.discard)
        return len(queue) < before

    async def _converse(self, link: Link, batch: list[FleetCall]) -> None:
        """Send a batch and read its answers."""
        import httpx

        left, boot = {call.id: call for call in batch}, link.boot
        try:
            async with link.send([call.encode() for call in batch]) as answer:
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
                    self.pump()
            if left:
                self._doubt(link, boot, left, "its answer was cut off")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._back(left)  # nothing was sent
            self._down(link, str(error) or type(error).__name__)
        except Exception as error:  # after any failure, the calls must be requested again
            self._doubt(link, boot, left, str(error) or type(error).__name__)
        finally:
            for call in left.values():
                self._unsend(link, call)
            self.pump()

    def _answered(self, link: Link, left: dict[str, FleetCall], answer: dict[str, Any]) -> None:
        """Handle one line of an answer: an outcome, an error in the job, or a refusal.

        Args:
            link: The server that answers.
            left: Calls of the batch that have no answer yet, by id; the answered call is removed.
            answer: The line, parsed.

        Raises:
            ValueError, KeyError, TypeError: The line is invalid; its call keeps waiting for an answer.
        """
        outcome = outcome_from_json(answer["outcome"]) if "outcome" in answer else None
        call = left.pop(answer["id"], None)
        if call is None:
            return
        self._unsend(link, call)
        if outcome is None and "error" not in answer:
            call.doubt = None
            self._back({call.id: call})
            self._hold(link, answer["refused"], answer["retry_after_s"])
            return
        if outcome is None:
            settle(call.future, ConfigurationError(answer["error"]))
            self._finish(call)
            return
        failed = outcome.status is ToolStatus.UNAVAILABLE
        if not call.given_up:  # a cancelled call is not a failure of the server
            self._judge(link, failed)
        if failed and self._may_retry(call, max(1, outcome.attempts)):
            call.avoid = link
            call.id += "+"  # under the old id, this server would answer with the old outcome
            if call.home is not None:
                self.homes.restart(call.home)
            self._queue_up(call, first=True)
            return
        outcome = replace(outcome, attempts=outcome.attempts + call.starts)
        if call.home is not None:
            outcome = self.homes.report(call.home, outcome)
        if answer.get("cut"):
            link.warn_of_cut(answer["cut"])
        settle(call.future, outcome)
        self._finish(call)

    def _judge(self, link: Link, failed: bool) -> None:
        """Record whether a server's sandbox failed to run a call. After a failure, pause the server, longer each time.

        After the pause, the server gets one call at a time until a call succeeds.
        """
        if not failed:
            link.strikes = 0
        elif self._loop.time() >= link.blocked_until:  # calls that fail together count once
            link.strikes += 1
            self._hold(link, "full", min(_LONGEST_REST_S, _REST_S * 2**link.strikes))

    def _may_retry(self, call: FleetCall, starts: int) -> bool:
        """Return whether a lost call may be retried; if so, add ``starts`` to the starts counted for the call.

        A cell (a call of a session) is never retried if earlier cells of its session have run.
        """
        if call.given_up or call.starts + starts > self._options.retries or (call.home and call.home.opened):
            return False
        call.starts += starts
        call.since = self._loop.time()
        return True

    def _refused(self, link: Link, boot: str, left: dict[str, FleetCall], status: int, body: bytes) -> None:
        """Handle the refusal of a whole batch.

        Args:
            link: The server that refused.
            boot: The server's boot id when the batch was sent.
            left: The calls of the batch, by id.
            status: HTTP status of the answer.
            body: Body of the answer.
        """
        try:
            answer = json.loads(body)
            why, after = str(answer["refused"]), float(answer["retry_after_s"])
        except (ValueError, KeyError, TypeError):
            why, after = "", 0.0
        if status in (429, 503) and why:  # an answer without a reason is from a proxy
            self._back(left)
            self._hold(link, why, after)
        elif status == 401:
            self._back(left)
            self._down(link, refusal(status, body))
        elif status in (413, 415, 422):
            for call in left.values():
                self._lose(call, f"The sandbox server {link.name} rejected the call: {refusal(status, body)}")
        elif status == 409:  # the server was restarted; calls that it cannot have accepted before never ran
            doubtful = {call.id: call for call in left.values() if call.doubt is not None}
            self._back({call.id: call for call in left.values() if call.doubt is None})
            self._doubt(link, boot, doubtful, "it was restarted")
        else:
            self._doubt(link, boot, left, refusal(status, body))

    # Failures

    def _doubt(self, link: Link, boot: str, left: dict[str, FleetCall], why: str) -> None:
        """Mark a server as down. Queue the calls ``left`` for the same server, which may have accepted them already.

        The calls keep their ids, so that the server does not run a call twice.
        """
        now = self._loop.time()
        for call in left.values():
            if call.doubt is None:
                call.doubt, call.since = boot, now
            self._pinned[link].append(call)
        link.failures += 1
        self._down(link, why)

    def _back(self, left: dict[str, FleetCall]) -> None:
        """Return the calls ``left``, which a server did not accept, to the head of their queues."""
        for call in reversed(left.values()):
            link = self._sent.get(call)
            if call.doubt is not None and link is not None:
                self._pinned[link].appendleft(call)
                continue
            if call.home is not None:
                self.homes.unsettle(call.home)
            self._queue_up(call, first=True)

    def _hold(self, link: Link, why: str, after_s: float) -> None:
        """Handle a refusal: pause a server that is full, or mark a server as down because it is stopping.

        Args:
            link: The server.
            why: The reason of the refusal: "full" or "stopping"; any other reason has no effect.
            after_s: Seconds of the pause.
        """
        if why == "stopping":
            self._down(link, "it is stopping")
        elif why == "full":
            link.blocked_until = max(link.blocked_until, self._loop.time() + after_s)
            self._loop.call_at(link.blocked_until + 1e-3, self.pump)

    def _down(self, link: Link, why: str) -> None:
        self.servers.down(link, why)
        self._sweep()

    def _returned(self, link: Link) -> None:
        """Handle a server that answers again or was removed: retry its lost calls, or report them as lost."""
        if link.gone:
            for call in [call for call, sent_to in self._sent.items() if sent_to is link]:
                call.doubt = call.doubt or "in flight"
                self._pinned[link].append(call)
                self._unsend(link, call)
        gone, self._pinned[link] = _part(self._pinned[link], partial(self._gone, link))
        for call in reversed(gone):
            if call.doubt is None or self._may_retry(call, 1):
                call.doubt = None
                self._queue_up(call, first=True)
            else:
                call.starts += 1
                fate = f"was lost: {link.why}" if link.gone else "was restarted before it finished the program."
                self._lose(call, f"The server {link.name} {fate}")
        if link.gone:
            del self._pinned[link]
        self.pump()

    def _gone(self, link: Link, call: FleetCall) -> bool:
        if call.doubt is not None:
            return call.doubt != link.boot
        return call.home is not None and self.homes.place(call.home) is None

    def _sweep(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            self._loop.call_later(_SWEEP_S, self._swept)

    def _swept(self) -> None:
        """Handle calls that waited too long for a server that is down: move them to another, or report them lost."""
        self._sweeping = False
        horizon = self._loop.time() - self._options.reconnect_timeout_s
        any_up = self.servers.any_up
        for link in self.servers.links:
            if link.up:
                continue
            late, self._pinned[link] = _part(self._pinned[link], partial(_late, link, horizon))
            for call in late:
                if call.doubt is None and call.home is not None and any_up and not call.given_up:
                    self.homes.move(
                        call.home,
                        f"The sandbox server {link.name}, on which the session ran, cannot be used: {link.why}.",
                    )
                    self._queue_up(call)
                else:
                    self._lose(call, f"The sandbox server {link.name} cannot be used: {link.why}")
        if not any_up and self.servers.dark_since < horizon:
            late, self._queue = _part(self._queue, lambda call: call.since < horizon)
            for call in late:
                self._lose(call, f"None of the sandbox servers answers: {self.servers.why}")
        if any(not link.up and self._pinned[link] for link in self.servers.links) or (self._queue and not any_up):
            self._sweep()
        self.pump()

    # Bookkeeping

    def _finish(self, call: FleetCall) -> None:
        """After the outcome of a call, queue the next call of its session, if there is one."""
        if (following := self.homes.leave(call)) is not None:
            self._queue_up(following)

    def _lose(self, call: FleetCall, why: str) -> None:
        """Give a lost call an ``unavailable`` outcome, since its program is not at fault; drop the call's session."""
        if call.home is not None:
            self.homes.reset(call.home)
        call.lose(why)
        self._finish(call)

    def _unsend(self, link: Link, call: FleetCall) -> None:
        if self._sent.get(call) is link:  # and was not sent elsewhere meanwhile
            del self._sent[call]
            link.in_flight -= 1

    def _too_large(self, call: FleetCall, link: Link) -> None:
        text = (
            f"The program and its files have {len(call.body)} bytes, but the server {link.name} accepts "
            f"requests of at most {link.max_request_bytes} bytes: start it with a larger limit (rstar2 "
            "sandbox serve --max-request), or send smaller files."
        )
        settle(call.future, ConfigurationError(text))
        self._finish(call)

    def _end_session(self, link: Link, wire: str) -> None:
        self._spawn(link.post("/v1/sessions/end", {"sessions": [wire]}))

    def _spawn(self, work: Coroutine[Any, Any, None], name: str = "notice") -> asyncio.Task[None]:
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _late(link: Link, horizon: float, call: FleetCall) -> bool:
    """Whether a call has waited since ``horizon`` or longer, and its server ``link`` has been down for as long.

    If the server may have accepted the call, only the waiting time of the call counts.
    """
    return call.since < horizon and (call.doubt is not None or link.down_since < horizon)


def _part(calls: Iterable[FleetCall], chosen: Callable[[FleetCall], bool]) -> tuple[deque[FleetCall], deque[FleetCall]]:
    """Split calls into those for which ``chosen`` holds and all others; keep the order within each part."""
    parts: tuple[deque[FleetCall], deque[FleetCall]] = (deque(), deque())
    for call in calls:
        parts[not chosen(call)].append(call)
    return parts
