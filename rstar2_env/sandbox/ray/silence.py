"""``why_lost``: decides whether an actor whose server does not answer is dead, stuck, or only slow.

A silent actor is stuck if another process on its node answers and the actor does not. If the node is busy with other
work, all its processes are slow, and to kill a slow actor would cost each of its calls a retry. Covered: pings, the
comparison with another process, and how an actor is killed. Not covered: how it is replaced (``nodes``).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Any

from rstar2_env.core.net.ray_cluster import RayNode, answer_from, connected
from rstar2_env.sandbox.fleet.link import Link
from rstar2_env.sandbox.ray.options import RayOptions

_AGAIN_S = 0.2
_STOP_S = 10.0
_PINGS = 25
"""Number of pings that an actor answers, while its server does not answer, before the server counts as broken."""


async def why_lost(actor: Any, where: RayNode, link: Link, options: RayOptions) -> str | None:
    """Ping an actor until its server answers again or the actor is dead; kill an actor that is stuck.

    Args:
        actor: Ray's handle of the actor.
        where: Node of the actor.
        link: The actor's server, which is down.
        options: The provider's options.

    Returns:
        The reason why the actor is lost, once Ray has confirmed its death; ``None`` if its server answers again or was
        removed.
    """
    from ray.exceptions import ActorDiedError

    clock = asyncio.get_running_loop().time
    silent_since = answered_at = clock() - link.silence_s
    answers = 0
    ping = _pinged(actor)
    other: _OtherProcess | None = None
    try:
        while not (link.up or link.gone):
            if ping.done():
                if isinstance(error := ping.exception(), ActorDiedError):
                    return short(error)
                if error is None:
                    answers, answered_at = answers + 1, clock()
                ping = _pinged(actor)
            if clock() - answered_at >= options.stall_timeout_s:
                other = other or _OtherProcess(where, options.start_timeout_s)
            elif other is not None:
                other.end()
                other = None
            broken = answers >= _PINGS and clock() - silent_since >= options.stall_timeout_s
            stuck = other is not None and other.shows_stuck()
            if (broken or stuck) and await killed(actor):
                who = "Its server" if broken else "It"
                return f"{who} did not respond for {clock() - silent_since:.0f} seconds."
            await asyncio.sleep(_AGAIN_S)
        return None
    finally:
        ping.cancel()
        if other is not None:
            other.end()


class _OtherProcess:
    """Measures how long another process on the node of a silent actor needs to answer, for comparison.

    Args:
        where: The node.
        longest_s: Seconds after which the actor counts as stuck even if the other process has not answered.
    """

    def __init__(self, where: RayNode, longest_s: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._longest_s = longest_s
        self._since = self._clock()
        self._answered_s = math.inf
        self._task = asyncio.create_task(self._ask(where))

    def shows_stuck(self) -> bool:
        """Whether the actor has been silent for twice the time that the other process needed, or ``longest_s`` seconds.

        The time counts from the creation of this object.
        """
        return self._clock() - self._since >= min(2 * self._answered_s, self._longest_s)

    def end(self) -> None:
        """Stop waiting for the answer of the other process."""
        self._task.cancel()

    async def _ask(self, where: RayNode) -> None:
        while self._answered_s == math.inf:
            with contextlib.suppress(Exception):  # the node ended, or this process is no longer connected
                await answer_from(where)
                self._answered_s = self._clock() - self._since
            await asyncio.sleep(_AGAIN_S)


def _pinged(actor: Any) -> asyncio.Task[None]:
    async def ping() -> None:
        await call(actor, "ping")

    task = asyncio.create_task(ping())
    # If the wait ends first, the error of the ping does not matter; asyncio would log an error that is not retrieved.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def killed(actor: Any) -> bool:
    """Kill an actor; return whether Ray confirms its death. Only then may the actor's calls run elsewhere."""
    from ray.exceptions import ActorDiedError

    kill(actor)
    try:
        async with asyncio.timeout(_STOP_S):
            await call(actor, "ping")
    except ActorDiedError:
        return True
    except Exception:  # unknown
        return False
    return False


async def stop(actor: Any) -> None:
    """End an actor's server with its sandbox, and then the actor."""
    with contextlib.suppress(Exception):  # it may be gone already
        async with asyncio.timeout(_STOP_S):
            await call(actor, "stop")
    kill(actor)


def call(actor: Any, method: str) -> Any:
    """Call a method of an actor; the result can be awaited.

    Raises:
        SandboxUnavailableError: This process is no longer connected to Ray.
    """
    connected()
    return getattr(actor, method).remote()


def kill(actor: Any) -> None:
    """Make Ray kill an actor; ignore any error, since the actor may be dead already."""
    with contextlib.suppress(Exception):  # it is dead already, or Ray is
        connected().kill(actor, no_restart=True)


def short(error: BaseException) -> str:
    """Return the message of an error from Ray as one line, at most 500 characters, without Ray's hints about causes."""
    return " ".join(str(error).split()).partition(" Some common causes")[0][:500]
