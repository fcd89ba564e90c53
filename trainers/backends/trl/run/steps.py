"""``StepNumbers``: the data loader of a run; its items are the numbers of optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator

from transformers import Trainer


class StepNumbers:
    """A data loader that yields the numbers of the remaining optimizer steps, or none if a hook has ended the run.

    transformers itself checks ``control.should_training_stop`` only after a step.
    """

    def __init__(self, trainer: Trainer, steps: int) -> None:
        self._trainer, self._steps = trainer, steps

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[dict[str, int]]:
        if self._trainer.control.should_training_stop:
            return
        # In a resumed run, the trainer's state holds the step to continue from.
        for step in range(self._trainer.state.global_step, self._steps):
            yield {"step": step}
