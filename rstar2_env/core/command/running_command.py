"""The subcommand of ``rstar2`` that this process runs, for hints about the next command."""

from __future__ import annotations

_running = ""


def running_command() -> str:
    """Return the name of the subcommand; empty if the package is used from Python."""
    return _running


def set_running_command(name: str) -> None:
    """Note the name of the subcommand; the command line calls it."""
    global _running
    _running = name
