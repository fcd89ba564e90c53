"""Which programs are deprioritized and when, and their deadlines, on a simulated clock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from rstar2_env.sandbox.inside import orders
from rstar2_env.sandbox.inside.orders import DEPRIORITIZE, OrderReply
from rstar2_env.sandbox.inside.warden import deprioritizing
from rstar2_env.sandbox.inside.warden.deprioritizing import AFTER_S, MOST, Deprioritizer

WALL_S = 2.0


class Clock:
    """Event loop of the warden with a simulated clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def call_at(self, when: float, what: Callable[[], None], owner: object = None) -> None:
        heapq.heappush(self._timers, (when, next(self._order), what))

    def turn(self, seconds: float) -> None:
        """Advance the clock and run due timers."""
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, what = heapq.heappop(self._timers)
            self.now = max(self.now, when)
            what()
        self.now = until


class Slot:
    """A slot that records whether its control group was lowered."""

    def __init__(self) -> None:
        self.lowered = 0

    def lower(self) -> None:
        self.lowered += 1


class Program:
    """A child that runs a call, with the replies about its tree."""

    def __init__(self, world: World, wall_s: float) -> None:
        self._world = world
        self.slot = Slot()
        self.limits = {"wall_s": wall_s}
        self.call: object | None = object()
        self.started_at = world.clock.now
        self.wait_status: int | None = None
        self.stopped_for: str | None = None
        self.ended_after = 0.0
        self.orders = 0
        self.can_be_lowered = True
        self.answers = True
        self.held_back: Callable[[], float] = lambda: 0.0

    def order(self, kind: int) -> None:
        assert kind == DEPRIORITIZE
        self.orders += 1
        if self.answers:
            reply = OrderReply(orders.DEPRIORITIZED, 1, int(self.can_be_lowered), self.held_back(), 0, "")
            self._world.clock.call_at(self._world.clock.now, lambda: self._world.way.on_reply(self, reply))  # type: ignore[arg-type]  # a stand-in

    def end(self) -> bool:
        """End the program; return whether it was deprioritized."""
        self.wait_status = 0
        return self._world.way.end(self)  # type: ignore[arg-type]  # a stand-in


class World:
    """The deprioritizer of a warden with room for some programs."""

    def __init__(self, room: int) -> None:
        self.clock = Clock()
        self.deprioritized = 0
        options: dict[str, Any] = {"deprioritize": room}
        self.way = Deprioritizer(options, self.clock, self._stop, self._on_deprioritized)  # type: ignore[arg-type]  # a stand-in

    def start(self, wall_s: float = WALL_S) -> Program:
        program = Program(self, wall_s)
        self.way.begin(program)  # type: ignore[arg-type]  # a stand-in
        return program

    def _stop(self, program: Any, why: str) -> None:
        if program.stopped_for is None:
            program.stopped_for, program.ended_after = why, self.clock.now - program.started_at

    def _on_deprioritized(self) -> None:
        self.deprioritized += 1


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with room for two programs."""
    made = World(2)
    monkeypatch.setattr(deprioritizing.time, "monotonic", lambda: made.clock.now)
    return made


def test_a_short_program_is_left_alone(world: World) -> None:
    program = world.start()
    world.clock.turn(AFTER_S * 0.9)
    assert not program.end()
    world.clock.turn(60)
    assert (program.orders, program.stopped_for, world.deprioritized, world.way.count) == (0, None, 0, 0)
    assert program.slot.lowered == 0


def test_a_long_program_is_deprioritized_and_stops_counting_once(world: World) -> None:
    program = world.start()
    world.clock.turn(AFTER_S * 1.1)
    assert (program.orders, world.deprioritized, world.way.count) == (1, 1, 1)
    world.clock.turn(WALL_S / 2)
    assert (program.orders, world.deprioritized, program.slot.lowered) == (1, 1, 1)
    assert program.end()
    assert world.way.count == 0


def test_a_program_counts_as_a_worker_until_the_reply(world: World) -> None:
    program = world.start()
    program.answers = False
    world.clock.turn(AFTER_S * 1.1)
    assert (program.orders, world.deprioritized) == (1, 0)
    assert not program.end()


def test_at_most_as_many_are_deprioritized_as_there_is_room_for(world: World) -> None:
    programs = [world.start(60) for _ in range(4)]
    world.clock.turn(10)
    assert [program.orders for program in programs] == [1, 1, 0, 0]
    assert world.deprioritized == 2
    assert programs[0].end()
    world.clock.turn(AFTER_S * 1.1)
    assert sorted(program.orders for program in programs) == [0, 1, 1, 1]
    assert (world.deprioritized, world.way.count) == (3, 2)


def test_a_program_that_did_not_wait_ends_at_its_limit(world: World) -> None:
    program = world.start()
    world.clock.turn(60)
    assert program.stopped_for == "timeout"
    assert program.ended_after == pytest.approx(WALL_S)


def test_waiting_time_does_not_count(world: World) -> None:
    program = world.start()
    program.held_back = lambda: 1.5
    world.clock.turn(60)
    assert program.ended_after == pytest.approx(WALL_S + 1.5)


def test_it_ends_at_the_hard_limit_for_any_waiting_time(world: World) -> None:
    program = world.start()
    program.held_back = lambda: max(0.0, world.clock.now - program.started_at - WALL_S + 0.001)
    world.clock.turn(60)
    assert program.stopped_for == "timeout"
    assert program.ended_after == pytest.approx(WALL_S * MOST)
    assert 10 < program.orders < 1000, "it is asked again and again, but not all the time"


def test_it_ends_at_the_hard_limit_without_replies(world: World) -> None:
    program = world.start()
    world.clock.turn(AFTER_S * 1.1)
    program.answers = False
    world.clock.turn(60)
    assert program.ended_after == pytest.approx(WALL_S * MOST)


@pytest.mark.parametrize("room", [0, 2])
def test_a_program_that_cannot_be_deprioritized_keeps_its_limit(world: World, room: int) -> None:
    world.way._most = room
    program = world.start()
    program.can_be_lowered, program.held_back = False, lambda: 1.0
    world.clock.turn(60)
    assert program.ended_after == pytest.approx(WALL_S)
    assert world.deprioritized == 0
    assert bool(program.orders) == (room > 0)


def test_deprioritizing_is_tried_again(world: World) -> None:
    program = world.start()
    program.can_be_lowered = False
    world.clock.turn(AFTER_S * 1.1)
    assert world.way.count == 0
    program.can_be_lowered = True
    world.clock.turn(AFTER_S)
    assert (program.orders, world.deprioritized) == (2, 1)


def test_a_limit_shorter_than_the_delay_holds(world: World) -> None:
    program = world.start(AFTER_S / 2)
    world.clock.turn(60)
    assert (program.orders, program.ended_after) == (0, pytest.approx(AFTER_S / 2))
