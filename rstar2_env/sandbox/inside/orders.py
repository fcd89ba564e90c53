"""Messages between the warden and the zygote: small records of fixed layout, so that the zygote touches little memory.

After each fork the zygote shares its memory with the child, and writing to a page, even to count a reference, copies
it. Covered: packing and unpacking. Not covered: carrying out an order (``zygote``).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

FORK, KILL, WATCH, PING, INTERRUPT, HALT, RESUME, GIVE_WAY = range(8)
"""Orders: fork a child, end its tree, watch its resources, answer a ping, send SIGINT, halt a whole tree, let it go
on, let it give way to others."""
READY, FAILED, PONG, ENDED, BROKEN, GONE, FORK_FAILED, OVERDRAWN, INTERRUPTED, GAVE_WAY = range(10)
"""Replies. ``BROKEN`` is an end caused from outside; ``GONE`` says that nothing of a tree is left, ``OVERDRAWN`` that a
tree was ended for exceeding the bound that its text names, ``GAVE_WAY`` whether a tree has the lower weight now (1 or
0), with the time for which it was held back since then."""

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
    """A reply: the wait status, CPU time and peak memory go with ENDED and BROKEN, the text with failures.

    For GAVE_WAY, the status says whether the tree gives way, and the time is that for which it was held back.
    """

    kind: int
    number: int
    status: int
    cpu_s: float
    peak_kb: int
    text: str


def pack_order(kind: int, number: int = 0, slot: int = 0, value: int = 0, files: int = 0, workdir: str = "") -> bytes:
    """The bytes of an order.

    Args:
        kind: One of the orders.
        number: Number of the child.
        slot: See ``Order``.
        value: See ``Order``.
        files: See ``Order``.
        workdir: The child's working folder.
    """
    return _ORDER.pack(kind, number, slot, value, files) + workdir.encode()


def unpack_order(data: bytes) -> Order:
    """Parse the bytes of an order."""
    kind, number, slot, value, files = _ORDER.unpack_from(data)
    return Order(kind, number, slot, value, files, data[_ORDER.size :].decode())


def pack_reply(kind: int, number: int = 0, status: int = 0, cpu_us: int = 0, peak_kb: int = 0, text: str = "") -> bytes:
    """The bytes of a reply.

    Args:
        kind: One of the replies.
        number: Number of the child.
        status: Wait status.
        cpu_us: CPU time in microseconds.
        peak_kb: Peak memory in KiB.
        text: Details, cut to fit ``MAX_BYTES``.
    """
    return _REPLY.pack(kind, number, status, cpu_us, peak_kb) + text.encode()[: MAX_BYTES - _REPLY.size]


def unpack_reply(data: bytes) -> Reply:
    """Parse the bytes of a reply."""
    kind, number, status, cpu_us, peak_kb = _REPLY.unpack_from(data)
    return Reply(kind, number, status, cpu_us / 1e6, peak_kb, data[_REPLY.size :].decode("utf-8", "replace"))
