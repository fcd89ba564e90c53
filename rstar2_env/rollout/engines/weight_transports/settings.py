"""``TransportSettings``: the settings of an engine that its transport needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.core.net.http import HttpClient


@dataclass(frozen=True)
class TransportSettings:
    """Settings of a transport, from the options of the engine that uses it.

    Attributes:
        http: The HTTP client for the servers.
        run: Identifier of the run, part of the names of stored weights; the same in every process of the run.
        version: Function that returns the version of the weights that requests use.
        folder: Folder that trainer and servers see under the same path; ``None`` without one.
        relay: Folder of each serving machine into which one of its servers copies the weights of ``folder``; ``None``
            if every server reads ``folder``.
        bucket_bytes: Maximum number of bytes sent or written at once, except for a larger tensor.
        address: Address at which the servers' machines reach this process; ``None`` finds it automatically.
        timeout_s: Seconds that one server may take for one bucket.
    """

    http: HttpClient
    run: str
    version: Callable[[], int]
    folder: Path | None = None
    relay: Path | None = None
    bucket_bytes: int = 256 << 20
    address: str | None = None
    timeout_s: float = 600.0
