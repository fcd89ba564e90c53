"""Frames for a slow caller are buffered in order, and the end of a caller is noticed."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from rstar2_env.sandbox.inside.warden.caller_link import CallerLink
from rstar2_env.sandbox.inside.wire import FrameReader, pack


@pytest.fixture
def ends() -> Iterator[tuple[CallerLink, socket.socket]]:
    """A non-blocking link, and the socket of its caller."""
    inside, outside = socket.socketpair()
    link = CallerLink(inside.fileno(), os.dup(inside.fileno()))
    link.do_not_block()
    yield link, outside
    os.close(link.outgoing)
    inside.close()
    outside.close()


def test_what_finds_no_room_waits_and_comes_in_order(ends: tuple[CallerLink, socket.socket]) -> None:
    link, outside = ends
    assert all(link.send({"number": number}, (b"x" * (1 << 18),)) for number in range(8))
    assert link.backlog
    reader, seen = FrameReader(), []
    while len(seen) < 8:
        seen += [frame.header["number"] for frame in reader.feed(outside.recv(1 << 16))]
        assert link.flush()
    assert seen == list(range(8))
    assert not link.backlog


def test_frames_come_whole_whatever_the_pieces(ends: tuple[CallerLink, socket.socket]) -> None:
    link, outside = ends
    assert link.receive() == []
    data = pack({"a": 1}) + pack({"b": 2})
    outside.send(data[:5])
    assert link.receive() == []
    outside.send(data[5:])
    frames = link.receive()
    assert frames is not None
    assert [frame.header for frame in frames] == [{"a": 1}, {"b": 2}]


def test_a_caller_that_is_gone_is_noticed_in_both_directions(ends: tuple[CallerLink, socket.socket]) -> None:
    link, outside = ends
    outside.close()
    assert link.receive() is None
    assert not link.send({"any": "thing"})
    assert link.first() is None
