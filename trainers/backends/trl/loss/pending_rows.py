"""``Pending``: the rows of one rollout, and which of its updates are still to come; it is saved with a checkpoint.

Also how the rows of a rollout are divided into updates (``Shape``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

from .micro_batches import MicroBatch, embedded, taken_out

_DRAWS = 1_000_003
"""Keeps the draws of terms apart from the orders of groups, whose seeds end in the number of a process."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the rows of a rollout become optimizer steps and micro-batches.

    Attributes:
        tokens_per_device: Most tokens of one micro-batch, padding included.
        passes: How often the rows of a rollout are trained on.
        minibatches: Optimizer steps in each pass.
        seed: Seed of the order of the groups in each pass.
    """

    tokens_per_device: int
    passes: int = 1
    minibatches: int = 1
    seed: int = 0

    @property
    def updates(self) -> int:
        """Optimizer steps of one rollout."""
        return self.passes * self.minibatches

    def draws(self, step: int) -> np.random.Generator:
        """Source of what terms draw for an optimizer step: the same on every process, and in a run that goes on."""
        return np.random.default_rng([self.seed, step, _DRAWS])


def optimizer_batches(
    groups: Sequence[int], passes: int, minibatches: int, rng: np.random.Generator
) -> list[list[int]]:
    """Divide the rows of a rollout into optimizer batches: in each pass every row is in exactly one.

    Groups stay whole, since aggregations and advantages are about groups; each pass draws another order of them.

    Args:
        groups: Group of each row on this process.
        passes: How often every row is trained on.
        minibatches: Optimizer batches in each pass. A process with fewer groups has empty ones.
        rng: Source of the orders.

    Returns:
        ``passes * minibatches`` lists of positions of rows.
    """
    members: dict[int, list[int]] = {}
    for position, group in enumerate(groups):
        members.setdefault(group, []).append(position)
    batches = []
    for _ in range(passes):
        order = list(members.values())
        if minibatches > 1:
            order = [order[at] for at in rng.permutation(len(order))]
        for part in range(minibatches):
            chosen = order[part::minibatches]
            batches.append(sorted(position for group in chosen for position in group))
    return batches


class Pending:
    """The rows of one rollout on this process.

    Args:
        rows: The rows.
        batches: Their optimizer batches, as ``optimizer_batches`` returns them.
        members: Number of each row's episode in its group.

    Attributes:
        done: How many of the batches were trained on.
        old: Log-probabilities of each row's completion before the first update; ``None`` where not computed yet.
        old_mean_logp: The same of the mean over the vocabulary, where a term of the loss needs it.
        reference: The same as ``old`` under the reference model.
        embeddings: Embedding of each row before the first update, (H,), where a term needs it.
    """

    def __init__(
        self, rows: Sequence[Row], batches: Sequence[Sequence[int]], members: Sequence[int] | None = None
    ) -> None:
        self.rows, self.batches = list(rows), [list(batch) for batch in batches]
        self.members = [0] * len(self.rows) if members is None else list(members)
        self.done = 0
        count = len(self.rows)
        self.old: list[FloatArray | None] = [None] * count
        self.old_mean_logp: list[FloatArray | None] = [None] * count
        self.reference: list[FloatArray | None] = [None] * count
        self.embeddings: list[FloatArray | None] = [None] * count

    @property
    def over(self) -> bool:
        """Whether every batch was trained on."""
        return self.done == len(self.batches)

    @property
    def batch(self) -> list[int]:
        """Positions of the rows of the batch whose turn it is."""
        return self.batches[self.done]

    def keep(
        self, found: Mapping[str, torch.Tensor | None], batch: MicroBatch, rows: Sequence[Row], positions: Sequence[int]
    ) -> None:
        """Keep what a pass found of rows.

        Args:
            found: By the name of the attribute, one for each predicted token, (B, W - 1), or one list a row, (B, H), as
                of ``embeddings``; ``None`` where it was not computed.
            batch: The micro-batch that was computed.
            rows: The rows of which it was made.
            positions: Where each of these is among the rows of this rollout.
        """
        for name, values in found.items():
            if values is None:
                continue
            own = embedded(values, batch) if name == "embeddings" else taken_out(values, batch, rows)
            for place, of_row in zip(batch.rows, own, strict=True):
                getattr(self, name)[positions[place]] = of_row

    def state_dict(self) -> dict[str, Any]:
        """Return what the updates to come need, as plain values and tensors that ``torch.load`` reads safely.

        Of an episode that is its group, its turns without their texts and infos, and what a loss tells apart: its
        metrics were counted, and its text was written, when it was played.
        """
        numbers: dict[int, int] = {}  # one that trains as several rows is one again
        return {
            "rows": [_packed(row) for row in self.rows],
            "episodes": [numbers.setdefault(id(row.episode), len(numbers)) for row in self.rows],
            "batches": self.batches,
            "members": self.members,
            "done": self.done,
            **{name: [_tensor(values) for values in getattr(self, name)] for name in _PER_ROW},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Continue from a state."""
        episodes: dict[int, Episode] = {}
        rows = [_unpacked(*pair, episodes) for pair in zip(state["rows"], state["episodes"], strict=True)]
        pending = cls(rows, state["batches"], state["members"])
        pending.done = state["done"]
        for name in _PER_ROW:
            setattr(pending, name, [None if values is None else values.numpy() for values in state[name]])
        return pending

    @classmethod
    def divided(cls, parts: Sequence[Self], rank: int, size: int) -> Self:
        """The part of one of ``size`` processes in what other processes had: whole groups, in turn.

        Args:
            parts: Of each of those processes; all have trained on as many batches.
            rank: Number of the process.
            size: Number of processes.
        """
        groups = sorted({row.episode.group for part in parts for row in part.rows})
        own = set(groups[rank::size])
        mine = cls([], [[] for _ in parts[0].batches])
        mine.done = parts[0].done
        for part in parts:
            place: dict[int, int] = {}
            for position, row in enumerate(part.rows):
                if row.episode.group not in own:
                    continue
                place[position] = len(mine.rows)
                mine.rows.append(row)
                mine.members.append(part.members[position])
                for name in _PER_ROW:
                    getattr(mine, name).append(getattr(part, name)[position])
            for batch, other in zip(mine.batches, part.batches, strict=True):
                batch += [place[position] for position in other if position in place]
        return mine


