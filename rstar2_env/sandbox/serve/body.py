"""Reads the body of a request within limits on bytes and JSON values, so that large bodies do not delay other requests.

A JSON parser blocks the event loop until it has parsed the whole body, which can contain millions of tiny values.
Therefore the values are counted first, in short steps between which other requests run, and a body with too many values
is refused.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rstar2_env.core.errors import ConfigurationError

if TYPE_CHECKING:
    from rstar2_env.sandbox.serve.service import Service

VALUES_PER_CALL = 32
"""Number of JSON values that a request may have for each of ``max_calls`` calls; a call has 13 values, and 3 more for
each of its files."""
LEAST_VALUES = 4096
"""Number of JSON values that a request may always have, even if ``max_calls`` is small."""
_STEP = 1 << 15
"""Number of bytes that ``count_values`` searches for values before other tasks of the event loop run; this takes a few
milliseconds at most."""
_IN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_QUOTE = ord('"')
_MOST_DIGITS = 400


class RequestTooLargeError(Exception):
    """The body of a request exceeds the size limit."""


async def read_json(request: Request, max_bytes: int, service: Service) -> Any:
    """Read and parse the body of a request.

    Args:
        request: The HTTP request, whose body was not read yet.
        max_bytes: Largest size of the body, in bytes.
        service: The service; its option ``max_calls`` limits the number of JSON values in the body.

    Raises:
        RequestTooLargeError: The body is larger than ``max_bytes``, whatever its header states.
        ConfigurationError: The body has too many JSON values.
        ValueError: The body is not JSON in UTF-8, or contains an integer with too many digits.
    """
    body = await _read(request, max_bytes)
    most = max(VALUES_PER_CALL * service.options.max_calls, LEAST_VALUES)
    if len(body) > 2 * most and await count_values(body, most) > most:  # a value has at least two bytes, with its comma
        raise ConfigurationError(
            f"A request can have at most {most} JSON values: send fewer calls, or fewer files with each."
        )
    return json.loads(body.decode(), parse_int=_whole)


async def count_values(body: bytes, most: int) -> int:
    """Count the values and containers of a JSON text, without parsing it.

    Returns:
        The number of values that a parser would create, with empty containers counted twice. If that number is above
        ``most``, the result is any number above ``most``, since counting stops there.
    """
    count, at, in_string = 1, 0, False
    while at < len(body) and count <= most:
        end = min(at + _STEP, len(body))
        while at < end:
            if in_string:
                found = _IN_STRING.match(body, at, end)
                at = found.end() if found is not None else at
                if at < end:  # a quote, or the backslash of an escape that the step cuts
                    in_string = body[at] != _QUOTE
                    at += 2 if in_string else 1
            else:
                quote = body.find(b'"', at, end)
                stop = end if quote < 0 else quote
                count += sum(body.count(sign, at, stop) for sign in (b",", b"[", b"{"))
                in_string = quote >= 0
                at = stop + in_string
        await asyncio.sleep(0)
    return count


def too_large(max_bytes: int) -> Response:
    """Return the HTTP response to a request that is too large."""
    text = f"A request can have at most {max_bytes} bytes: send fewer calls, or start the server with --max-request."
    return JSONResponse({"error": text, "max_request_bytes": max_bytes}, 413, headers={"Connection": "close"})


def too_many(count: int, service: Service) -> str:
    """Return the error message for a request with too many calls."""
    most = service.options.max_calls
    return f"A request can have at most {most} calls, not {count}: send the others in further requests."


async def _read(request: Request, max_bytes: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise RequestTooLargeError
        parts.append(part)
    return b"".join(parts)


def _whole(digits: str) -> int:
    """Convert digits to an integer; raise ``ValueError`` for more than ``_MOST_DIGITS``, since that takes long."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"an integer has {len(digits)} digits; at most {_MOST_DIGITS} are accepted")
    return int(digits)
