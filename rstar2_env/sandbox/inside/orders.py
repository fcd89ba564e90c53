"""What the warden and the zygote say to each other: small fixed records, since the zygote pays for what it touches.

After each fork the zygote shares its memory with the child, and to write to a page, if only to count a reference, is to
copy it. Covered: packing and unpacking. Not covered: what is done about an order (``zygote``).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

FORK, KILL, WATCH, PING, INTERRUPT, REST = range(6)
"""Orders: fork a child, end its tree, watch what it takes, give a sign of life, send SIGINT, watch less often."""
READY, FAILED, PONG, ENDED, BROKEN, GONE, FORK_FAILED, OVERDRAWN, INTERRUPTED = range(9)
"""Replies. ``BROKEN`` is an end that someone outside brought about; ``GONE`` says that nothing of a tree is left,
``OVERDRAWN`` that a tree was ended for the bound that its text names."""

MAX_BYTES = 8192
_ORDER = struct.Struct("=BIIQQ")
_REPLY = struct.Struct("=BIiQQ")


class Order(NamedTuple):
    """An order.

    For FORK, ``slot`` and ``value`` are the slot and the size of its file system in bytes. For WATCH, ``slot``,
    ``value`` and ``files`` are the bounds on processes, on bytes of memory and on bytes of files below ``workdir``; 0
    is no bound.
    """

    kind: int
    number: int
    slot: int
    value: int
    files: int
    workdir: str


class Reply(NamedTuple):
    """A reply: the wait status, CPU time and peak memory go with ENDED and BROKEN, the text with failures."""

    kind: int
    number: int
    status: int
    cpu_s: float
    peak_kb: int
    text: str


def pack_order(kind: int, number: int = 0, slot: int = 0, value: int = 0, files: int = 0, workdir: str = "") -> bytes:
    """The bytes of an order."""
    return _ORDER.pack(kind, number, slot, value, files) + workdir.encode()


def unpack_order(data: bytes) -> Order:
    """The order that some bytes hold."""
    kind, number, slot, value, files = _ORDER.unpack_from(data)
    return Order(kind, number, slot, value, files, data[_ORDER.size :].decode())


def pack_reply(kind: int, number: int = 0, status: int = 0, cpu_us: int = 0, peak_kb: int = 0, text: str = "") -> bytes:
    """The bytes of a reply."""
    return _REPLY.pack(kind, number, status, cpu_us, peak_kb) + text.encode()[: MAX_BYTES - _REPLY.size]


def unpack_reply(data: bytes) -> Reply:
    """The reply that some bytes hold."""
    kind, number, status, cpu_us, peak_kb = _REPLY.unpack_from(data)
    return Reply(kind, number, status, cpu_us / 1e6, peak_kb, data[_REPLY.size :].decode("utf-8", "replace"))
