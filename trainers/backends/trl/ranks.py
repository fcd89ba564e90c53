"""``AccelerateRanks``: collective operations of a run's processes over accelerate (gloo, NCCL or RCCL).

A thread other than the training thread uses ``OwnRanks``. It has the same operations, and its calls may interleave with
the training thread's calls of ``AccelerateRanks``. When this process ends, such a thread may still wait for a process
that has failed. ``OwnRanks`` therefore waits in Python: if the interpreter ended while a thread waits inside torch, C++
would call ``std::terminate``, and the process would die of SIGABRT instead of reporting its error.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch.distributed
from accelerate import PartialState
from accelerate.utils import gather_object
from numpy.typing import NDArray

T = TypeVar("T")

_POLL_S = 0.002
"""Seconds to wait before checking again whether an operation has ended."""


class AccelerateRanks:
    """The processes of this run; see ``Ranks``.

    Args:
        state: accelerate's record of the processes.
    """

    def __init__(self, state: PartialState) -> None:
        self._state = state
        self.rank, self.size = int(state.process_index), int(state.num_processes)

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of an array over all processes, in float64; the shape is the same on all processes."""
        # Objects, not an all-reduce: not every accelerator can add float64, and these arrays are small.
        total: NDArray[np.float64] = np.sum(self.gather(np.asarray(values, dtype=np.float64)), axis=0)
        return total

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in rank order."""
        gathered: list[T] = gather_object([value]) if self.size > 1 else [value]
        return gathered

    def exchange(self, values: Sequence[T]) -> list[T]:
        """Send one value to each process, in rank order, and return the values received from all processes."""
        if self.size == 1:
            return list(values)
        # One process after the other, so that no process receives what others get.
        received: list[T] = []
        for source in range(self.size):
            slot: list[T | None] = [None]
            torch.distributed.scatter_object_list(slot, list(values) if source == self.rank else None, src=source)
            received += slot  # type: ignore[arg-type]  # the slot is filled
        return received

    def wait(self) -> None:
        """Return once every process has called it."""
        if self.size > 1:
            self._state.wait_for_everyone()


class OwnRanks(AccelerateRanks):
    """The processes of this run, connected by a separate gloo group on CPUs; see ``Ranks``.

    All processes must create it at the same time.

    Args:
        state: accelerate's record of the processes.
        timeout_s: Seconds that one process waits for another before it raises an error.
    """

    def __init__(self, state: PartialState, *, timeout_s: float) -> None:
        super().__init__(state)
        self._group = None
        if self.size > 1:
            self._group = torch.distributed.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in rank order."""
        if self.size == 1:
            return [value]
        own = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8)
        sizes = self._gather_tensors(torch.tensor([len(own)]))
        padded = torch.zeros(max(int(size) for size in sizes), dtype=torch.uint8)
        padded[: len(own)] = own
        gathered = self._gather_tensors(padded)
        return [
            pickle.loads(one[: int(size)].numpy().tobytes())  # from this run's own processes
            for one, size in zip(gathered, sizes, strict=True)
        ]

    def _gather_tensors(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors of all processes, in rank order; all of them must have the same shape."""
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        work = torch.distributed.all_gather(gathered, tensor, group=self._group, async_op=True)
        assert work is not None  # this process is in the group
        while not work.is_completed():
            time.sleep(_POLL_S)
        work.wait()
        return gathered
