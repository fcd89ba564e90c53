"""Tries an action in a forked process: only a trial, not the kernel's version, shows whether a layer is supported."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any, NoReturn


def attempt(action: Callable[[], Any]) -> str | None:
    """Run ``action`` in a forked process, which then ends; return the error if the action fails.

    Returns:
        The error as text; ``None`` on success.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        run_and_report(action, write)
    os.close(write)
    return read_report(read, pid)


def run_and_report(action: Callable[[], Any], report: int) -> NoReturn:
    """In a forked process, run ``action``, write its error to the file descriptor ``report``, and exit."""
    message = b"it ended without a message"
    try:
        action()
        message = b""
    except OSError as error:
        message = reason(error).encode()
    except BaseException:
        message = traceback.format_exc().encode()
    finally:
        os.write(report, message[:4000])
        os._exit(0)


def reason(error: OSError) -> str:
    """Return the message of an error without its number, with the name of the file that it concerns, if any."""
    said = error.strerror or str(error) or type(error).__name__
    return f"{said}: {error.filename}" if error.filename else said


def read_report(report: int, pid: int) -> str | None:
    """Wait for the end of a process that runs ``run_and_report``; return its error, or ``None`` on success."""
    with os.fdopen(report, "rb") as file:
        message = file.read().decode()
    os.waitpid(pid, 0)
    return message or None
