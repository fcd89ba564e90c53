"""With any faults of servers and connections, each call gets one outcome in time, its program starts at most as often
as allowed, and a session never continues in another process unreported. Time is simulated, the rest is real.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_fleet import PatientLoop, Server, Wire

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.fleet.calls import FleetCall
from rstar2_env.sandbox.fleet.dispatch import Dispatcher
from rstar2_env.sandbox.fleet.link import Link, LinkError
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.remote.options import RemoteOptions

FAULTS_S, LONGEST_S = 10.0, 600.0
FAULTS = ("kill", "restart", "stall", "wake", "fail", "well", "fill", "empty", "cut", "lose")


@dataclass(frozen=True)
class Program:
    """A program: when it is sent, how long it runs, and when it is cancelled, if ever."""

    at: float
    seconds: float
    session: str | None = None
    given_up_after: float | None = None


@dataclass(frozen=True)
class Fault:
    """A fault of a server at a time."""

    at: float
    server: int
    kind: str


@dataclass
class Fleet:
    """A client and its servers."""

    servers: list[Server]
    options: RemoteOptions
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = httpx.AsyncClient(transport=Wire(self.servers))
        self.dispatcher = Dispatcher(self.options, "client")
        self.links = [self.link(server) for server in self.servers]

    def link(self, server: Server) -> Link:
        return Link(f"http://{server.host}", self.http, strict=False)

    def strike(self, fault: Fault) -> None:
        """Apply a fault."""
        server = self.servers[fault.server % len(self.servers)]
        match fault.kind:
            case "kill":
                server.kill()
            case "restart":
                server.restart()
            case "cut":
                server.cut()
            case "lose":
                asyncio.get_running_loop().create_task(self.replace(server))
            case "stall" | "wake":
                server.stalled = fault.kind == "stall"
            case "fail" | "well":
                server.failing = fault.kind == "fail"
            case "fill" | "empty":
                server.full = fault.kind == "fill"

    async def replace(self, server: Server) -> None:
        """As under Ray: replace a server that is known to have ended."""
        at = self.servers.index(server)
        if self.links[at].gone:
            return  # the next one has not come yet
        server.kill()
        self.dispatcher.servers.lose(self.links[at], "Its node left.")
        fresh = self.link(server)
        while not fresh.up:
            await asyncio.sleep(1.0)
            server.restart()
            with contextlib.suppress(LinkError):
                await fresh.connect(5.0)
        self.links[at] = fresh
        self.dispatcher.servers.add(fresh)

    async def play(self, programs: Sequence[Program], faults: Sequence[Fault]) -> None:
        """Run programs during a limited time of faults; every program must end."""
        loop = asyncio.get_running_loop()
        self.dispatcher.servers.links += self.links
        await self.dispatcher.servers.start(10.0)
        for fault in faults:
            loop.call_at(fault.at, self.strike, fault)
        for server in self.servers:
            loop.call_at(FAULTS_S, server.heal)
        async with asyncio.timeout(LONGEST_S):
            await asyncio.gather(*(self.run(number, program) for number, program in enumerate(programs)))
        await asyncio.sleep(60.0)

    async def run(self, number: int, program: Program) -> None:
        await asyncio.sleep(program.at + number * 1e-6)  # in this order
        job = Job(f"{number} {program.seconds}", session=program.session)
        call = FleetCall(f"client-{number}", job, self.dispatcher.drop)
        self.dispatcher.submit([call])
        if program.given_up_after is None:
            self.outcomes[number] = await asyncio.wrap_future(call.future)
            return
        await asyncio.sleep(program.given_up_after)
        call.drop()

    def check(self, programs: Sequence[Program]) -> None:
        """Check the invariants after all work is done."""
        dispatcher, retries = self.dispatcher, self.options.retries
        assert not dispatcher._queue
        assert not dispatcher._sent
        assert not any(dispatcher._pinned.values())
        assert [link.in_flight for link in dispatcher.servers.links] == [0] * len(self.servers)
        for number, _ in enumerate(programs):
            started = sum(server.started[str(number)] for server in self.servers)
            assert started <= 1 + retries
            outcome = self.outcomes.get(number)
            if outcome is not None and outcome.status is ToolStatus.OK:
                assert started <= outcome.attempts <= 1 + retries
                assert str(outcome.value).partition(" ")[0] == str(number)
        for name in {program.session for program in programs if program.session is not None}:
            mine = [(program.at, number) for number, program in enumerate(programs) if program.session == name]
            check_session([self.outcomes[number] for _, number in sorted(mine)])


def check_session(outcomes: Sequence[Outcome]) -> None:
    """Check that a cell continues the state of the previous one, or reports that it does not."""
    before: tuple[str, int] | None = None
    for outcome in outcomes:
        if outcome.status is not ToolStatus.OK:
            assert outcome.session == "ended"
            before = None
            continue
        _, process, place = str(outcome.value).split()
        if outcome.session == "kept":
            assert before is not None
            assert (process, int(place)) == (before[0], before[1] + 1)
        else:
            assert outcome.session == ("new" if before is None else "replaced")
            assert int(place) == 1
        before = process, int(place)


def simulate(programs: Sequence[Program], faults: Sequence[Fault], slots: Sequence[int], **options: Any) -> Fleet:
    """Run programs and faults on servers with the given numbers of slots."""
    with asyncio.Runner(loop_factory=PatientLoop) as runner:

        async def go() -> Fleet:
            servers = [Server(f"s{number}", count) for number, count in enumerate(slots)]
            fleet = Fleet(servers, RemoteOptions(url="http://unused", isolation="none", **options))
            try:
                await fleet.play(programs, faults)
                fleet.check(programs)
            finally:
                await fleet.dispatcher.close(1.0)
            return fleet

        return runner.run(go())


times = st.integers(0, 180).map(lambda ticks: ticks / 20)
seconds = st.sampled_from([0.01, 0.3, 4.0])
alone = st.builds(Program, times, seconds, st.none(), st.none() | st.sampled_from([0.0, 0.2, 5.0]))
cells = st.builds(Program, times, seconds, st.sampled_from(["a", "b"]))
storm = st.lists(st.builds(Fault, times, st.integers(0, 2), st.sampled_from(FAULTS)), max_size=12)


FLEETS: Any = {
    "programs": st.lists(alone | cells, min_size=1, max_size=24),
    "faults": storm,
    "slots": st.lists(st.integers(1, 3), min_size=1, max_size=3),
    "batch": st.sampled_from([1, 4, 64]),
    "linger_ms": st.sampled_from([0.0, 2.0]),
    "retries": st.integers(0, 2),
    "reconnect_timeout_s": st.sampled_from([1.0, 20.0, 60.0]),
}


@settings(max_examples=250, deadline=None)
@given(**FLEETS)
def test_every_call_ends_once_whatever_happens(programs: list[Program], faults: list[Fault], **options: Any) -> None:
    simulate(programs, faults, **options)


@pytest.mark.proof
@settings(max_examples=10_000, deadline=None)
@given(**FLEETS)
def test_every_call_ends_once_in_ten_thousand_fleets(
    programs: list[Program], faults: list[Fault], **options: Any
) -> None:
    simulate(programs, faults, **options)