_PER_ROW = ("old", "old_mean_logp", "reference", "embeddings")
"""What is computed for each row before it trains."""


def _packed(row: Row) -> dict[str, Any]:
    turns = []
    for turn in row.episode.steps:
        plain = asdict(turn)
        plain |= {"statuses": [str(status) for status in turn.statuses], "observation": "", "info": {}}
        turns.append(plain)
    return {
        "group": row.episode.group,
        "task": row.episode.task,
        "correct": row.episode.correct,
        "source": row.episode.source,
        "turns": turns,
        "prompt_ids": torch.tensor(row.prompt_ids),
        "completion_ids": torch.tensor(row.completion_ids),
        "mask": torch.tensor(row.mask, dtype=torch.uint8),
        "logprobs": torch.tensor(row.logprobs, dtype=torch.float64),
        "advantage": _tensor(np.asarray(row.advantage)),
        "start": row.start,
        "columns": {name: _tensor(np.asarray(values)) for name, values in row.columns.items()},
    }


def _unpacked(record: Mapping[str, Any], number: int, episodes: dict[int, Episode]) -> Row:
    steps = [
        Turn(**{**turn, "statuses": [ToolStatus(status) for status in turn["statuses"]]}) for turn in record["turns"]
    ]
    known = {name: record[name] for name in ("group", "task", "correct", "source")}
    return Row(
        episode=episodes.setdefault(number, Episode(**known, steps=steps)),
        prompt_ids=record["prompt_ids"].tolist(),
        completion_ids=record["completion_ids"].tolist(),
        mask=record["mask"].tolist(),
        logprobs=record["logprobs"].tolist(),
        advantage=_number_or_array(record["advantage"]),
        start=record["start"],
        columns={name: _number_or_array(values) for name, values in record["columns"].items()},
    )


def _tensor(values: FloatArray | None) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(np.array(values, dtype=np.float64))


def _number_or_array(values: torch.Tensor) -> float | FloatArray:
    array: FloatArray = values.numpy()
    return float(array) if array.ndim == 0 else array
