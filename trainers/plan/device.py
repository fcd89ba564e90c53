"""``Device``: the data sheet of an accelerator, or the memory of this machine's CPU."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rstar2_env.core.errors import ConfigurationError

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Device:
    """The memory, bandwidth and speed of one device.

    Attributes:
        name: Name of the device model, such as ``MI300X``.
        memory: Bytes of its memory.
        bandwidth: Memory bandwidth in bytes per second; ``None`` if unknown.
        operations: Peak dense matrix operations per second in bfloat16; ``None`` if unknown.
    """

    name: str
    memory: int
    bandwidth: float | None
    operations: float | None

    @property
    def is_accelerator(self) -> bool:
        """Whether this is an accelerator; training then by default uses bfloat16, recomputation and a fused head."""
        return self.operations is not None


DEVICES = {
    device.name.casefold(): device
    for device in (
        # AMD's data sheets of the Instinct accelerators.
        Device("MI300X", 192 * GIB, 5.3e12, 1307.4e12),
        Device("MI325X", 256 * GIB, 6.0e12, 1307.4e12),
        Device("MI350X", 288 * GIB, 8.0e12, 2306.9e12),
        Device("MI355X", 288 * GIB, 8.0e12, 2516.6e12),
        # NVIDIA's data sheets of the SXM modules, without sparsity.
        Device("A100", 80 * GIB, 2.039e12, 312e12),
        Device("H100", 80 * GIB, 3.35e12, 989.4e12),
        Device("H200", 141 * GIB, 4.8e12, 989.4e12),
        Device("B200", 180 * GIB, 8.0e12, 2250e12),
    )
}
"""Devices by their names in lower case."""


def device_of(name: str) -> Device:
    """Return a device by its name; ``cpu`` stands for this machine's CPU with its main memory.

    Raises:
        ConfigurationError: The device is unknown.
    """
    key = name.casefold()
    if key == "cpu":
        return Device("CPU", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None, None)
    if key not in DEVICES:
        known = ", ".join(device.name for device in DEVICES.values())
        raise ConfigurationError(
            f"The device type {name!r} is unknown. Known types: {known}, and cpu for this machine."
        )
    return DEVICES[key]
