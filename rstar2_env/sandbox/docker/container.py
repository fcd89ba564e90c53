"""One container with a warden (the process that supervises programs), reached over the container's standard streams.

The container ends when its standard input closes, and therefore also when this process dies. Covered: the isolation,
start and end of the container, and the removal of the frame headers that the Docker engine inserts into the output. Not
covered: the messages (``connection``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox.docker import engine as docker_engine
from rstar2_env.sandbox.docker.image import USER
from rstar2_env.sandbox.docker.options import SCRATCH, DockerOptions
from rstar2_env.sandbox.host import Host

if TYPE_CHECKING:
    from docker import APIClient

_HEAD = struct.Struct(">BxxxL")
_OUTPUT = 1
_STDERR_BYTES = 2000
_SCRATCH_SIZE = "256m"
_RETRY_S = 0.25
_GONE_S = 5

_PROFILE = Path(__file__).with_name("seccomp.json")


@functools.cache
def seccomp_profile() -> str:
    """Return the system-call filter of the whole container, in the Docker engine's JSON format."""
    return _PROFILE.read_text(encoding="utf-8")


def walls(engine: APIClient, info: dict[str, Any], options: DockerOptions) -> dict[str, Any]:
    """Return the settings that isolate a container, as a ``HostConfig`` of Docker's API.

    Args:
        engine: The engine that will run the container.
        info: Result of ``docker info``.
        options: Options of the container.
    """
    memory = options.memory_bytes(int(info.get("MemTotal", 0)))
    security = ["no-new-privileges:true", f"seccomp={seccomp_profile()}"]
    if any("apparmor" in line for line in info.get("SecurityOptions") or ()):
        security.append(f"apparmor={options.apparmor}")
    config: dict[str, Any] = engine.create_host_config(
        network_mode="none",
        ipc_mode="private",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=security,
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=options.most_processes,
        nano_cpus=int((options.cpus or options.slots) * 1e9) if info.get("CpuCfsQuota", True) else None,
        tmpfs={
            SCRATCH: f"rw,nosuid,nodev,mode=700,uid={USER.partition(':')[0]},size={_SCRATCH_SIZE}",
            "/tmp": "rw,nosuid,nodev,mode=1777,size=16m",
        },
        auto_remove=True,
        log_config={"type": "none"},
        runtime=options.runtime,
    )
    # Unmasked, as with `--security-opt systempaths=unconfined`: only then can a call mount its own /proc.
    config["MaskedPaths"] = config["ReadonlyPaths"] = []
    return config


class Container(Host):
    """A container in which one warden runs; the ``Host`` of the provider ``docker``.

    Args:
        options: Options of the container.
        patience: Seconds to wait for the engine to answer, for example while it restarts.
    """

    name = "The docker sandbox"

    def __init__(self, options: DockerOptions, patience: float = 0.0) -> None:
        self.stall_timeout_s = options.stall_timeout_s
        self.id = ""
        self._options = options
        self._patience = patience
        self._engine: APIClient | None = None
        self._left = bytearray()
        self._stderr = bytearray()

    def start(self) -> socket.socket:
        """Create a container, attach a socket to its standard streams, start it, and return the socket.

        Raises:
            SandboxUnavailableError: The engine does not answer, or rejects the container.
        """
        deadline = time.monotonic() + self._patience
        while True:
            try:
                if self._engine is not None:
                    self._engine.close()
                self._engine = docker_engine.connect(self._options.base_url)
                return self._start(self._engine)
            except (SandboxUnavailableError, OSError) as error:
                if time.monotonic() > deadline:
                    raise SandboxUnavailableError(str(error)) from error
                time.sleep(_RETRY_S)

    def _start(self, engine: APIClient) -> socket.socket:
        made = engine.create_container(
            self._options.image,
            stdin_open=True,
            user=USER,
            labels={docker_engine.OWNER_LABEL: docker_engine.owner()},
            host_config=walls(engine, engine.info(), self._options),
            network_disabled=True,
        )
        self.id = str(made["Id"])
        with contextlib.ExitStack() as undo:
            undo.callback(docker_engine.remove, engine, self.id)
            stream = undo.enter_context(self._attach(engine))
            engine.start(self.id)
            undo.pop_all()  # it has started
        return stream

    def _attach(self, engine: APIClient) -> socket.socket:
        """Return a socket to the container's standard streams; it stays open after Docker's own socket is closed."""
        attached = engine.attach_socket(self.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        original = attached._sock  # closed below too; otherwise a fork of this process would keep the stream open
        stream = socket.socket(fileno=os.dup(attached.fileno()))
        attached._response.close()
        attached.close()
        original.close()
        return stream

    def options(self) -> dict[str, Any]:
        """Return the warden's options, which are the first message to the warden."""
        return self._options.for_container()

    def decode(self, data: bytes) -> bytes:
        """Remove the Docker engine's frame headers from the output; keep standard error for an error message."""
        self._left += data
        chunks = []
        at = 0
        while len(self._left) - at >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._left, at)
            end = at + _HEAD.size + length
            if end > len(self._left):
                break
            text = bytes(self._left[at + _HEAD.size : end])
            if kind == _OUTPUT:
                chunks.append(text)
            else:
                self._stderr = (self._stderr + text)[-_STDERR_BYTES:]
            at = end
        del self._left[:at]
        return b"".join(chunks)

    def end(self, patience: float) -> str:
        """Remove the container with all its processes and files; return the last part of its error output.

        Args:
            patience: Not used: the container is removed by force.
        """
        if self._engine is not None:
            if self.id and not docker_engine.remove(self._engine, self.id):
                with contextlib.suppress(OSError):  # the container ended on its own, and the engine removes it
                    self._engine.wait(self.id, timeout=_GONE_S, condition="removed")
            self._engine.close()
        return self._stderr.decode("utf-8", "replace").strip()
