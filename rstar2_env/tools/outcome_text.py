"""``outcome_text``: the text that the policy is shown for the outcome of a program: output, timeout, limits, errors."""

from __future__ import annotations

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Outcome
from rstar2_env.sandbox.limits import Limits


def outcome_text(outcome: Outcome, *, noun: str, limits: Limits, traceback: bool) -> str:
    """Return the output of a program, and a sentence on its failure if it failed.

    Args:
        outcome: The outcome of the program.
        noun: The word for the policy's code, such as "program".
        limits: The program's limits; the sentence states the limit that was exceeded.
        traceback: Whether to show the traceback of an exception, or only its type and message.
    """
    parts = [_marked(outcome.stdout, outcome.stdout_left_out)]
    if outcome.stderr:
        parts.append(_marked(outcome.stderr, outcome.stderr_left_out))
    if outcome.value is not None:
        parts.append(outcome.value)
    if (failure := _failure(outcome, noun, limits, traceback)) is not None:
        parts.append(failure)
    if outcome.status is ToolStatus.EMPTY:
        parts.append(f"The {noun} ended and printed nothing; use print(...) to see a value.")
    # Each part starts on a new line; if stdout is the only part, it stays exactly as the program wrote it.
    text = ""
    for part in filter(None, parts):
        text += part if not text or text.endswith("\n") else "\n" + part
    return text


def _failure(outcome: Outcome, noun: str, limits: Limits, traceback: bool) -> str | None:
    stopped = f"The {noun} was {'interrupted' if outcome.session == 'interrupted' else 'stopped'}"
    match outcome.status:
        case ToolStatus.TIMEOUT:
            # The warden watches the wall clock; the kernel watches the CPU time, and sends SIGXCPU first.
            on_cpu = outcome.signal == "SIGXCPU" or 0 < outcome.wall_s < 0.9 * limits.wall_s
            spent = "used up its CPU time" if on_cpu else f"ran longer than {limits.wall_s:g} s"
            return f"{stopped}: it {spent}."
        case ToolStatus.MEMORY:
            message = f"{stopped}: it used more than {limits.memory_mb} MiB of memory."
            return f"{outcome.traceback.rstrip()}\n{message}" if outcome.traceback and traceback else message
        case ToolStatus.OUTPUT_LIMIT:
            return f"{stopped}: it wrote more than {limits.output_bytes} bytes."
        case ToolStatus.BLOCKED:
            return f"{stopped}: {outcome.error_message or 'it tried something that is not allowed'}."
        case ToolStatus.UNAVAILABLE:
            return f"The tool is not available at the moment; the {noun} was not run."
        case ToolStatus.EXCEPTION | ToolStatus.SYNTAX_ERROR:
            return (outcome.traceback if traceback else None) or _ending(outcome, noun)
        case _:
            return None


def _ending(outcome: Outcome, noun: str) -> str:
    if outcome.signal is not None:
        return f"The {noun} was ended by the signal {outcome.signal}."
    if outcome.error_type is not None:
        return f"{outcome.error_type}: {outcome.error_message or ''}".rstrip(": ")
    return f"The {noun} ended with exit code {outcome.exit_code}."


def _marked(text: str, left_out: int) -> str:
    return f"{text}\n[... {left_out} bytes left out ...]" if left_out else text
