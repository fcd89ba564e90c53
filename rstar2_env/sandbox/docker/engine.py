"""Access to the Docker engine for the provider ``docker``: connecting, checking the image, removing old containers.

Covered: the connection, with actionable errors; the check that the image exists and has the right version; the removal
of containers whose creator has ended. Not covered: how a container runs (``container``) and how an image is built
(``image``).
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, SandboxUnavailableError
from rstar2_env.sandbox.docker.image import INSIDE_LABEL, fingerprint

if TYPE_CHECKING:
    from docker import APIClient

OWNER_LABEL = "rstar2-env.sandbox.owner"
_TIMEOUT_S = 60


def connect(base_url: str | None = None, timeout_s: int = _TIMEOUT_S) -> APIClient:
    """Connect to a Docker engine.

    Args:
        base_url: Address of the engine ("unix:///run/docker.sock", "tcp://127.0.0.1:2375"); ``None`` uses
            ``DOCKER_HOST``, then the default socket.
        timeout_s: Timeout of one request in seconds.

    Raises:
        MissingExtraError: Docker's SDK for Python is not installed.
        ConfigurationError: The scheme of the address is not supported.
        SandboxUnavailableError: No engine answers at the address.
    """
    try:
        import docker
        import docker.errors
    except ImportError as error:
        raise MissingExtraError("docker", "The sandbox 'docker'") from error
    where = base_url or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if where.startswith(("ssh://", "https://", "npipe://")) or os.environ.get("DOCKER_TLS_VERIFY"):
        raise ConfigurationError(
            f"The docker sandbox connects to an engine over a Unix socket or unencrypted TCP, not to {where!r}. "
            "Forward the engine's socket (ssh -L /tmp/engine.sock:/var/run/docker.sock HOST) and use "
            "base_url='unix:///tmp/engine.sock', or run `rstar2 sandbox serve` on the machine of that engine."
        )
    try:
        return docker.APIClient(base_url=where, version="auto", timeout=timeout_s)
    except docker.errors.DockerException as error:
        raise SandboxUnavailableError(
            f"No Docker daemon answers at {where} ({_reason(error)}). Start one (systemctl start docker, "
            "or dockerd), give this user access to its socket (the group docker), or set another address "
            "(base_url or DOCKER_HOST)."
        ) from error


def _reason(error: BaseException) -> str:
    """Return the root cause in an exception's text, such as "connection refused", or else the start of the text."""
    text = str(error)
    for known in ("Permission denied", "No such file or directory", "Connection refused", "timed out"):
        if known in text:
            return known.lower()
    return text[:300]


def check_image(engine: APIClient, image: str) -> None:
    """Check that an image exists, and that it contains the warden of this package's version.

    Raises:
        SandboxUnavailableError: The image is missing, or was built by another version of this package.
    """
    import docker.errors

    try:
        found = engine.inspect_image(image)
    except docker.errors.ImageNotFound as error:
        raise SandboxUnavailableError(
            f"The Docker daemon does not have the image {image!r}. Build it: rstar2 sandbox image --tag "
            f"{image} (with --from-host if no registry can be reached)."
        ) from error
    label = ((found.get("Config") or {}).get("Labels") or {}).get(INSIDE_LABEL)
    if label != fingerprint():
        what = "was not built by `rstar2 sandbox image`" if label is None else "was built by another version"
        raise SandboxUnavailableError(
            f"The Docker image {image!r} {what}: its label {INSIDE_LABEL} is {label!r}, but this version "
            f"of rstar2-env expects {fingerprint()!r}. Build the image again: rstar2 sandbox image --tag "
            f"{image}."
        )


def check_runtime(engine: APIClient, runtime: str | None) -> None:
    """Check that a container runtime is installed in the engine; ``None``, the default runtime, always passes.

    Raises:
        SandboxUnavailableError: The engine does not have this runtime.
    """
    known = sorted((engine.info().get("Runtimes") or {}).keys())
    if runtime is not None and runtime not in known:
        raise SandboxUnavailableError(
            f"The Docker daemon does not have the runtime {runtime!r}; it has {', '.join(known)}. Install "
            "the runtime and add it to the daemon's configuration (for gVisor: `runsc install`, then "
            "restart the daemon)."
        )


def owner() -> str:
    """Return a container label that identifies this process, so that other processes can check whether it runs."""
    return f"{_machine()}|{os.getpid()}|{_started(os.getpid())}"


def sweep(engine: APIClient) -> int:
    """Remove containers whose creator, a process on this machine, has ended; return how many were removed."""
    removed = 0
    for found in engine.containers(all=True, filters={"label": OWNER_LABEL}):
        machine, pid, started = found["Labels"][OWNER_LABEL].rsplit("|", 2)
        if machine == _machine() and _started(int(pid)) != started:
            removed += remove(engine, found["Id"])
    return removed


def remove(engine: APIClient, container: str) -> bool:
    """Remove a container by force; return false if it does not exist any more, or if the engine does not answer."""
    with contextlib.suppress(OSError):  # all errors of the SDK are subclasses
        engine.remove_container(container, force=True, v=True)
        return True
    return False


def _machine() -> str:
    """Return an id that changes if the machine reboots, and that differs between process namespaces."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()}:{os.stat('/proc/self/ns/pid').st_ino}"
    return socket.gethostname()


def _started(pid: int) -> str:
    """Return a process's start time in clock ticks, "running" if the time is unknown, or "" if the process ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        if os.path.isdir("/proc/self"):
            return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"


def limits_missing(info: dict[str, Any]) -> list[str]:
    """Return the names of the limits that an engine (a rootless one, for example) cannot set.

    Args:
        info: Result of ``docker info``.
    """
    known = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "CPU"}
    return [what for key, what in known.items() if not info.get(key, True)]
