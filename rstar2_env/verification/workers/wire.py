"""Encodes messages between this package and its workers: the length in four bytes, then JSON of limited size.

Pickle is not used. If an adversarial text compromises a worker, the worker can only send wrong values, which the
receiver checks. Not covered: the fields of a message (see ``worker`` and ``process``).
"""

from __future__ import annotations

import json
import struct
from typing import Any

HEADER = struct.Struct(">I")

MAX_BYTES = 4 << 20
"""Size of the largest message, in bytes."""


class WireError(Exception):
    """A message is too large, or is not a JSON object."""


def encode(message: dict[str, Any]) -> bytes:
    """Encode one message as bytes.

    Raises:
        WireError: The message is larger than ``MAX_BYTES``.
    """
    # Model output may contain lone surrogates; "surrogatepass" encodes them where strict UTF-8 would raise.
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return HEADER.pack(_checked(len(body))) + body


def body_length(header: bytes) -> int:
    """Read the length of a message's JSON from the four bytes before it.

    Raises:
        WireError: The length is more than ``MAX_BYTES``.
    """
    return _checked(int(HEADER.unpack(header)[0]))


def _checked(size: int) -> int:
    if size > MAX_BYTES:
        raise WireError(
            f"A message between the verifier and a worker process has {size} bytes; the limit is {MAX_BYTES}."
        )
    return size


def decode(body: bytes) -> dict[str, Any]:
    """Decode the JSON of a message.

    Raises:
        WireError: The message is not a JSON object.
    """
    try:
        message = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"A message between the verifier and a worker process is not valid JSON: {error}.") from error
    if not isinstance(message, dict):
        raise WireError(
            f"A message between the verifier and a worker process must be a JSON object, got {type(message).__name__}."
        )
    return message
