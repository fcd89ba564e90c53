"""Frames: the format of the messages between caller, warden and child over a byte stream.

A frame consists of two 32-bit lengths (of the rest of the frame, and of the header), a JSON header, and blobs of bytes
whose lengths are in the header. Nothing is pickled. A long frame can be sent as several frames, its parts. Covered: how
frames are packed, how a stream is split into frames, and how long frames are split and joined. Not covered: sockets,
and the order of sending (``send_queue``).
"""

from __future__ import annotations

import json
import operator
import struct
from collections.abc import Iterator, Sequence
from typing import Any

_LENGTHS = struct.Struct(">II")
PREFIX_BYTES = _LENGTHS.size
STARTED = b'{"started": true}'
"""Message that a child sends after it has compiled its program, and before it runs the program."""
MAX_FRAME_BYTES = (1 << 32) - 1
"""Size in bytes of the largest possible frame, given by the width of the length field."""
_MOST_UNFINISHED = 4096
"""Largest number of incomplete long frames (of which only some parts have arrived) that a reader accepts."""

# Created once, since creating an encoder costs as much as encoding a small header.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # unlike `decode`, it runs no Python code


class FrameError(ValueError):
    """The stream does not contain a valid frame, or a frame is too long to send."""


class Frame:
    """One message, with binary data (blobs) that is copied only when read, since the warden forwards most of it unread.

    Args:
        header: Header of the frame.
        raw: All bytes of the frame, to be forwarded unchanged.
        spans: Start and end of each blob in ``raw``.
    """

    __slots__ = ("_spans", "header", "raw")

    def __init__(self, header: dict[str, Any], raw: bytes | bytearray, spans: list[slice]) -> None:
        self.header = header
        self.raw = raw
        self._spans = spans

    @property
    def blobs(self) -> list[bytes]:
        """Return copies of all blobs."""
        return [self.blob(index) for index in range(len(self._spans))]

    def view(self, index: int) -> memoryview:
        """Return a view of one blob, without a copy."""
        return memoryview(self.raw)[self._spans[index]]

    def blob(self, index: int, most: int = MAX_FRAME_BYTES) -> bytes:
        """Return a copy of the first ``most`` bytes of a blob."""
        return bytes(self.view(index)[:most])


def pack(header: dict[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """Convert a header and blobs to the bytes of one frame.

    Raises:
        FrameError: The frame would be longer than ``MAX_FRAME_BYTES``.
    """
    if blobs:
        header = {**header, "blobs": [len(blob) for blob in blobs]}
    head = _encode(header).encode()
    total = 4 + len(head) + sum(map(len, blobs))
    if total > MAX_FRAME_BYTES:
        raise FrameError(
            f"A message between the processes of the sandbox may have at most {MAX_FRAME_BYTES} bytes, not {total}."
        )
    return b"".join((_LENGTHS.pack(total, len(head)), head, *blobs))


def split(frame: bytes, number: int, size: int) -> Iterator[bytes]:
    """Split a long frame into short frames, which ``FrameReader`` joins again.

    Args:
        frame: The long frame.
        number: Number that identifies the long frame among all long frames that are being sent.
        size: Number of bytes of the long frame in each part.
    """
    with memoryview(frame) as whole:
        for at in range(0, len(frame), size):
            yield pack({"part_of": number, "last": at + size >= len(frame)}, (bytes(whole[at : at + size]),))


def frame_bytes(prefix: bytes | bytearray) -> int:
    """Return the length of a frame, read from its first ``PREFIX_BYTES`` bytes."""
    total, _ = _LENGTHS.unpack_from(prefix)
    return int(total) + 4


def unpack(raw: bytes | bytearray) -> Frame:
    """Convert the bytes of one complete frame to a ``Frame``.

    Raises:
        FrameError: The lengths are inconsistent, or the header is not a JSON object.
    """
    if len(raw) < PREFIX_BYTES:
        raise FrameError(
            f"A message between the processes of the sandbox must begin with {PREFIX_BYTES} bytes of lengths, "
            f"but only {len(raw)} were received."
        )
    total, head = _LENGTHS.unpack_from(raw)
    if total + 4 != len(raw) or head + 4 > total:
        raise FrameError(
            f"The lengths of a message between the processes of the sandbox contradict one another: {len(raw)} bytes "
            f"were received, but the message declares {total} bytes after its first 4, {head} of them for its header."
        )
    at = PREFIX_BYTES + head
    try:
        text = raw[PREFIX_BYTES:at].decode()
        try:
            header, end = _scan(text, 0)
        except StopIteration as stop:
            raise ValueError(f"no value at character {stop.value}") from None
        if end != len(text):
            raise ValueError(f"text after the object, at character {end}")
        spans = []
        for length in header.get("blobs", ()):
            spans.append(slice(at, at + operator.index(length)))
            at += length
    except (ValueError, AttributeError, TypeError) as error:
        raise FrameError(
            f"The header of a message between the processes of the sandbox is not a JSON object with lengths: {error}."
        ) from None
    return Frame(header, raw, spans)


class FrameReader:
    """Splits a stream of bytes into frames, and joins the parts of long frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts: dict[int, bytearray] = {}

    def feed(self, data: bytes) -> list[Frame]:
        """Add received bytes, and return the frames that are now complete.

        Raises:
            FrameError: The bytes are not a valid frame.
        """
        self._buffer += data
        frames = []
        at = 0
        while len(self._buffer) - at >= PREFIX_BYTES:
            end = at + frame_bytes(self._buffer[at : at + PREFIX_BYTES])
            if end > len(self._buffer):
                break
            with memoryview(self._buffer) as whole:  # a slice of the buffer itself would be one more copy
                raw = bytes(whole[at:end])
            at = end
            if (frame := self._join(unpack(raw))) is not None:
                frames.append(frame)
        if at:
            del self._buffer[:at]
        return frames

    def _join(self, frame: Frame) -> Frame | None:
        """Return the frame itself if it is not a part, the joined frame for the last part, ``None`` for other parts."""
        number = frame.header.get("part_of")
        if number is None:
            return frame
        try:
            whole, part, last = self._parts.setdefault(number, bytearray()), frame.blob(0), frame.header["last"]
        except (KeyError, IndexError, TypeError) as error:
            raise FrameError(
                f"A part of a message between the processes of the sandbox is invalid: {error!r}."
            ) from None
        if len(whole) + len(part) > MAX_FRAME_BYTES:
            raise FrameError(
                f"A message between the processes of the sandbox may have at most {MAX_FRAME_BYTES} bytes, but the "
                f"parts of a message together already have {len(whole) + len(part)} bytes."
            )
        if len(self._parts) > _MOST_UNFINISHED:
            raise FrameError(
                f"At most {_MOST_UNFINISHED} messages between the processes of the sandbox may be sent in parts at the "
                f"same time, but {len(self._parts)} are unfinished."
            )
        whole += part
        return unpack(self._parts.pop(number)) if last else None
