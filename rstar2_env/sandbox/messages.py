"""Encodes jobs and decodes outcomes as frames, the messages between the caller and the warden."""

from __future__ import annotations

import math
import os
from dataclasses import fields
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.inside import wire
from rstar2_env.sandbox.job import Job, Outcome, OutcomeReason
from rstar2_env.sandbox.limits import Limits

_MIB = 1 << 20
_REPORTED = {item.name for item in fields(Outcome)} - {"status", "stdout", "stderr", "truncated", "attempts"}
"""Fields of an outcome that a frame's header contains unchanged."""


def check_job(job: Job) -> None:
    """Check a job before it is sent anywhere.

    Raises:
        ConfigurationError: ``job`` is not a ``Job``, the path of a file leaves the working folder, or the job is too
            large.
    """
    if not isinstance(job, Job):
        raise ConfigurationError(
            f"A sandbox runs objects of the type Job, not {type(job).__name__}: call run(Job(code))."
        )
    for name in job.files:
        parts = name.split("/")
        if not name or os.path.isabs(name) or ".." in parts or "\0" in name:
            raise ConfigurationError(
                f"The path of a file of a job must be relative to the working folder and inside of it, not {name!r}."
            )
    room = job.limits.file_mb * _MIB
    if (size := sum(map(len, job.files.values()))) > room:
        raise ConfigurationError(
            f"The files of the job have {size} bytes, but the limit file_mb allows only {room} bytes: raise the limit, "
            "or send smaller files."
        )
    if (size := size + len(job.code) + len(job.stdin)) > wire.MAX_FRAME_BYTES:
        raise ConfigurationError(
            f"The job has {size} bytes, but at most {wire.MAX_FRAME_BYTES} bytes can be sent: send smaller files."
        )


def encode_job(call_id: int, job: Job) -> bytes:
    """Encode a job that passed ``check_job`` as a frame for a warden.

    Raises:
        ConfigurationError: The job is too large to send.
    """
    header = {
        "op": "run",
        "id": call_id,
        "seed": job.seed,
        "limits": _limits(job.limits),
        "files": list(job.files),
    }
    if job.session is not None:
        header["session"] = job.session
    code = job.code.encode("utf-8", "surrogatepass")
    stdin = job.stdin.encode("utf-8", "surrogatepass")
    try:
        return wire.pack(header, (code, stdin, *job.files.values()))
    except wire.FrameError as error:
        raise ConfigurationError(f"The job is too large to be sent: {error}") from None


def decode_outcome(header: dict[str, Any], blobs: list[bytes], attempts: int) -> Outcome:
    """Convert a frame from the warden to an outcome.

    Args:
        header: Header of the frame, without the fields that have their default value.
        blobs: Bytes of stdout and stderr.
        attempts: How many times the call was started.
    """
    out, err = (blob.decode("utf-8", "replace") for blob in blobs)
    truncated = any(header.get(f"{name}_left_out") for name in ("stdout", "stderr", "value"))
    reported = {name: value for name, value in header.items() if name in _REPORTED}
    status = ToolStatus(header["status"])
    return Outcome(status, stdout=out, stderr=err, truncated=truncated, attempts=attempts, **reported)


def lost(why: str, attempts: int, session: str | None = None, reason: OutcomeReason = "lost") -> Outcome:
    """Return an ``unavailable`` outcome for a call that was lost through no fault of its program.

    Args:
        why: Reason, as one sentence.
        attempts: How many times the call was started.
        session: Name of the call's session, which ends too; ``None`` without a session.
        reason: Machine-readable reason.
    """
    return Outcome(
        ToolStatus.UNAVAILABLE,
        error_type="SandboxUnavailableError",
        error_message=why,
        attempts=attempts,
        session=None if session is None else "ended",
        session_note=None if session is None else f"The session was ended: {why}",
        reason=reason,
    )


def _limits(limits: Limits) -> dict[str, float]:
    return {
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s if limits.cpu_s is not None else math.ceil(limits.wall_s) + 1,
        "memory_bytes": limits.memory_mb * _MIB,
        "processes": limits.processes,
        "output_bytes": limits.output_bytes,
        "file_bytes": limits.file_mb * _MIB,
    }
