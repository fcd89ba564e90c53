"""``MachineState``: all that the checks look at, as one record that can be written down and read back.

A check is a function of this record alone, so that the state of a machine that somebody else has can be checked
anywhere: ``rstar2 doctor --json`` writes it, ``rstar2 doctor --machine FILE`` reads it, and tests hold several.
Covered: the record. Not covered: how it is taken (``record``), what is concluded from it (the families of checks).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, call_with_options


@dataclass(frozen=True)
class Gpu(CheckedOptions):
    """One accelerator.

    Attributes:
        name: Its name, as whoever was asked gives it.
        arch: ``"gfx942"``, ``"sm_90"``, ...; empty if it is not known.
        memory_bytes: Its memory.
    """

    name: str
    arch: str = ""
    memory_bytes: int = 0


@dataclass(frozen=True)
class System(CheckedOptions):
    """The machine and its operating system.

    Attributes:
        kernel: Release of the kernel.
        distribution: Name and version of the distribution.
        python: Version of the interpreter.
        glibc: Version of the C library; empty where it is another one.
        cpus: Cores that this process may use.
        memory_bytes: Main memory.
        container: Whether this process runs in a container.
        numa_nodes: Nodes of memory.
        numa_balancing: Whether the kernel moves pages between nodes; ``None`` if it does not say.
    """

    kernel: str = ""
    distribution: str = ""
    python: str = ""
    glibc: str = ""
    cpus: int = 1
    memory_bytes: int = 0
    container: bool = False
    numa_nodes: int = 1
    numa_balancing: bool | None = None


@dataclass(frozen=True)
class Driver(CheckedOptions):
    """What the kernel's drivers show.

    Attributes:
        vendor: ``"amd"``, ``"nvidia"``, or empty without an accelerator.
        version: Version of the kernel's driver.
        rocm: Version of the ROCm installation under ``/opt/rocm``; empty if there is none.
        devices: The accelerators that the driver has.
        nodes: Files in ``/dev`` that a process needs to use them, each with whether this process may read and write it.
        groups: Names of the groups that this process is in.
    """

    vendor: str = ""
    version: str = ""
    rocm: str = ""
    devices: tuple[Gpu, ...] = ()
    nodes: dict[str, bool] = field(default_factory=dict)
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Torch(CheckedOptions):
    """The installed torch, as a fresh interpreter found it.

    Attributes:
        version: Its version; empty if it is not installed.
        hip: Version of HIP that it was built for; empty for other builds.
        cuda: Version of CUDA that it was built for; empty for other builds.
        archs: Architectures that it has kernels for.
        devices: The accelerators that it sees.
        bf16: Whether it computes in bfloat16 on them.
        error: Why it could not be asked.
    """

    version: str = ""
    hip: str = ""
    cuda: str = ""
    archs: tuple[str, ...] = ()
    devices: tuple[Gpu, ...] = ()
    bf16: bool = False
    error: str = ""

    @property
    def build(self) -> str:
        """``"rocm"``, ``"cuda"`` or ``"cpu"``; empty if it is not installed."""
        if not self.version:
            return ""
        return "rocm" if self.hip else "cuda" if self.cuda else "cpu"


@dataclass(frozen=True)
class Vllm(CheckedOptions):
    """The installed vLLM, from its files: it is not imported.

    Attributes:
        version: Its version; empty if it is not installed.
        build: ``"rocm"``, ``"cuda"``, ``"cpu"`` or ``"unknown"``; empty if it is not installed.
    """

    version: str = ""
    build: str = ""


@dataclass(frozen=True)
class ProcessLimits(CheckedOptions):
    """What this process may use.

    Attributes:
        shm_bytes: Size of ``/dev/shm``.
        files: Files that may be open at once; -1 without a limit, as for the others.
        locked_bytes: Memory that may be locked.
        stack_bytes: Stack of a thread.
        processes: Processes of this user.
        cgroup: Version of the control groups, 1 or 2; 0 if there are none.
        cgroup_memory_bytes: Memory of the control group.
        cgroup_cpus: Cores of the control group.
        cgroup_pids: Processes of the control group.
    """

    shm_bytes: int = 0
    files: int = -1
    locked_bytes: int = -1
    stack_bytes: int = -1
    processes: int = -1
    cgroup: int = 0
    cgroup_memory_bytes: int = -1
    cgroup_cpus: float = -1.0
    cgroup_pids: int = -1


@dataclass(frozen=True)
class Layer(CheckedOptions):
    """One layer of the sandbox's isolation; as ``rstar2_env.sandbox.job.Capability``."""

    name: str
    active: bool
    detail: str = ""
    required: bool = False


