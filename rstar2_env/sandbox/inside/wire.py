"""Frames: the messages between the caller, the warden and a child over a byte stream.

A frame consists of two 32-bit lengths (of the rest of the frame, and of the header), a JSON header, and blobs of bytes
whose lengths are in the header. Nothing is pickled. Covered: packing, and splitting a stream into frames. Not covered:
sockets.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

_LENGTHS = struct.Struct(">II")
PREFIX_BYTES = _LENGTHS.size
STARTED = b'{"started": true}'
"""Message of a child after its program has compiled, before it runs."""
MAX_FRAME_BYTES = (1 << 32) - 1
"""Size of the largest frame, given by the width of the length field."""

# Created once: they cost as much as a small header.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class FrameError(ValueError):
    """The stream does not contain a valid frame, or a frame is too long to send."""


class Frame(NamedTuple):
    """One message: its header, its blobs, and its raw bytes (to be forwarded unchanged)."""

    header: dict[str, Any]
    blobs: list[bytes]
    raw: bytes


def pack(header: dict[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """Return the bytes of one frame.

    Raises:
        FrameError: The frame would be longer than ``MAX_FRAME_BYTES``.
    """
    if blobs:
        header = {**header, "blobs": [len(blob) for blob in blobs]}
    head = _encode(header).encode()
    total = 4 + len(head) + sum(map(len, blobs))
    if total > MAX_FRAME_BYTES:
        raise FrameError(f"A frame has at most {MAX_FRAME_BYTES} bytes, not {total}.")
    return b"".join((_LENGTHS.pack(total, len(head)), head, *blobs))


def frame_bytes(prefix: bytes | bytearray) -> int:
    """Length of a frame, from its first ``PREFIX_BYTES`` bytes."""
    total, _ = _LENGTHS.unpack_from(prefix)
    return int(total) + 4


def unpack(raw: bytes) -> Frame:
    """Unpack one complete frame.

    Raises:
        FrameError: The lengths are inconsistent, or the header is not a JSON object.
    """
    if len(raw) < PREFIX_BYTES:
        raise FrameError(f"A frame starts with {PREFIX_BYTES} bytes of lengths, but only {len(raw)} were received.")
    total, head = _LENGTHS.unpack_from(raw)
    if total + 4 != len(raw) or head + 4 > total:
        raise FrameError(f"The lengths of a frame are inconsistent: {total}, {head}, {len(raw)}.")
    at = PREFIX_BYTES + head
    try:
        header = _decode(raw[PREFIX_BYTES:at].decode())
        blobs = []
        for length in header.get("blobs", ()):
            blobs.append(raw[at : at + length])
            at += length
    except (ValueError, AttributeError, TypeError) as error:
        raise FrameError(f"The header of a frame is not a JSON object with lengths: {error}.") from None
    return Frame(header, blobs, raw)


class FrameReader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes and return the frames that are now complete.

        Raises:
            FrameError: The bytes are not a frame.
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
            frames.append(unpack(raw))
            at = end
        if at:
            del self._buffer[:at]
        return frames
