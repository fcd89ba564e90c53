"""The name of the ``rstar2`` subcommand that this process runs, for hints about the next command."""

from __future__ import annotations

_running = ""


def running_command() -> str:
    """Return the name of the running subcommand; empty if the package is used from Python."""
    return _running


def set_running_command(name: str) -> None:
    """Set the name of the running subcommand; called by the command line."""
    global _running
    _running = name


def named_in(command: str, flag: str, option: str) -> str:
    """Return ``flag`` if ``command`` is the running subcommand; otherwise ``option``, the option's name in Python."""
    return flag if _running == command else option
