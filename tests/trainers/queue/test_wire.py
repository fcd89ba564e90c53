"""Messages between processes: who may connect, what comes too early, and who is gone."""

from __future__ import annotations

import asyncio
from contextlib import closing
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest
from small_run import SmallPlayer

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_each, in_processes
from rstar2_env.trainers.queue import wire as wire_module
from rstar2_env.trainers.queue.local import LocalQueue
from rstar2_env.trainers.queue.shared import make_queue
from rstar2_env.trainers.queue.wire import Gone, Wire


async def heard(wire, number, count):
    """The first messages of a round."""
    found = asyncio.Queue()
    wire.open(number, lambda sender, message: found.put_nowait((sender, message)))
    try:
        return [await asyncio.wait_for(found.get(), 30) for _ in range(count)]
    finally:
        wire.shut()


def test_what_comes_before_anybody_listens_is_kept_for_its_round():
    def work(ranks):
        with closing(Wire.connect(ranks)) as wire:
            if ranks.rank:
                for number, word in [(1, "one"), (2, "two"), (1, "more"), (3, "three")]:
                    wire.send(0, number, f"{word} of {ranks.rank}")
            ranks.gather(None)
            if ranks.rank:
                ranks.gather(None)
                return None
            rounds = [asyncio.run(heard(wire, number, count)) for number, count in [(1, 4), (2, 2), (3, 2)]]
            ranks.gather(None)
            return [[(sender, word) for sender, word in sorted(one)] for one in rounds]

    first, *_ = in_processes(3, work)
    assert first == [
        [(1, "more of 1"), (1, "one of 1"), (2, "more of 2"), (2, "one of 2")],
        [(1, "two of 1"), (2, "two of 2")],
        [(1, "three of 1"), (2, "three of 2")],
    ]


def test_messages_of_a_round_that_is_over_are_of_no_later_one():
    def work(ranks):
        with closing(Wire.connect(ranks)) as wire:
            if ranks.rank:
                wire.send(0, 1, "late")
                wire.send(0, 2, "in time")
            ranks.gather(None)
            found = None if ranks.rank else asyncio.run(heard(wire, 2, 1))
            ranks.gather(None)
            return found

    assert in_processes(2, work)[0] == [(1, "in time")]


def test_a_process_that_is_gone_is_told_to_who_listens_then_and_later():
    def work(ranks):
        wire = Wire.connect(ranks)
        ranks.gather(None)
        if ranks.rank:
            wire.close()
            return None
        with closing(wire):
            rounds = [asyncio.run(heard(wire, number, 1)) for number in (1, 2)]
            wire.send(1, 3, "nobody hears this")
            return rounds

    found = in_processes(2, work)[0]
    assert [(sender, type(message), message.why) for ((sender, message),) in found] == [
        (1, Gone, "process 1 has ended or can no longer be reached")
    ] * 2


def test_a_stranger_without_the_secret_is_not_let_in(monkeypatch):
    told = []
    listener_of = wire_module.Listener

    def listening(*args, **options):
        made = listener_of(*args, **options)
        told.append(made.address)
        return made

    monkeypatch.setattr(wire_module, "Listener", listening)

    def work(ranks):
        if ranks.rank == 1:
            original = ranks.gather
            calls = []

            def gather(value):
                found = original(value)
                calls.append(found)
                if len(calls) == 1:
                    with pytest.raises((AuthenticationError, EOFError, OSError)):
                        Client(told[0], authkey=b"guessed")
                return found

            ranks.gather = gather
        with closing(Wire.connect(ranks)) as wire:
            if ranks.rank:
                wire.send(0, 1, "known")
            found = None if ranks.rank else asyncio.run(heard(wire, 1, 1))
            ranks.gather(None)
            return found

    assert in_processes(2, work)[0] == [(1, "known")]


def test_a_first_process_that_cannot_be_reached_says_what_to_do(monkeypatch):
    def refuse(*args, **options):
        raise ConnectionRefusedError("no route")

    monkeypatch.setattr(wire_module, "Client", refuse)
    for error in in_each(2, Wire.connect):
        assert isinstance(error, ConfigurationError)
        assert "process 1 cannot connect to 127.0.0.1" in str(error)
        assert "one_queue" in str(error)


def test_one_process_needs_no_connection():
    def work(ranks):
        return type(make_queue(SmallPlayer(), ranks)), ranks.calls

    assert in_processes(1, work) == [(LocalQueue, 0)]
