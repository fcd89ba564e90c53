"""Determines how the provider ``docker`` isolates calls: layers around each call, or a container for each call.

Covered: which of these two mechanisms is active, and the result of ``capabilities()``. Not covered: the configuration
of the container's isolation (``container``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rstar2_env.sandbox.docker.engine import limits_missing
from rstar2_env.sandbox.docker.options import DockerOptions
from rstar2_env.sandbox.job import Capability

APART = "calls isolated from one another"
"""Name of the guarantee that calls are isolated from one another; only this provider lists it."""
_BY_CONTAINER = {
    "no network": "no network except a private loopback interface",
    "no access to other processes": "a process namespace with only this call and its warden",
    "no access to the user's files": "only the image, read-only",
    "no privilege escalation": "no_new_privs and no capabilities",
    "bounded memory": "a memory limit",
    "bounded processes": "a pids limit",
    "no leftover processes": "removal after the program",
}


def calls_are_isolated(inside: Sequence[Capability]) -> bool:
    """Whether the layers around each call provide every guarantee, so that several calls can share a container."""
    return all(layer.active for layer in inside if layer.required)


def capabilities(inside: Sequence[Capability], info: dict[str, Any], options: DockerOptions) -> list[Capability]:
    """Return the guarantees, then the isolation of the container, then the mechanisms inside the container.

    Args:
        inside: Capabilities that the warden reports from inside the container.
        info: Result of ``docker info``.
        options: The provider's options.
    """
    apart = calls_are_isolated(inside)
    bare = options.isolation == "none"
    missing = limits_missing(info)
    held = {name: by for name, by in _BY_CONTAINER.items() if name.removeprefix("bounded ") not in missing}
    promises = [
        layer
        if layer.active or layer.name not in held or bare
        else replace(layer, active=True, detail=f"by the container: {held[layer.name]}")
        for layer in inside
        if layer.required
    ]
    how = (
        "by layers of isolation around each program"
        if apart
        else "by a container for each program, replaced afterwards"
    )
    kept = Capability(APART, not bare, how if not bare else "switched off", required=True)
    options = options if apart or bare else options.for_one_call()
    memory = options.memory_bytes(int(info.get("MemTotal", 0))) >> 20
    limits = [f"{memory} MiB", f"{options.most_processes} processes", f"{options.cpus or options.slots:g} cores"]
    runtime = options.runtime or info.get("DefaultRuntime") or "the default of the Docker daemon"
    filters = any("seccomp" in line for line in info.get("SecurityOptions") or ())
    walls = [
        Capability("container: runtime", True, str(runtime)),
        Capability("container: no network, read-only root, no capabilities, no_new_privs, ordinary user", True),
        Capability(
            "container: limits",
            not missing,
            ", ".join(limits) if not missing else f"this Docker daemon cannot limit {', '.join(missing)}",
        ),
        Capability("container: system-call filter", filters, "" if filters else "the Docker daemon has none"),
    ]
    mechanisms = [layer for layer in inside if not layer.required]
    return [kept, *promises, *walls, *mechanisms]
