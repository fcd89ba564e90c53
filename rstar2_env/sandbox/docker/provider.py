"""``DockerSandbox``: runs programs under wardens (supervising processes) in containers that are already running.

The warden is the same program as for the provider ``local``. If it can isolate each call inside a container, many calls
share a container. Otherwise (another runtime, or an engine that denies namespaces to containers), a container serves
one call and is replaced. Covered: the pool of containers and the choice of a container for a call. Not covered: a
single container (``container``), the image (``image``), the mechanism behind each guarantee (``walls``).
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from rstar2_env.core.cores import usable_cores
from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.sandbox.base import BaseSandbox, PendingJob
from rstar2_env.sandbox.client import WardenClient
from rstar2_env.sandbox.docker import engine as docker_engine
from rstar2_env.sandbox.docker import walls as docker_walls
from rstar2_env.sandbox.docker.container import Container
from rstar2_env.sandbox.docker.options import DockerOptions
from rstar2_env.sandbox.docker.single import SingleUse
from rstar2_env.sandbox.job import Capability, Job

_PATIENCE_S = 10.0
"""Seconds to wait for a Docker engine that does not answer because it is being restarted."""


class DockerSandbox(BaseSandbox):
    """Runs Python programs in containers that are already running. Safe to call from any thread.

    Args:
        **options: See ``DockerOptions``.

    Raises:
        ConfigurationError: An option is invalid.
        MissingExtraError: Docker's SDK for Python is not installed.
        SandboxUnavailableError: No engine answers, the image is missing, or the requested isolation is not available.
    """

    options: DockerOptions
    unisolated = (
        "isolation='none': the programs are isolated only by the container, and all programs share it, "
        "so that they can disturb each other. Use it for debugging only."
    )
    lacking = "The docker sandbox runs without isolation layers that this Docker daemon does not provide"

    def __init__(self, **options: Any) -> None:
        super().__init__(DockerOptions.from_mapping(options))
        self._members: list[WardenClient] = []
        self._single: SingleUse | None = None
        self._info = self._look_at_engine()
        first = self._start(self.options)
        self._capabilities = docker_walls.capabilities(first.capabilities(), self._info, self.options)
        self._members = [first]
        try:
            if self.options.isolation == "strict" and (gaps := self._gaps()):
                raise SandboxUnavailableError(
                    "isolation='strict' requires layers of isolation that this Docker daemon provides neither for a "
                    f"program nor for its container: {'; '.join(gaps)}. Use isolation='best', or another daemon or "
                    "runtime."
                )
            if docker_walls.calls_are_isolated(first.capabilities()) or self.options.isolation == "none":
                with ThreadPoolExecutor(8) as pool:
                    self._members += pool.map(self._start, [self.options] * ((self.options.containers or 1) - 1))
            else:
                self._members = []
                first.close()
                count = self.options.containers or 2 * usable_cores()
                alone = self.options.for_one_call()
                self._single = SingleUse(lambda: self._start(alone), count)
        except BaseException:
            self.close()
            raise
        self._started()

    # The protocol

    def _submit(self, job: Job) -> PendingJob:
        options = self.options if self._single is None else self.options.for_one_call()
        if job.limits.memory_mb > (room := options.memory_bytes(int(self._info.get("MemTotal", 0))) >> 20):
            raise ConfigurationError(
                f"A program has a memory limit of {job.limits.memory_mb} MiB, but a container of this "
                f"sandbox has only {room} MiB: raise memory_mb of the sandbox, or set `limits` of the "
                "sandbox to the limits of its programs."
            )
        if self._single is not None:
            return self._single.submit(job)
        if job.session is not None:
            return self._home(job.session).submit(job)
        return min(self._members, key=lambda member: member.in_flight).submit(job)

    def capabilities(self) -> Sequence[Capability]:
        """Return the guarantees, then the isolation of the container, then the mechanisms inside the container."""
        return self._capabilities

    def end_session(self, name: str) -> None:
        """End a session and delete its state; an unknown name is ignored."""
        if self._members and not self._closed:
            self._home(name).end_session(name)

    def _end(self) -> None:
        if self._single is not None:
            self._single.close()
        for member in self._members:
            member.begin_close()  # all at once
        for member in self._members:
            member.close()

    @property
    def wall(self) -> Literal["call", "container"]:
        """How calls are isolated from one another: by layers around each ``call``, or by one ``container`` per call."""
        return "call" if self._single is None else "container"

    # Containers

    def _look_at_engine(self) -> dict[str, Any]:
        """Check the engine and the image, and remove containers of earlier processes; return ``docker info``."""
        with contextlib.closing(docker_engine.connect(self.options.base_url)) as engine:
            docker_engine.check_image(engine, self.options.image)
            docker_engine.check_runtime(engine, self.options.runtime)
            docker_engine.sweep(engine)
            return dict(engine.info())

    @staticmethod
    def _start(options: DockerOptions) -> WardenClient:
        """Start a container and return its client, which replaces a lost container and waits if the engine restarts."""
        patience = iter([0.0])
        return WardenClient(
            options,
            lambda: Container(options, next(patience, _PATIENCE_S)),
            warns=False,  # the container replaces layers that are missing inside (``walls``)
        )

    def _home(self, session: str) -> WardenClient:
        """Return the client for the container in which a session runs."""
        return self._members[zlib.crc32(session.encode("utf-8", "surrogatepass")) % len(self._members)]
