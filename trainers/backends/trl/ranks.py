"""``AccelerateRanks``: collective operations of a run's processes over accelerate (gloo, NCCL or RCCL).

``OwnRanks`` offers the same operations to a thread other than the training thread; these calls may interleave with
calls of the training thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch.distributed
from accelerate import PartialState
from accelerate.utils import gather_object
from numpy.typing import NDArray

T = TypeVar("T")


class AccelerateRanks:
    """The processes of this run; see ``Ranks``.

    Args:
        state: accelerate's view of the processes.
    """

    def __init__(self, state: PartialState) -> None:
        self._state = state
        self.rank, self.size = int(state.process_index), int(state.num_processes)

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up arrays of one shape over the processes, in float64."""
        # Objects, not an all-reduce: not every accelerator can add float64, and these arrays are small.
        total: NDArray[np.float64] = np.sum(self.gather(np.asarray(values, dtype=np.float64)), axis=0)
        return total

    def gather(self, value: T) -> list[T]:
        """Return one entry per process, in order."""
        gathered: list[T] = gather_object([value]) if self.size > 1 else [value]
        return gathered

    def exchange(self, values: Sequence[T]) -> list[T]:
        """Send one value to each process, in order, and return those that the processes sent here, in order."""
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
    """The processes of this run over a separate gloo group, on their CPUs; see ``Ranks``.

    All processes must create it at the same time.

    Args:
        state: accelerate's view of the processes.
        timeout_s: Seconds that one process waits for another.
    """

    def __init__(self, state: PartialState, *, timeout_s: float) -> None:
        super().__init__(state)
        self._group = None
        if self.size > 1:
            self._group = torch.distributed.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))

    def gather(self, value: T) -> list[T]:
        """Return one entry per process, in order."""
        if self.size == 1:
            return [value]
        gathered: list[T | None] = [None] * self.size
        torch.distributed.all_gather_object(gathered, value, group=self._group)
        return gathered  # type: ignore[return-value]  # every place is filled
