"""``verdict``: decides the status of a call from observations of warden and kernel, and the program's own report.

The first failure in this order decides: a limit that the warden enforced, the signal that ended the process, a nonzero
exit code. The kernel's counters and the program's report make the status of such a failure more specific; the report
never turns a failed exit into a success. If a cell's session continues, no process ends, so the report decides unless a
limit was exceeded.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from typing import Any

_TEXT_LIMIT = 70_000
_NAME_LIMIT = 200
_OWN_SHARE = 0.9
"""Share of the CPU limit that a program must have used for the signal SIGXCPU to count as a timeout, since a program
can send itself this signal."""


@dataclass(slots=True)
class Seen:
    """The warden's observations of one call.

    Attributes:
        wait_status: Result of ``wait4``; ``None`` if the process could not be reaped.
        stopped_for: Reason why the warden ended the program: "timeout", "output_limit", "memory", "processes", "files",
            "pipes", "rest" or "forged" (see ``Outcome.reason``); ``None`` if the program ended by itself.
        out_of_memory: Whether the kernel killed a process for exceeding the memory limit.
        started: Whether the program compiled, as the harness (the sandbox's code in the child) reported before it ran.
        cpu_s: CPU seconds used.
        cpu_limit_s: CPU seconds allowed.
        output: Whether the program wrote anything to stdout or stderr.
        over_output: Whether output was dropped, because the program wrote more than its output limit.
        reports: Messages of the child, in order.
        lives: Whether the call was a cell of a session whose process continues. If so, the program's own report decides
            the status, unless a limit was exceeded.
    """

    wait_status: int | None = None
    stopped_for: str | None = None
    out_of_memory: bool = False
    started: bool = False
    cpu_s: float = 0.0
    cpu_limit_s: float = float("inf")
    output: bool = False
    over_output: bool = False
    reports: list[bytes] = field(default_factory=list)
    lives: bool = False


def verdict(seen: Seen) -> dict[str, Any]:
    """Return the fields of ``Outcome`` that the observations determine.

    The fields ``exit_code``, ``signal``, ``status`` and ``reason`` are always present. Depending on the status, the
    result can also contain ``error_type``, ``error_message``, ``traceback``, ``value`` and ``value_left_out`` (number
    of dropped characters; see ``Outcome.truncated``).
    """
    exit_code, signal_name = _exit_status(seen.wait_status)
    report = read_report(seen.reports)
    found: dict[str, Any] = {"exit_code": exit_code, "signal": signal_name}
    if seen.lives:
        status, reason, message = _status_of_cell(seen, report)
    else:
        status, reason, message = _status(seen, exit_code, signal_name, report)
    found |= {"status": status, "reason": reason}
    if status in ("syntax_error", "exception", "memory") or seen.lives:
        for key in ("error_type", "error_message", "traceback"):
            found[key] = report.get(key)
    if message is not None and not found.get("error_message"):
        found["error_message"] = message
    if status == "ok" and "value" in report:
        found["value"] = report["value"]
        found["value_left_out"] = report.get("value_left_out", 0)
    return found


_STOPPED = {
    "timeout": ("timeout", "wall_clock", "The program ran past its wall-clock limit and was ended."),
    "memory": ("memory", "memory", "The program and its child processes used up its memory and were ended."),
    "processes": ("exception", "processes", "The program had more processes and threads than its limit and was ended."),
    "files": ("exception", "files", "The program wrote more files than its working folder may hold and was ended."),
    "pipes": ("exception", "pipes", "The program had more pipes than its limit and was ended."),
    "rest": ("exception", "rest", "Processes that earlier cells left behind could not be halted, and were ended."),
    "forged": (
        "exception",
        "forged",
        "The program forged a message of the sandbox and was ended.",
    ),
    "output_limit": ("output_limit", "output", "The program wrote more than its output limit and was ended."),
}
"""Status, reason and message of an outcome, by the reason for which the warden ended the program
(``Seen.stopped_for``)."""
_Found = tuple[str, str | None, str | None]
"""Status and reason of an outcome, and the message that applies if the program's report has none."""


def _status(seen: Seen, exit_code: int | None, name: str | None, report: dict[str, Any]) -> _Found:
    if seen.stopped_for is not None:
        return _STOPPED[seen.stopped_for]
    if seen.over_output:
        return _STOPPED["output_limit"]
    if name is not None:
        return _status_of_signal(seen, name)
    if exit_code:
        if not seen.started and report.get("phase") == "compile" and report.get("error_type") != "MemoryError":
            return "syntax_error", "compile", None
        if report.get("error_type") == "MemoryError":
            return "memory", "exit", None
        if seen.out_of_memory:
            return "memory", "memory", "The program used up its memory."
        return "exception", "exit", f"The program ended with exit code {exit_code}."
    shown = seen.output or report.get("value") is not None
    return ("ok" if shown else "empty"), None, None


def _status_of_cell(seen: Seen, report: dict[str, Any]) -> _Found:
    if seen.stopped_for == "timeout":
        return "timeout", "wall_clock", "The cell ran past its wall-clock limit and was interrupted."
    if seen.stopped_for == "output_limit":
        return "output_limit", "output", "The cell wrote more than its output limit and was interrupted."
    if seen.over_output:
        return "output_limit", "output", "The cell wrote more than its output limit."
    if "error_type" in report:
        if report["error_type"] == "MemoryError" or seen.out_of_memory:
            return "memory", "memory" if seen.out_of_memory else "raised", None
        return ("syntax_error", "compile", None) if report.get("phase") == "compile" else ("exception", "raised", None)
    shown = seen.output or report.get("value") is not None
    return ("ok" if shown else "empty"), None, None


def _status_of_signal(seen: Seen, name: str) -> _Found:
    if name == "SIGKILL" and seen.out_of_memory:
        return "memory", "memory", "The program used up its memory and was ended by the kernel."
    used_up = seen.cpu_s >= seen.cpu_limit_s * (_OWN_SHARE if name == "SIGXCPU" else 1.0)
    if name in ("SIGXCPU", "SIGKILL") and used_up:
        return "timeout", "cpu", "The program used up its CPU time and was ended."
    if name == "SIGSYS":
        return "blocked", "system_call", "The program made a system call that the sandbox refuses, and was ended."
    return "exception", "signal", f"The program was ended by {name}."


def read_report(messages: list[bytes]) -> dict[str, Any]:
    """Return the fields of the last message that is a report of the harness (see ``Seen.started``); {} without one.

    A field of the wrong type is dropped, and texts are truncated, since the program could have forged the message.
    """
    for message in reversed(messages):
        try:
            raw = json.loads(message)
        except (ValueError, RecursionError):
            continue
        if not isinstance(raw, dict) or "ready" in raw or "started" in raw:
            continue
        texts = ("error_type", "error_message", "traceback", "value", "phase")
        report: dict[str, Any] = {key: _plain(raw[key]) for key in texts if isinstance(raw.get(key), str)}
        if "error_type" in report:
            report["error_type"] = report["error_type"][:_NAME_LIMIT]
        left_out = raw.get("value_left_out")
        if isinstance(left_out, int) and 0 < left_out < 1 << 62:
            report["value_left_out"] = left_out
        return report
    return {}


def _plain(text: str) -> str:
    """Truncate a text and replace lone surrogates, which UTF-8 cannot encode."""
    return text[:_TEXT_LIMIT].encode("utf-8", "replace").decode()


def _exit_status(status: int | None) -> tuple[int | None, str | None]:
    if status is None:
        return None, None
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, signal_name(-code))


def signal_name(number: int) -> str:
    """Return the name of a signal number ("SIGKILL")."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
