"""Options of the provider ``docker``."""

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
    """Options of the provider ``docker``. The options of ``LocalOptions`` apply to the warden in each container.

    Programs can import the packages of the image. ``readable`` is not supported: build an image with the files instead.
    ``workers`` is the number of programs that run concurrently in each container.

    Attributes:
        image: Image built by ``rstar2 sandbox image``.
        base_url: Address of the engine; ``None`` uses ``DOCKER_HOST``, then the default socket.
        runtime: Name of the container runtime (``"runsc"`` for gVisor); ``None`` uses the engine's default.
        containers: Number of containers that are kept running. ``None`` means one if a container can isolate
            its calls from one another, or if isolation is off; otherwise two per usable core, since each container
            then serves one call and is replaced.
        memory_mb: Memory limit of a container in MiB. With ``None``, it is the sum of: the limits of the concurrent
            calls; ``session_memory_mb`` if it is set, else 64 MiB per session; and the memory of the sandbox itself;
            but at most 80 % of the machine's memory.
        cpus: Cores of a container; ``None`` uses ``workers``.
        pids: Maximum number of processes and threads in a container. With ``None``, it is the sum of: the limits of the
            concurrent calls, 8 per session, and the processes of the sandbox itself.
        apparmor: Name of the AppArmor profile, on machines with AppArmor. Docker's default profile forbids the mounts
            that a call's private file system needs.
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
            ConfigurationError: A value is out of range or has the wrong type.
        """
        super().__post_init__()
        if self.readable:
            raise ConfigurationError(
                "The option `readable` lists paths of this machine, which a container cannot see: omit "
                "it, and add the files to an image based on rstar2-sandbox, below /usr or /opt."
            )

    def memory_bytes(self, machine: int) -> int:
        """Return the memory limit of a container in bytes, on a machine with ``machine`` bytes of memory."""
        if self.memory_mb is not None:
            return self.memory_mb * _MIB
        each = self.limits.memory_mb + self.limits.file_mb + _SPARE_MB
        resting = self.session_memory_mb or self.max_sessions * _SESSION_MB
        wanted = (_WARM_MB + (self.slots + self.deprioritize) * each + self.prepared * _WAITING_MB + resting) * _MIB
        return min(wanted, int(machine * _SHARE_OF_MACHINE)) if machine else wanted

    @property
    def most_processes(self) -> int:
        """Return the largest number of processes and threads in a container."""
        if self.pids is not None:
            return self.pids
        sessions = self.max_sessions * _SESSION_PROCESSES
        running = (self.slots + self.deprioritize) * (self.limits.processes + 4)
        return _SPARE_PROCESSES + running + 4 * self.prepared + sessions

    def for_one_call(self) -> Self:
        """Return a copy of the options for containers that serve one call each."""
        return replace(self, workers=1, deprioritize=0, waiting=1, max_sessions=1, session_memory_mb=None)

    def for_container(self) -> dict[str, Any]:
        """Return the options as the first message to the warden in a container."""
        # The container replaces layers that are missing inside (see ``walls``).
        isolation = "none" if self.isolation == "none" else "best"
        return self.for_warden(SCRATCH) | {"site_dirs": None, "guard": True, "isolation": isolation}
