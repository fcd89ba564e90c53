"""Messages between the warden and a zygote: small records of fixed layout, so that the zygote touches little memory.

After each fork, the zygote shares its memory with the child, and a write to a page, even a reference count, copies the
page. Covered: how messages are packed and unpacked. Not covered: how an order is executed (``zygote``).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

FORK, KILL, WATCH, PING, INTERRUPT, HALT, RESUME, DEPRIORITIZE = range(8)
"""Kinds of orders: fork a child, kill its process tree, watch its resources, answer a ping, send SIGINT, halt a tree,
resume it, deprioritize it."""
READY, FAILED, PONG, ENDED, BROKEN, GONE, FORK_FAILED, OVERDRAWN, INTERRUPTED, DEPRIORITIZED = range(10)
"""Kinds of replies. ``BROKEN``: the program ended because pid 1 of its namespace was killed from outside the sandbox.
``GONE``: no process of the tree is left. ``OVERDRAWN``: the tree was killed for exceeding the limit that the
reply's ``text`` names. ``DEPRIORITIZED``: see ``OrderReply``."""

MAX_BYTES = 8192
_new: Any = tuple.__new__
_ORDER = struct.Struct("=BIIQQI")
_REPLY = struct.Struct("=BIiQQ")


class Order(NamedTuple):
    """A message from the warden that orders an action.

    For FORK, ``slot`` is the child's slot, and ``value`` the size of its file system in bytes. For WATCH, ``slot``,
    ``value``, ``files`` and ``pipes`` are the limits on processes, bytes of memory, bytes of files below ``workdir``,
    and pipes; 0 means unlimited.
    """

    kind: int
    number: int
    slot: int
    value: int
    files: int
    pipes: int
    workdir: str


class OrderReply(NamedTuple):
    """A message to the warden. ENDED and BROKEN contain a wait status, CPU time and peak memory.

    ``text`` is the reason if the message reports a failure.

    For DEPRIORITIZED, ``status`` is 1 if the tree's CPU weight is lowered now, and ``cpu_s`` is not CPU time but the
    seconds that the tree has waited for a core since its weight was lowered.
    """

    kind: int
    number: int
    status: int
    cpu_s: float
    peak_kb: int
    text: str


def pack_order(
    kind: int, number: int = 0, slot: int = 0, value: int = 0, files: int = 0, pipes: int = 0, workdir: str = ""
) -> bytes:
    """Convert an order to bytes.

    Args:
        kind: Kind of the order, such as ``FORK``.
        number: Number of the child.
        slot: See ``Order``.
        value: See ``Order``.
        files: See ``Order``.
        pipes: See ``Order``.
        workdir: The child's working folder.
    """
    return _ORDER.pack(kind, number, slot, value, files, pipes) + workdir.encode()


def unpack_order(data: bytes) -> Order:
    """Convert bytes from ``pack_order`` back to an order."""
    # Not `Order(...)`, which runs Python code.
    order: Order = _new(Order, (*_ORDER.unpack_from(data), data[_ORDER.size :].decode()))
    return order


def start_failure(message: OrderReply | None) -> str | None:
    """Return the reason why a process did not start, from its first message; ``None`` if the process is ready.

    Args:
        message: The message; ``None`` if the process ended without one.
    """
    if message is None:
        return "it ended during its start"
    return None if message.kind == READY else message.text


def pack_reply(kind: int, number: int = 0, status: int = 0, cpu_us: int = 0, peak_kb: int = 0, text: str = "") -> bytes:
    """Convert a reply to bytes.

    Args:
        kind: Kind of the reply, such as ``ENDED``.
        number: Number of the child.
        status: Wait status.
        cpu_us: CPU time in microseconds.
        peak_kb: Peak memory in KiB.
        text: Details, truncated to fit ``MAX_BYTES``.
    """
    return _REPLY.pack(kind, number, status, cpu_us, peak_kb) + text.encode()[: MAX_BYTES - _REPLY.size]


def unpack_reply(data: bytes) -> OrderReply:
    """Convert bytes from ``pack_reply`` back to a reply."""
    kind, number, status, cpu_us, peak_kb = _REPLY.unpack_from(data)
    return OrderReply(kind, number, status, cpu_us / 1e6, peak_kb, data[_REPLY.size :].decode("utf-8", "replace"))
