"""Output of a child is stored up to the limit, and the rest is counted."""

from __future__ import annotations

import os

import pytest

from rstar2_env.sandbox.inside.warden.stream import Stream


def test_what_goes_past_the_limit_is_counted_and_not_kept() -> None:
    stream = Stream(-1)
    assert not stream.add(b"abc", limit=5)
    assert not stream.add(b"de", limit=5)
    assert stream.add(b"fgh", limit=5)
    assert stream.add(b"i", limit=5)
    assert (bytes(stream.kept), stream.left_out) == (b"abcde", 4)


@pytest.mark.parametrize("limit", [3, 100])
def test_only_what_is_in_the_pipe_is_taken(limit: int) -> None:
    reading, writing = os.pipe()
    stream = Stream(reading)
    stream.take(limit)  # does not wait for what may come
    assert (bytes(stream.kept), stream.left_out) == (b"", 0)
    os.write(writing, b"before")
    stream.take(limit)
    assert bytes(stream.kept) == b"before"[:limit]
    assert stream.left_out == max(0, 6 - limit)
    os.close(reading)
    os.close(writing)


def test_a_stream_that_was_closed_gives_nothing() -> None:
    stream = Stream(-1)
    stream.take(10)
    assert (bytes(stream.kept), stream.left_out) == (b"", 0)
