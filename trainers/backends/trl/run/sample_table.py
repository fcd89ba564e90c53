"""``SampledEpisodes``: sends a table with a few episodes of each rollout to the experiment trackers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from transformers import TrainerCallback
from transformers.integrations.integration_utils import TensorBoardCallback

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import Decision
from rstar2_env.core.secret import hidden

COLUMNS = ("step", "problem", "reward", "correct", "end", "kept", "reason", "advantage", "conversation")
ROWS = 8
"""Number of episodes in a table."""

SampleTableRow = tuple[Any, ...]


def sampled(
    step: int, groups: Sequence[Sequence[Episode]], decisions: Sequence[Sequence[Decision]], count: int = ROWS
) -> list[SampleTableRow]:
    """Return one table row (``COLUMNS``) for each of ``count`` episodes, spread evenly over all played episodes.

    Args:
        step: Value of the column ``step``.
        groups: The played episodes, by group.
        decisions: Whether and why each episode was selected, in the order of ``groups``.
        count: Number of rows; fewer if there are fewer episodes.
    """
    pairs = [
        pair for group, decided in zip(groups, decisions, strict=True) for pair in zip(group, decided, strict=True)
    ]
    chosen = [pairs[at * len(pairs) // min(count, len(pairs))] for at in range(min(count, len(pairs)))]
    return [
        (
            step,
            episode.problem_id,
            episode.reward,
            episode.correct,
            episode.end,
            decision.kept,
            decision.reason,
            decision.advantage,
            hidden("\n\n".join(f"[{message.role}]\n{message.content}" for message in episode.messages)),
        )
        for episode, decision in pairs and chosen
    ]


class SampledEpisodes(TrainerCallback):
    """Sends the newest table of sampled episodes to the experiment trackers, with the next line of metrics.

    Args:
        trackers: Names of the trackers of the run.
        callbacks: The trainer's list of callbacks, which includes TensorBoard's if it is in use.
    """

    def __init__(self, trackers: Sequence[str], callbacks: Sequence[Any]) -> None:
        self._trackers, self._callbacks = trackers, callbacks
        self._rows: list[SampleTableRow] = []

    def show(self, step: int, groups: Sequence[Sequence[Episode]], decisions: Sequence[Sequence[Decision]]) -> None:
        """Choose the episodes to send; see ``sampled``."""
        self._rows = sampled(step, groups, decisions)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Send the table to every tracker in use."""
        rows, self._rows = self._rows, []
        if not rows or not state.is_world_process_zero:
            self._rows = rows if "loss" not in kwargs.get("logs", {}) else []
            return
        for name, send in _SENDERS.items():
            if name in self._trackers or "all" in self._trackers:
                send(rows, state.global_step, self._callbacks)


def as_markdown(rows: Sequence[SampleTableRow]) -> str:
    """Return the table as Markdown; the cells are escaped, so that their text cannot end a cell."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    for row in rows:
        cells = ["" if value is None else str(value) for value in row]
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return escaped.replace("\n", "<br>")


def _to_tensorboard(rows: Sequence[SampleTableRow], step: int, callbacks: Sequence[Any]) -> None:
    for callback in callbacks:
        writer = getattr(callback, "tb_writer", None)
        if isinstance(callback, TensorBoardCallback) and writer is not None:
            writer.add_text("episodes", as_markdown(rows), step)


def _to_wandb(rows: Sequence[SampleTableRow], step: int, callbacks: Sequence[Any]) -> None:
    wandb = sys.modules.get("wandb")  # transformers' callback has imported it
    if wandb is not None and wandb.run is not None:
        table = wandb.Table(columns=list(COLUMNS), data=[list(row) for row in rows])
        wandb.log({"episodes": table, "train/global_step": step})


def _to_trackio(rows: Sequence[SampleTableRow], step: int, callbacks: Sequence[Any]) -> None:
    trackio = sys.modules.get("trackio")
    if trackio is not None:
        frame = import_module("pandas").DataFrame(rows, columns=list(COLUMNS))  # trackio needs pandas too
        trackio.log({"episodes": trackio.Table(dataframe=frame)}, step=step)


_SENDERS: Mapping[str, Callable[[Sequence[SampleTableRow], int, Sequence[Any]], None]] = {
    "tensorboard": _to_tensorboard,
    "wandb": _to_wandb,
    "trackio": _to_trackio,
}
