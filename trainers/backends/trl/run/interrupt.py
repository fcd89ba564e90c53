"""``Stopping``: ends a training run on Ctrl-C or SIGTERM without losing finished steps.

The first signal lets the optimizer step in progress finish, or discards the rollout in progress. Then a checkpoint is
written, one line explains how to resume, and the run ends with exit code 130 or 143. A second signal ends the run
immediately. Several processes stop after the same step, even if only one of them received the signal. They finish their
rollouts, since a process that abandons its rollout would leave the others waiting. Not covered: runs outside the main
thread of the program, since only the main thread receives signals.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import FrameType
from typing import Any

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rstar2_env.core.blocking import cancel_blocking
from rstar2_env.core.command.running_command import running_command

from ....ranks import Ranks
from ....record.checkpoints import newest_checkpoint, step_of
from ....record.resume import TrainingStopped, refuse_finished
from ....step.prefetch import Stateful

_RESUMED = {
    **dict.fromkeys(("train", "sft", "launch"), "repeat the command with --resume"),
    "": "train again with resume=True",
}
"""For each command that can start a run: how to resume the run. To resume any other command, repeat it unchanged."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ECHO_S = 1.0
"""Seconds within which a launcher (torchrun) may repeat a signal that the terminal already sent to all processes."""


class RolloutAbortedError(KeyboardInterrupt):
    """The rollout in progress was abandoned. As with ``KeyboardInterrupt``, ``except Exception`` does not catch it."""


class Stopping(TrainerCallback):
    """Handles SIGINT (Ctrl-C) and SIGTERM while a run trains; add it to the trainer's callbacks.

    Args:
        folder: The run's folder.
        ranks: The processes; the first one prints the messages.

    Attributes:
        number: Number of the signal that this process received, or, after a step, that any process received; 0 if
            there was none.
        agreed: Whether a signal ended the training after a step; equal on all processes.
    """

    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self._folder, self._ranks, self._alone = folder, ranks, ranks.size == 1
        self.number = 0
        self.agreed = self._rolling = False
        self._since = 0.0
        self._before: dict[int, Any] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context manager in which SIGINT and SIGTERM are handled; does nothing outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        try:
            yield
        finally:
            self._restore()

    @contextmanager
    def rollout(self, collector: Stateful | None = None) -> Iterator[None]:
        """Context manager for a rollout; in a run with a single process, a signal ends the rollout early.

        Args:
            collector: Restored to its state before the rollout if the rollout is abandoned or fails; ``None`` restores
                nothing.

        Raises:
            RolloutAbortedError: A signal arrived before the end of the rollout.
        """
        # A copy: a part may return the very object that it continues to change.
        state = None if collector is None else deepcopy(collector.state_dict())
        self._rolling = True
        try:
            try:
                self._check()
                yield
                self._check()
            except asyncio.CancelledError:
                self._check()
                raise
        except (RolloutAbortedError, Exception):
            if collector is not None:
                collector.load_state_dict(state)
            raise
        finally:
            self._rolling = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Refuse to resume a run whose steps are all done: the loop would take one more step.

        Raises:
            ConfigurationError: All steps are done.
        """
        refuse_finished(self._folder, done=state.global_step, steps=state.max_steps)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Agree with the other processes whether to stop after this step; if so, request a checkpoint."""
        self.number = max(self._ranks.gather(self.number))
        if self.number:
            self.agreed = True
            control.should_save = control.should_training_stop = True

    def early(self, trainer: Trainer, *, aborted: bool = False) -> bool:
        """Whether a signal ended the training before its last step.

        Args:
            trainer: The trainer, after ``train()``.
            aborted: Whether ``train()`` raised a ``RolloutAbortedError``.
        """
        return (self.agreed or aborted) and int(trainer.state.global_step) < int(trainer.state.max_steps)

    def end_early(self, trainer: Trainer) -> None:
        """End a run that a signal stopped early: write a checkpoint and explain how to resume.

        Args:
            trainer: The trainer, after ``train()``.

        Raises:
            TrainingStopped: The signal was SIGINT.
            SystemExit: The signal was SIGTERM.
        """
        self._end(self._saved(trainer))

    def end_failed(self, trainer: Trainer, error: Exception) -> None:
        """Write a checkpoint of a run whose rollout failed, and note in the error how to resume.

        If no optimizer step is done, nothing is written or noted.

        Args:
            trainer: The trainer, after ``train()``.
            error: The error, which every process has.
        """
        if not trainer.state.global_step:
            return
        try:
            error.add_note(self._saved(trainer))
        except Exception as refused:
            error.add_note(
                f"The last finished step could not be saved as a checkpoint: {type(refused).__name__}: {refused}"
            )

    def _saved(self, trainer: Trainer) -> str:
        """Write the checkpoint of the last finished step if it is missing; return a line on how to resume from it."""
        step = int(trainer.state.global_step)
        newest = newest_checkpoint(self._folder)
        if newest is None or step_of(newest) != step:
            # The rollout did not end, so the loop wrote no checkpoint at the end of a step.
            model: Any = trainer.model
            trainer._save_checkpoint(model, trial=None)
            trainer.control = trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)
        return (
            f"Stopped after step {step} of {trainer.state.max_steps}: checkpoint-{step} is in {self._folder}. "
            f"To resume, {_RESUMED.get(running_command(), 'repeat the command')}."
        )

    def end(self) -> None:
        """End the program if a signal arrived too late to stop the run early; call it after the last step.

        Raises:
            TrainingStopped: The signal was SIGINT.
            SystemExit: The signal was SIGTERM.
        """
        if self.number:
            self._end(f"The run received a signal to stop after its last step, so it is complete: {self._folder}.")

    def _end(self, line: str) -> None:
        if self._ranks.rank == 0:
            _say(line)
        if self.number == signal.SIGTERM:
            raise SystemExit(128 + self.number)
        raise TrainingStopped(line)

    def _check(self) -> None:
        if self.number and self._alone:
            raise RolloutAbortedError

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            if not self._alone and time.monotonic() - self._since < _ECHO_S:
                return
            self._restore()
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.number, self._since = number, time.monotonic()
        abandons = self._alone and self._rolling
        if self._ranks.rank == 0:
            what = "abandoning the rollout" if abandons else "finishing the step"
            _say(
                f"Received {signal.Signals(number).name}: {what} in progress, then a checkpoint is written. "
                "Send the signal again to end the run immediately."
            )
        if abandons and not cancel_blocking():
            raise RolloutAbortedError

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


def _say(text: str) -> None:
    # Not print(): the signal may have interrupted a print in the middle of its buffer. ``end`` clears a progress bar.
    end = b"\r\x1b[K" if sys.stderr.isatty() else b""
    os.write(sys.stderr.fileno(), end + text.encode() + b"\n")
