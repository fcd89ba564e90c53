"""``raise_open_file_limit``: lets this process open as many files and connections as the system permits."""

from __future__ import annotations

import resource


def raise_open_file_limit() -> int:
    """Raise this process's limit on open files to the hard limit, and return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
