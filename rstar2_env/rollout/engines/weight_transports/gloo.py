"""A gloo process group of a trainer and its servers' workers, for sending weights to servers on CPUs.

Covered: joining through a store at the trainer's address, broadcasts from the trainer. If a member dies, the others
raise an error. Not covered: accelerators, which use NCCL or RCCL (``nccl``).
"""

from __future__ import annotations

import socket
import time
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.distributed import BroadcastOptions, ProcessGroupGloo


class GlooGroup:
    """One member of the process group; creating it waits until all members have joined.

    Args:
        address: Address of the trainer.
        port: Port at which the trainer listens.
        rank: Rank of this member, 0 for the trainer.
        size: Number of members.
        timeout_s: Seconds to wait for the other members.
        listener: The trainer's socket, already bound to the port; ``None`` in other members.

    Raises:
        RuntimeError: The other members did not join.
    """

    def __init__(
        self,
        address: str,
        port: int,
        rank: int,
        size: int,
        *,
        timeout_s: float,
        listener: socket.socket | None = None,
    ) -> None:
        timeout = timedelta(seconds=timeout_s)
        self._store = TCPStore(
            address,
            port,
            is_master=rank == 0,
            timeout=timeout,
            wait_for_workers=False,
            master_listen_fd=None if listener is None else listener.detach(),
        )
        gloo: Any = ProcessGroupGloo  # torch's stubs lack most of it
        options = gloo._Options()
        options._timeout = timeout
        options._devices = [gloo.create_device(hostname=own_address(address, port))]
        self._group: Any = gloo(PrefixStore("rstar2-weights", self._store), rank, size, options)

    def broadcast(self, tensor: Tensor, receiving: Future[Any] | None = None) -> None:
        """Copy the trainer's tensor to all members: on a server's worker, ``tensor`` receives the values.

        Args:
            tensor: The weights to send, or a tensor of the same shape and precision to receive them.
            receiving: The requests that make the servers receive the tensor, passed only by the trainer. If one of
                them ends with an error before the tensor has arrived, a member failed, and the others may wait forever.

        Raises:
            RuntimeError: A member is lost, or has failed.
        """
        options = BroadcastOptions()
        options.rootRank = 0
        work = self._group.broadcast([tensor], options)
        while receiving is not None and not work.is_completed():
            check(receiving)
            time.sleep(1e-4)
        work.wait()

    def close(self) -> None:
        """Leave the group; later broadcasts of the other members fail."""
        self._group.abort()
        del self._group
        del self._store


def check(receiving: Future[Any]) -> None:
    """Raise an error if the request that makes a server receive weights failed before the weights arrived.

    Raises:
        RuntimeError: The request failed.
    """
    if receiving.done() and (error := receiving.exception()) is not None:
        raise RuntimeError(f"a server did not receive the weights: {error}") from error


def own_address(address: str, port: int) -> str:
    """Return the address of this machine on the network through which it reaches ``address``; nothing is sent."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM)
    family, kind, _, _, where = min(found, key=lambda one: one[0] != socket.AF_INET)
    with socket.socket(family, kind) as asking:
        asking.connect(where)
        mine: str = asking.getsockname()[0]
    return mine
