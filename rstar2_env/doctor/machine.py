"""``MachineState``: the input of all checks, as one record that can be written as JSON and read back.

Checks depend on this record alone, so the state of another machine can be checked anywhere: ``rstar2 doctor --json``
writes the record, ``rstar2 doctor --machine FILE`` reads it, and the tests contain several records. An unknown value is
empty, 0 or ``None``; an unknown limit is -1, which also means no limit. Not covered: how the state of this machine is
recorded (``record``), and the checks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, call_with_options
from rstar2_env.sandbox.job import Capability


@dataclass(frozen=True)
class Gpu(CheckedOptions):
    """One accelerator.

    Attributes:
        name: Name of the model, such as ``AMD Instinct MI300X``.
        arch: Architecture, such as ``gfx942`` or ``sm_90``.
        memory_bytes: Size of its memory.
    """

    name: str
    arch: str = ""
    memory_bytes: int = 0


@dataclass(frozen=True)
class System(CheckedOptions):
    """The machine and its operating system.

    Attributes:
        kernel: Version of the kernel.
        distribution: Name and version of the distribution.
        python: Version of Python.
        glibc: Version of glibc; empty for another C library.
        cpus: Number of CPU cores that this process can use.
        memory_bytes: Size of the main memory.
        container: Whether the process runs in a Docker or Podman container.
        numa_nodes: Number of NUMA nodes.
        numa_balancing: Whether the kernel moves memory between NUMA nodes; ``None`` if unknown.
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
    """The accelerator driver, the accelerators that it reports, and this process's access to them.

    Attributes:
        vendor: ``amd``, ``nvidia``, or empty without an accelerator.
        version: Version of the driver.
        rocm: Version of the ROCm installation in ``/opt/rocm``; empty without one.
        devices: The accelerators.
        nodes: For each required file in ``/dev``, whether this process can read and write it.
        groups: Names of the user groups of this process.
    """

    vendor: str = ""
    version: str = ""
    rocm: str = ""
    devices: tuple[Gpu, ...] = ()
    nodes: dict[str, bool] = field(default_factory=dict)
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Torch(CheckedOptions):
    """The installed torch, as reported by a new interpreter.

    Attributes:
        version: Version of torch; empty if it is not installed.
        hip: Version of HIP that torch was built with; empty without HIP.
        cuda: Version of CUDA that torch was built with; empty without CUDA.
        archs: Architectures for which torch has kernels.
        devices: The accelerators that torch sees.
        bf16: Whether torch supports bfloat16 on the devices.
        error: Reason why torch cannot be loaded; empty if it can.
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
        """Kind of build: ``"rocm"``, ``"cuda"`` or ``"cpu"``; empty if torch is not installed."""
        if not self.version:
            return ""
        return "rocm" if self.hip else "cuda" if self.cuda else "cpu"


@dataclass(frozen=True)
class Vllm(CheckedOptions):
    """The installed vLLM, according to its files; it is not imported.

    Attributes:
        version: Version of vLLM; empty if it is not installed.
        build: ``rocm``, ``cuda``, ``cpu`` or ``unknown``; empty if vLLM is not installed.
    """

    version: str = ""
    build: str = ""


@dataclass(frozen=True)
class ProcessLimits(CheckedOptions):
    """Limits of this process, of its user and of its control group; -1 means no limit.

    Attributes:
        shm_bytes: Size of ``/dev/shm``.
        files: Maximum number of open files.
        locked_bytes: Maximum size of locked memory.
        stack_bytes: Maximum size of the stack.
        processes: Maximum number of processes of the user.
        cgroup: Version of control groups, 1 or 2; 0 without control groups.
        cgroup_memory_bytes: Maximum memory of the control group.
        cgroup_cpus: Maximum number of CPU cores of the control group.
        cgroup_pids: Maximum number of processes of the control group.
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
class SandboxState(CheckedOptions):
    """State of the local sandbox.

    Attributes:
        layers: Its layers of isolation, and whether each is active.
        error: Reason why the sandbox does not start; empty if it does.
    """

    layers: tuple[Capability, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Folder(CheckedOptions):
    """The folder for runs, or its nearest existing parent, with the state of its disk and of the clocks.

    Attributes:
        path: The folder.
        writable: Whether this process can create a file in it.
        filesystem: Type of its file system, such as ``ext4`` or ``nfs``; empty if unknown.
        free_bytes: Free space on its disk.
        ahead_s: Seconds by which the clock of the file system is ahead of this machine's clock.
        synchronized: Whether a time service synchronizes this machine's clock; ``None`` if unknown.
        year: Current year on this machine's clock (UTC); 0 if unknown.
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
    """The hardware, software, limits and environment variables of a machine.

    Attributes:
        system: The machine and its operating system.
        driver: The accelerators, as the kernel's drivers report them.
        torch: The installed torch.
        vllm: The installed vLLM.
        packages: Versions of further packages, keyed by the package's name.
        environment: The environment variables that affect training, except those that may contain a secret.
        bounds: Limits of the process, its user and its control group.
        sandbox: State of the local sandbox.
        folder: The folder for runs.
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
    def from_record(cls, state: Mapping[str, Any]) -> MachineState:
        """Create the state from the JSON object that ``dataclasses.asdict`` returned.

        Raises:
            ConfigurationError: A value has the wrong type, or a key is unknown.
        """
        state = dict(state)
        lists = (("driver", "devices", Gpu), ("torch", "devices", Gpu), ("sandbox", "layers", Capability))
        for part, name, kind in lists:
            section = state.get(part)
            if isinstance(section, Mapping) and isinstance(section.get(name), list):
                members = [
                    call_with_options(f"state of a machine, {part}.{name}[{at}],", kind, member)
                    if isinstance(member, Mapping)
                    else member
                    for at, member in enumerate(section[name])
                ]
                state[part] = {**section, name: members}
        return call_with_options("state of a machine", cls, state)

    @classmethod
    def read(cls, text: str, *, name: str = "The state of a machine") -> MachineState:
        """Read the state of a machine from the output of ``rstar2 doctor --json``.

        Args:
            text: Output of the command, or only the object under its key ``machine``.
            name: Name of the text in messages, such as its file.

        Raises:
            ConfigurationError: The text is not JSON, or does not describe the state of a machine.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"The file {name} must contain JSON that `rstar2 doctor --json` printed: {error}."
            ) from error
        if isinstance(found, Mapping):
            found = found.get("machine", found)
        if not isinstance(found, Mapping):
            raise ConfigurationError(
                f"The file {name} must contain a JSON object that `rstar2 doctor --json` printed, not "
                f"{str(found)[:60]!r}."
            )
        try:
            return cls.from_record(found)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"The file {name} does not contain the output of `rstar2 doctor --json`: {error}"
            ) from error

    @property
    def amd(self) -> bool:
        """Whether the accelerators are AMD devices."""
        return self.driver.vendor == "amd"

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables with a value; as in vLLM, an empty variable counts as not set."""
        return {name: value for name, value in self.environment.items() if value}

    def is_enabled(self, name: str) -> bool:
        """Whether an environment variable is ``1``, ``true`` or ``yes``."""
        return self.environment.get(name, "").strip().casefold() in ("1", "true", "yes")