@dataclass(frozen=True)
class SandboxState(CheckedOptions):
    """The local sandbox.

    Attributes:
        layers: Its layers.
        error: Why it could not be started.
    """

    layers: tuple[Layer, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Folder(CheckedOptions):
    """Where runs are written.

    Attributes:
        path: The folder, or the nearest one above it that exists.
        writable: Whether a file could be written there.
        filesystem: Its type (``"ext4"``, ``"nfs4"``, ...).
        free_bytes: What is free there.
        ahead_s: Seconds by which the clock of its files is ahead of this machine's.
        synchronized: Whether the kernel says that the clock is kept by a time service; ``None`` if it does not say.
        year: The year that the clock shows.
    """

    path: str = ""
    writable: bool = True
    filesystem: str = ""
    free_bytes: int = 0
    ahead_s: float = 0.0
    synchronized: bool | None = None
    year: int = 0


@dataclass(frozen=True)
class MachineState(CheckedOptions):
    """The state of a machine.

    Attributes:
        system: The machine and its operating system.
        driver: What the kernel's drivers show.
        torch: The installed torch.
        vllm: The installed vLLM.
        packages: Versions of further packages, by name.
        environment: The variables that matter, without keys and tokens.
        bounds: What this process may use.
        sandbox: The local sandbox.
        folder: Where runs are written.
    """

    system: System = field(default_factory=System)
    driver: Driver = field(default_factory=Driver)
    torch: Torch = field(default_factory=Torch)
    vllm: Vllm = field(default_factory=Vllm)
    packages: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    bounds: ProcessLimits = field(default_factory=ProcessLimits)
    sandbox: SandboxState = field(default_factory=SandboxState)
    folder: Folder = field(default_factory=Folder)

    @classmethod
    def from_record(cls, found: Mapping[str, Any]) -> MachineState:
        """Read a state that ``record`` gave.

        Args:
            found: The state, as JSON gives it.

        Raises:
            ConfigurationError: A value is not of its type, or nobody knows it.
        """
        state = dict(found)
        for part, name, kind in (("driver", "devices", Gpu), ("torch", "devices", Gpu), ("sandbox", "layers", Layer)):
            of_part = state.get(part)
            if isinstance(of_part, Mapping) and isinstance(of_part.get(name), list):
                members = [
                    call_with_options(f"state of a machine, {part}.{name}[{at}],", kind, one)
                    if isinstance(one, Mapping)
                    else one
                    for at, one in enumerate(of_part[name])
                ]
                state[part] = {**of_part, name: members}
        return call_with_options("state of a machine", cls, state)

    @classmethod
    def read(cls, text: str) -> MachineState:
        """Read what ``rstar2 doctor --json`` printed, or the state alone.

        Raises:
            ConfigurationError: It is neither.
        """
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ConfigurationError(
                f"The state of a machine must be JSON, as `rstar2 doctor --json` prints it: {error}."
            ) from error
        if isinstance(found, Mapping):
            found = found.get("machine", found)
        if not isinstance(found, Mapping):
            raise ConfigurationError(
                f"The state of a machine must be an object, as `rstar2 doctor --json` prints it, not "
                f"{str(found)[:60]!r}."
            )
        return cls.from_record(found)

    def record(self) -> dict[str, Any]:
        """The state as JSON can hold it."""
        return dataclasses.asdict(self)

    @property
    def amd(self) -> bool:
        """Whether the accelerators are AMD's."""
        return self.driver.vendor == "amd"

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that are set to something: an empty one counts as not set, as vLLM reads them."""
        return {name: value for name, value in self.environment.items() if value}

    def is_enabled(self, name: str) -> bool:
        """Whether a variable says yes: ``1``, ``true`` or ``yes``."""
        return self.environment.get(name, "").strip().casefold() in ("1", "true", "yes")
