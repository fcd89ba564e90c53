"""``interleaved_sft``: SFT steps on demonstrations of unsolved problems, between RL steps (ReLIFT, arXiv 2506.07527).

Reinforcement learning sharpens existing abilities and learns nothing from a problem without a correct episode. Each
such problem with a stored demonstration is added to a buffer, unless the buffer already contains it. When the buffer
holds at least ``size`` problems, one SFT step (the mean of -log p over the tokens of the policy's turns) is taken on
the demonstrations of the ``size`` problems that were added last; older problems stay in the buffer, as in the authors'
code. A problem without a demonstration is ignored. The paper uses a buffer of 128 and a learning rate of 1e-6, with
GRPO without division by the standard deviation.
"""

# This module is longer than most parts because it keeps a buffer, also in checkpoints, and takes its own steps.

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, option
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.traces.reading import read_traces

from ..samplers.base import GroupResult
from .base import HOOKS, RunHook

TAKEN = "took an SFT step on demonstrations of"
"""Beginning of the note about an SFT step; the pipeline stage ``relift`` counts these notes."""


@dataclass
class InterleavedSft(SavedAttributes, RunHook):
    """An SFT step on demonstrations whenever enough unsolved problems have occurred (ReLIFT, arXiv 2506.07527).

    Args:
        demonstrations: File of JSON lines with ``problem_id`` and ``messages``, as ``rstar2 traces`` writes them.
        size: Number of unsolved problems per SFT step.
        learning_rate: Learning rate of the step; ``None`` uses the schedule's.
    """

    demonstrations: str
    size: Count = 128
    learning_rate: float | None = option(1e-6, above=0)

    saved: ClassVar[tuple[str, ...]] = ("_buffer",)

    def __post_init__(self) -> None:
        """Read the demonstrations and set the initial state.

        Raises:
            ConfigurationError: The file cannot be read, or contains no demonstration.
        """
        super().__post_init__()
        path = Path(os.path.expanduser(self.demonstrations))
        if not path.is_file():
            raise ConfigurationError(
                f"The file of demonstrations {self.demonstrations!r} does not exist: write one with `rstar2 traces`.",
                option="demonstrations",
            )
        self._shown = {
            str(record["problem_id"]): record["messages"]
            for record in read_traces(path)
            if record.get("problem_id") and record.get("messages")
        }
        if not self._shown:
            raise ConfigurationError(
                f"The file of demonstrations {self.demonstrations} does not contain a record with "
                "problem_id and messages: write one with `rstar2 traces`.",
                option="demonstrations",
            )
        self._buffer: list[str] = []

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Add the problems without a correct episode to the buffer; see ``Observes``."""
        unsolved = dict.fromkeys(one.problem_id for one in outcomes if one.episodes and not one.successes)
        self._buffer[:0] = [name for name in unsolved if name in self._shown and name not in self._buffer]

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take the SFT step, if the buffer is full."""
        if len(self._buffer) < self.size:
            return
        taught = [self._shown[name] for name in self._buffer[: self.size]]
        del self._buffer[: self.size]
        loss = self._run.sft_step(taught, learning_rate=self.learning_rate)
        self._run.note(f"{TAKEN} {len(taught)} unsolved problems, with the loss {loss:.4g}.")


HOOKS.register("interleaved_sft", InterleavedSft)
