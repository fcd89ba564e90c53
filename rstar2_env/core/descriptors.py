"""``allow_descriptors``: as many open files and connections as the system lets this process have."""

from __future__ import annotations

import resource


def allow_descriptors() -> int:
    """How many descriptors this process may have, raised to what the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
