"""``Limits``: time, memory, processes, output and files that one program may use, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.options.declare import check_options, option


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use. All of them are enforced from outside the program.

    Attributes:
        wall_s: Seconds of wall-clock time, counted from the program's start, without the time in the queue. For a
            program that has given way to shorter ones, time in which it could run and had no core does not count
            either, up to four times the limit in all.
        cpu_s: Seconds of CPU time; ``None`` means the wall limit rounded up, plus one.
        memory_mb: MiB of memory.
        processes: Processes and threads alive at once.
        output_bytes: Bytes that stdout and stderr may each hold; a program that writes more is ended.
        file_mb: MiB that its working folder, and any one file, may hold.
    """

    wall_s: float = option(5.0, above=0, unit="seconds")
    cpu_s: float | None = option(None, above=0, unit="seconds")
    memory_mb: int = option(512, least=1, most=1 << 24)
    processes: int = option(64, least=1, most=1 << 20)
    output_bytes: int = option(1 << 20, least=1, most=1 << 30)
    file_mb: int = option(64, least=1, most=1 << 24)

    def __post_init__(self) -> None:
        """Reject limits that no program could run under.

        Raises:
            ConfigurationError: A limit is not a positive number, or not an integer where it counts things.
        """
        check_options(self, "Limits.")
