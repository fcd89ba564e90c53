"""The options of the ``docker`` provider: those of a warden, and those of the containers that hold one each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.sandbox.docker.image import DEFAULT_TAG
from rstar2_env.sandbox.options import LocalOptions

SCRATCH = "/scratch"
_MIB = 1 << 20
_WARM_MB, _SPARE_MB, _WAITING_MB, _SESSION_MB = 1024, 128, 32, 64
_SHARE_OF_MACHINE = 0.8
_SPARE_PROCESSES, _SESSION_PROCESSES = 64, 8


@dataclass(frozen=True)
class DockerOptions(LocalOptions):
    """Options of the ``docker`` provider. Those of ``LocalOptions`` apply to the warden in each container.

    ``preload`` and a program's imports come from the image. ``readable`` is not supported: build an image that has the
    files instead. ``workers`` counts the programs that run at once in each container.

    Attributes:
        image: The image, as ``rstar2 sandbox image`` builds it.
        base_url: Address of the engine; ``None`` asks ``DOCKER_HOST``, then the usual socket.
        runtime: Name of the engine's runtime (``"runsc"`` for gVisor); ``None`` is the engine's default.
        containers: Number of warm containers. ``None``: one where layers around each call isolate it, else two for each
            usable core, since each container then serves one call and is replaced.
        memory_mb: MiB of memory of a container; ``None`` adds up what its calls may use and 64 for each session, at
            most 80 % of the machine.
        cpus: Cores that a container may use; ``None`` is ``workers``.
        pids: Processes and threads in a container; ``None`` adds up what its calls may use and 8 for each session.
        apparmor: Name of the AppArmor profile on machines that have it. Docker's own refuses the mounts of each call's
            private view.
    """

    provider: ClassVar[str] = "docker"

    image: str = option(DEFAULT_TAG, least=1)
    base_url: str | None = option(None, least=1)
    runtime: str | None = option(None, least=1)
    containers: int | None = option(None, least=1)
    memory_mb: int | None = option(None, least=1)
    cpus: float | None = option(None, above=0)
    pids: int | None = option(None, least=1)
    apparmor: str = option("unconfined", least=1)

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of its range or of the wrong kind.
        """
        super().__post_init__()
        if self.readable:
            raise ConfigurationError(
                "readable names paths of this machine, which a container does not have; put the files into an image "
                "built on rstar2-sandbox, below /usr or /opt."
            )

    def memory_bytes(self, machine: int) -> int:
        """Memory limit of a container in bytes, on a machine with ``machine`` bytes."""
        if self.memory_mb is not None:
            return self.memory_mb * _MIB
        each = self.limits.memory_mb + self.limits.file_mb + _SPARE_MB
        resting = self.session_memory_mb or self.max_sessions * _SESSION_MB
        wanted = (_WARM_MB + (self.slots + self.deprioritize) * each + self.prepared * _WAITING_MB + resting) * _MIB
        return min(wanted, int(machine * _SHARE_OF_MACHINE)) if machine else wanted

    @property
    def most_processes(self) -> int:
        """Processes and threads that a container may have."""
        if self.pids is not None:
            return self.pids
        sessions = self.max_sessions * _SESSION_PROCESSES
        running = (self.slots + self.deprioritize) * (self.limits.processes + 4)
        return _SPARE_PROCESSES + running + 4 * self.prepared + sessions

    @property
    def prepared(self) -> int:
        """Children kept ready in a container."""
        return self.waiting if self.waiting is not None else self.slots

    def for_one_call(self) -> Self:
        """The same options for containers that serve one call, with the limits of that call."""
        return replace(self, workers=1, deprioritize=0, waiting=1, max_sessions=1, session_memory_mb=None)

    def for_container(self, *, alone: bool) -> dict[str, Any]:
        """The first message to the warden in a container.

        Args:
            alone: Whether the container serves one call only, because it is the only isolation between calls.
        """
        message = self.for_warden(SCRATCH)
        # Layers missing inside are replaced by the container's own: see walls.
        message |= {"site_dirs": None, "guard": True, "isolation": "none" if self.isolation == "none" else "best"}
        return message | ({"workers": 1, "waiting": 1, "deprioritize": 0} if alone else {})
