"""``Devices``: a subset of a machine's accelerators or CPU cores, for one process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from rstar2_env.core.errors import ConfigurationError, MissingExtraError

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Environment variables that select the visible accelerators. torch for ROCm reads both variables, and vLLM requires
them to be equal."""
_BELOW = "ROCR_VISIBLE_DEVICES"
"""Environment variable that selects devices in the ROCm runtime. The variables in ``VISIBLE`` then number only the
selected devices."""
_NODES = ("/dev/kfd", "/dev/nvidiactl", "/dev/dxg")
"""Device files through which programs use accelerators on Linux: AMD's, NVIDIA's, and that of WSL."""
_PART = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class Devices:
    """A set of accelerators or CPU cores, by their numbers.

    Attributes:
        numbers: The numbers, as seen by this process.
        cores: Whether the devices are CPU cores.
    """

    numbers: tuple[int, ...]
    cores: bool = False

    def __len__(self) -> int:
        """Number of devices."""
        return len(self.numbers)

    def __str__(self) -> str:
        """Return the devices in the notation of ``--serve``."""
        return ",".join(map(str, self.numbers))

    def split(self, size: int) -> list[Devices]:
        """Divide the devices into groups of ``size``, in order.

        Raises:
            ConfigurationError: The number of devices is not a multiple of ``size``.
        """
        if len(self) % size:
            raise ConfigurationError(
                f"{len(self)} devices ({self}) cannot be divided into engines with {size} devices each "
                "(--tensor-parallel)."
            )
        return [Devices(self.numbers[start : start + size], self.cores) for start in range(0, len(self), size)]

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """Return environment variables that make only these devices visible to a process.

        Args:
            outer: The environment variables of this process. If they include a variable of ``VISIBLE``, such as
                ``CUDA_VISIBLE_DEVICES=4,5``, a device number is an index into that list: device 0 is the entry 4. The
                returned variables contain the entries, not the indices.

        Raises:
            ConfigurationError: A device is not among the visible devices, or two variables contradict each other.
        """
        if self.cores:
            threads = str(len(self))
            return {"OMP_NUM_THREADS": threads, "VLLM_CPU_OMP_THREADS_BIND": "nobind", **dict.fromkeys(VISIBLE, "")}
        given = {name: shown for name in VISIBLE if (shown := _listed(outer, name))}
        if len(set(map(tuple, given.values()))) > 1:
            both = " and ".join(f"{name}={outer[name]}" for name in given)
            raise ConfigurationError(f"{both} select different devices: unset one of them.")
        below = _listed(outer, _BELOW)
        name, shown = next(iter(given.items()), (_BELOW, below))
        if shown and max(self.numbers) >= len(shown):
            raise ConfigurationError(
                f"The device {max(self.numbers)} does not exist: {name}={outer[name]} allows {len(shown)} "
                "devices, with numbers from 0."
            )
        # The runtime hides its devices first, so devices that only it selects are numbered from 0.
        chosen = ",".join(shown[number] if given else str(number) for number in self.numbers)
        amd = below or VISIBLE[1] in outer
        return dict.fromkeys(VISIBLE if amd else VISIBLE[:1], chosen)


def _listed(outer: Mapping[str, str], name: str) -> list[str]:
    return [each.strip() for each in outer.get(name, "").split(",") if each.strip()]


def read_devices(text: str, *, cores: bool = False, option: str | None = None) -> Devices:
    """Parse numbers of devices: ``0-3``, ``0,2,5``, ``4``.

    Args:
        text: Numbers and ranges, separated by commas.
        cores: Whether the numbers are CPU cores.
        option: Name of the option that gives the text, for error messages.

    Raises:
        ConfigurationError: The text cannot be parsed, a number is repeated, or this process may not use a core.
    """
    numbers: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise ConfigurationError(f"{text!r} does not name devices: write 0-3, or 0,2,5.", option=option)
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    if len(numbers) != len(set(numbers)):
        raise ConfigurationError(
            f"The list of devices {text!r} names a device twice: name each device once.", option=option
        )
    if cores and (absent := set(numbers) - os.sched_getaffinity(0)):
        raise ConfigurationError(
            f"This process is not allowed to use the CPU core {min(absent)}; it may use the cores "
            f"{sorted(os.sched_getaffinity(0))}.",
            option=option,
        )
    return Devices(tuple(numbers), cores)


def check_vllm(*, cores: bool) -> None:
    """Check, without importing vLLM, that this machine can start vLLM servers.

    Args:
        cores: Whether the devices are CPU cores.

    Raises:
        MissingExtraError: vLLM is not installed.
        ConfigurationError: The devices are accelerators, and this machine has none.
    """
    if find_spec("vllm") is None:
        raise MissingExtraError("vllm", "An inference server")
    if not cores and sys.platform == "linux" and not any(map(os.path.exists, _NODES)):
        raise ConfigurationError(
            f"This machine has no accelerator (none of {', '.join(_NODES)} exists): use CPU cores as devices.",
            option="cpu",
        )
