"""``Limits``: the time, memory, processes, output and files that one program may use, with defaults."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.options.declare import check_options, option
from rstar2_env.core.trust import HIGHEST_LIMITS

LONGEST_S = 10**9
"""Highest time limit in seconds: about thirty years, which a 64-bit integer can hold even in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program. All of them are enforced from outside the program.

    Attributes:
        wall_s: Seconds of wall-clock time from the start of the program, without the time in the queue. For a
            deprioritized program, time in which it was ready to run but had no core does not count either, but
            the program runs for at most four times the limit.
        cpu_s: Seconds of CPU time; ``None`` means the wall limit rounded up, plus one.
        memory_mb: Maximum memory in MiB.
        processes: Maximum number of concurrent processes and threads.
        output_bytes: Maximum number of bytes of stdout and of stderr, each; a program that writes more is ended.
        file_mb: Maximum size in MiB of the program's working folder, and of any one file.
    """

    wall_s: float = option(5.0, above=0, most=LONGEST_S, unit="seconds")
    cpu_s: float | None = option(None, above=0, most=LONGEST_S, unit="seconds")
    memory_mb: int = option(512, least=1, most=1 << 24)
    processes: int = option(64, least=1, most=1 << 20)
    output_bytes: int = option(1 << 20, least=1, most=1 << 30)
    file_mb: int = option(64, least=1, most=1 << 24)

    def __post_init__(self) -> None:
        """Reject limits under which no program could run.

        Raises:
            ConfigurationError: A limit is not positive, or a count, such as ``processes``, is not an integer.
        """
        check_options(self, "Limits.")


CEILING = Limits(**HIGHEST_LIMITS)
"""Upper bounds of limits that do not come from the machine's own user, but from a server's client or from data."""
