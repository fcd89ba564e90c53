"""Long frames delay no short ones, take turns, and keep the order of their key."""

from __future__ import annotations

from rstar2_env.sandbox.inside.send_queue import PART_BYTES, SendQueue
from rstar2_env.sandbox.inside.wire import FrameReader, pack


class Stream:
    """A stream with a bounded buffer, such as a socket's, and the frames that its other end has read.

    Args:
        room: Bytes of the buffer.
    """

    def __init__(self, room: int = 1000) -> None:
        self.room = room
        self.written = 0
        self.queue = SendQueue(self._write)
        self._buffer = b""
        self._reader = FrameReader()

    def _write(self, data: memoryview) -> int:
        if len(self._buffer) >= self.room:
            raise BlockingIOError
        taken = data[: self.room - len(self._buffer)]
        self._buffer += taken
        self.written += len(taken)
        return len(taken)

    def add(self, name: str, parts: float = 0, key: str | None = None) -> None:
        """Append a frame of about this number of parts, and write what fits."""
        self.queue.append(pack({"name": name}, (b"x" * int(parts * PART_BYTES),)), key)
        self.queue.flush()

    def read(self) -> list[str]:
        """Read what was written; return the names of the frames that are complete."""
        data, self._buffer = self._buffer, b""
        return [frame.header["name"] for frame in self._reader.feed(data)]

    def rest(self) -> list[str]:
        """Write and read the rest; return the names of the frames in the order in which they are complete."""
        names = self.read()
        while self.queue:
            self.queue.flush()
            names += self.read()
        return names


def test_short_frames_pass_a_long_one() -> None:
    stream = Stream()
    stream.add("long", 10)
    for number in range(3):
        stream.add(f"short {number}")
    assert stream.rest() == ["short 0", "short 1", "short 2", "long"]


def test_a_short_frame_waits_for_one_part_at_most() -> None:
    stream = Stream()
    for number in range(4):
        stream.add(f"long {number}", 10)
    stream.add("short")
    while "short" not in stream.read():
        stream.queue.flush()
    assert stream.written < 1.1 * PART_BYTES


def test_a_long_frame_passes_a_longer_one() -> None:
    stream = Stream()
    stream.add("longer", 40)
    stream.add("long", 2)
    assert stream.rest() == ["long", "longer"]


def test_frames_with_one_key_keep_their_order() -> None:
    stream = Stream()
    stream.add("long", 10, key="one")
    stream.add("after it", key="one")
    stream.add("shorter after it", 2, key="one")
    stream.add("other", key="two")
    assert stream.rest() == ["other", "long", "after it", "shorter after it"]


def test_a_flush_returns_even_if_the_other_end_reads_as_fast_as_this_one_writes() -> None:
    stream = Stream(room=1 << 40)
    stream.add("long", 100)
    assert stream.queue
    assert stream.written < 20 * PART_BYTES
