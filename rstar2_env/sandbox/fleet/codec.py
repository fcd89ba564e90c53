"""Converts jobs and outcomes to JSON and back, for the client and the server of the remote sandbox.

Covered: every field of ``Job`` and ``Outcome``, any string (including lone surrogates) and any bytes. The JSON is ASCII
without line breaks, so that each value is one line. Not covered: how the JSON is sent.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.limits import Limits

PROTOCOL = 1
"""Version of the messages between client and server; incremented if an older version could misread a new message."""
_LIMITS = tuple(item.name for item in fields(Limits))
_OUTCOME = {item.name: item.default for item in fields(Outcome) if item.name != "status"}


def dump(value: Any) -> bytes:
    """Encode a value as one line of ASCII JSON, without the newline."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def job_to_json(job: Job) -> dict[str, Any]:
    """Convert a job to JSON values, without its session, whose name on the server is added later."""
    written: dict[str, Any] = {"code": pack_text(job.code)}
    if job.stdin:
        written["stdin"] = pack_text(job.stdin)
    if job.seed:
        written["seed"] = job.seed
    if job.files:
        written["files"] = [[pack_text(name), _to_base64(data)] for name, data in job.files.items()]
    written["limits"] = {name: getattr(job.limits, name) for name in _LIMITS}
    return written


def job_from_json(written: Mapping[str, Any]) -> Job:
    """Convert the result of ``job_to_json`` back to a job.

    Raises:
        ConfigurationError: A field is missing or has the wrong type.
    """
    try:
        session = written.get("session")
        seed = written.get("seed", 0)
        if not isinstance(seed, int) or not (session is None or isinstance(session, str)):
            raise TypeError("the field seed must be a whole number, and the field session must be a string or null")
        return Job(
            code=unpack_text(written["code"]),
            stdin=unpack_text(written.get("stdin", "")),
            limits=_limits(written.get("limits", {})),
            files={unpack_text(name): base64.b64decode(data, validate=True) for name, data in written.get("files", ())},
            seed=seed,
            session=session,
        )
    except KeyError as error:
        raise ConfigurationError(f"The field {error.args[0]!r} of a call is missing.") from None
    except (TypeError, ValueError, AttributeError, binascii.Error) as error:
        raise ConfigurationError(f"A field of a call has the wrong type: {error}") from None


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Convert an outcome to JSON values; fields that have their default are omitted."""
    written: dict[str, Any] = {"status": outcome.status.value}
    for name, default in _OUTCOME.items():
        value = getattr(outcome, name)
        if value != default:
            written[name] = pack_text(value) if isinstance(value, str) else value
    return written


def outcome_from_json(written: Mapping[str, Any]) -> Outcome:
    """Convert the result of ``outcome_to_json`` to an outcome; ignore unknown fields, which a newer server may send.

    Raises:
        ValueError: The object is not an outcome.
    """
    known: dict[str, Any] = {name: written[name] for name in _OUTCOME if name in written}
    for name, value in known.items():
        if isinstance(value, str | dict):
            known[name] = unpack_text(value)
    return Outcome(status=ToolStatus(written["status"]), **known)


def pack_text(text: str) -> str | dict[str, str]:
    """Return a string unchanged if JSON can represent it; otherwise an object with the string's bytes in base64."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"base64": _to_base64(text.encode("utf-8", "surrogatepass"))}
    return text


def unpack_text(written: Any) -> str:
    """Convert the result of ``pack_text`` back to a string.

    Raises:
        TypeError: The value is neither a string nor an object from ``pack_text``.
    """
    if isinstance(written, str):
        return written
    if isinstance(written, dict) and isinstance(written.get("base64"), str):
        return base64.b64decode(written["base64"], validate=True).decode("utf-8", "surrogatepass")
    raise TypeError(f"expected a string or an object with 'base64', not {type(written).__name__}")


def _limits(written: Any) -> Limits:
    if not isinstance(written, dict):
        raise TypeError(f"The field `limits` must be an object, not {type(written).__name__}")
    if unknown := set(written) - set(_LIMITS):
        raise ConfigurationError(
            f"The field `limits` contains {', '.join(sorted(unknown))}, which is unknown; the limits are "
            f"{', '.join(_LIMITS)}."
        )
    return Limits(**written)


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
