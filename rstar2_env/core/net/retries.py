"""Rules for retrying HTTP requests: when to retry, how long to wait, and the reason in a server's answer.

Covered: the rules shared by all clients of the package. Not covered: the requests themselves (``http``).
"""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Mapping
from typing import Any

_PASSING = frozenset({408, 409, 425, 429})
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.25, 30.0
_SHOWN_CHARS = 500


def may_pass(status: int) -> bool:
    """Whether an HTTP status is a temporary failure (overload, server error), so that another attempt may succeed."""
    return status in _PASSING or status >= 500


def delay(failures: int) -> float:
    """Return the seconds to wait before the next attempt: they double with each failure, up to a limit.

    A random part keeps many clients from retrying at the same moment.
    """
    return min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2.0 ** (failures - 1)) * (0.5 + random.random() / 2)


def retry_after(value: str | None) -> float | None:
    """Return the seconds in a header ``Retry-After``, given as a number or a date (RFC 9110, section 10.2.3).

    Args:
        value: The header's value; ``None`` when there is none.

    Returns:
        Seconds, limited to the range from 0 to 60; ``None`` without the header, or if its value cannot be parsed.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), 2 * _LONGEST_DELAY_S)


def reason(answer: Any) -> str:
    """Extract the reason of a failure from a server's answer in JSON or text."""
    if isinstance(answer, Mapping):
        error = answer.get("error", answer.get("detail", answer))
        answer = error.get("message", error) if isinstance(error, Mapping) else error
    return str(answer)[:_SHOWN_CHARS] or "no reason given"


def failure(request: str, problem: str, attempts: int) -> str:
    """Return the error message about a failed request.

    Args:
        request: Description of the request.
        problem: Description of the failure.
        attempts: Number of attempts.
    """
    return f"{request} failed{f' ({attempts} attempts)' if attempts > 1 else ''}: {problem}"
