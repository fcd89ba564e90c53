"""Frames are read from a stream in chunks of any size, and invalid bytes are rejected."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rstar2_env.sandbox.inside.wire import FrameError, FrameReader, pack, split, unpack

BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@BUSY
@given(
    frames=st.lists(st.tuples(st.dictionaries(st.text(), st.integers()), st.lists(st.binary(max_size=50))), max_size=5),
    step=st.integers(1, 400),
)
def test_frames_come_out_as_they_went_in(frames: list[tuple[dict[str, int], list[bytes]]], step: int) -> None:
    frames = [({key: value for key, value in header.items() if key != "blobs"}, blobs) for header, blobs in frames]
    stream = b"".join(pack(header, blobs) for header, blobs in frames)
    reader = FrameReader()
    found = [frame for at in range(0, len(stream), step) for frame in reader.feed(stream[at : at + step])]
    assert [({**frame.header, "blobs": None}, frame.blobs) for frame in found] == [
        ({**header, "blobs": None}, blobs) for header, blobs in frames
    ]


def test_parts_of_long_frames_are_joined_wherever_other_frames_come_between() -> None:
    whole = [pack({"number": number}, [bytes([number]) * 1000, b"end"]) for number in range(3)]
    lanes = [list(split(frame, number, 100)) for number, frame in enumerate(whole)]
    reader = FrameReader()
    found = [
        frame for parts in zip(*lanes, strict=True) for frame in reader.feed(b"".join([*parts, pack({"short": True})]))
    ]
    long = [frame for frame in found if "short" not in frame.header]
    assert [bytes(frame.raw) for frame in long] == whole
    assert [frame.blobs for frame in long] == [[bytes([number]) * 1000, b"end"] for number in range(3)]
    assert len(found) == 3 + len(lanes[0])


@pytest.mark.parametrize("junk", [b"", b"1234", b"\0\0\0\4\0\0\0\4", b"\0\0\0\6\0\0\0\2[]", b"\0\0\0\6\0\0\0\2{}x"])
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(FrameError):
        unpack(junk)


@BUSY
@given(st.binary(min_size=8, max_size=64))
def test_no_bytes_break_the_reader_otherwise_than_with_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(FrameError):
        unpack(data)


@pytest.mark.parametrize("header", [{"part_of": 1}, {"part_of": [], "last": True}, {"part_of": 1, "last": True}])
def test_a_part_that_is_no_part_is_refused(header: dict[str, object]) -> None:
    with pytest.raises(FrameError, match="A part of a message"):
        FrameReader().feed(pack(header, []))


def test_parts_of_too_many_unfinished_frames_are_refused() -> None:
    parts = b"".join(pack({"part_of": number, "last": False}, [b"x"]) for number in range(5000))
    with pytest.raises(FrameError, match="unfinished"):
        FrameReader().feed(parts)
