"""The loop calls ready and due callbacks in order of time, and no removed ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from rstar2_env.sandbox.inside.warden.loop import EventLoop


@pytest.fixture
def loop() -> EventLoop:
    made = EventLoop(lambda owner, error: owner.append(str(error)))
    made.call_at(time.monotonic() + 20, lambda: pytest.fail("the loop was never stopped"))
    return made


def test_times_come_in_their_order_and_equal_ones_as_they_were_named(loop: EventLoop) -> None:
    seen: list[str] = []
    now = time.monotonic()

    def note(word: str) -> Callable[[], None]:
        return lambda: seen.append(word)

    loop.call_at(now + 0.03, loop.stop)
    for word, when in (("late", 0.02), ("first", 0.01), ("second", 0.01), ("past", -1.0)):
        loop.call_at(now + when, note(word))
    loop.run()
    assert seen == ["past", "first", "second", "late"]
    assert not loop.running


def test_a_descriptor_that_is_ready_is_called_until_it_is_not_watched(loop: EventLoop) -> None:
    reading, writing = os.pipe()
    seen: list[bytes] = []

    def read(events: int) -> None:
        seen.append(os.read(reading, 1))
        if len(seen) == 2:
            loop.unwatch(reading)
            loop.call_at(time.monotonic() + 0.05, loop.stop)

    os.write(writing, b"abc")
    loop.watch(reading, read)
    loop.run()
    assert seen == [b"a", b"b"]
    os.close(reading)
    os.close(writing)


def test_a_callback_takes_away_another_that_is_ready_in_the_same_round(loop: EventLoop) -> None:
    pipes = [os.pipe() for _ in range(2)]
    called: list[int] = []

    def callback(own: int) -> Callable[[int], None]:
        def call(events: int) -> None:
            called.append(own)
            for reading, _ in pipes:
                loop.forget(reading)
                os.close(reading)
            loop.stop()

        return call

    for number, (reading, writing) in enumerate(pipes):
        os.write(writing, b"x")
        loop.watch(reading, callback(number))
    loop.run()
    assert len(called) == 1
    for _, writing in pipes:
        os.close(writing)


def test_the_end_of_the_other_side_comes_unasked(loop: EventLoop) -> None:
    reading, writing = os.pipe()
    events_seen: list[int] = []

    def note(events: int) -> None:
        events_seen.append(events)
        loop.stop()

    loop.watch(reading, note, events=0)
    os.close(writing)
    loop.run()
    assert events_seen
    os.close(reading)


def test_an_error_costs_its_owner_alone_and_the_loop_goes_on(loop: EventLoop) -> None:
    told: list[str] = []
    reading, writing = os.pipe()

    def fail(*_: int) -> None:
        loop.forget(reading)
        raise ValueError("broken")

    os.write(writing, b"x")
    loop.watch(reading, fail, owner=told)
    loop.call_at(time.monotonic() + 0.01, fail, told)
    loop.call_at(time.monotonic() + 0.05, loop.stop)
    loop.run()
    assert told == ["broken", "broken"]
    os.close(reading)
    os.close(writing)


def test_an_error_without_an_owner_ends_the_loop(loop: EventLoop) -> None:
    def fail() -> None:
        raise ValueError("broken")

    loop.call_at(time.monotonic(), fail)
    with pytest.raises(ValueError, match="broken"):
        loop.run()
