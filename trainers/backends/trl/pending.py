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
        reference: The same under the reference model.
    """

    def __init__(
        self, rows: Sequence[Row], batches: Sequence[Sequence[int]], members: Sequence[int] | None = None
    ) -> None:
        self.rows, self.batches = list(rows), [list(batch) for batch in batches]
        self.members = [0] * len(self.rows) if members is None else list(members)
        self.done = 0
        self.old: list[FloatArray | None] = [None] * len(self.rows)
        self.reference: list[FloatArray | None] = [None] * len(self.rows)

    @property
    def over(self) -> bool:
        """Whether every batch was trained on."""
        return self.done == len(self.batches)

    @property
    def batch(self) -> list[int]:
        """Positions of the rows of the batch whose turn it is."""
        return self.batches[self.done]

    def state_dict(self) -> dict[str, Any]:
        """Return what the updates to come need, as plain values and tensors that ``torch.load`` reads safely.

        Of an episode that is its group and its turns without their texts and infos: its metrics were counted, and its
        text was written, when it was played.
        """
        return {
            "rows": [_packed(row) for row in self.rows],
            "batches": self.batches,
            "members": self.members,
            "done": self.done,
            "old": [_tensor(values) for values in self.old],
            "reference": [_tensor(values) for values in self.reference],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Continue from a state."""
        pending = cls([_unpacked(record) for record in state["rows"]], state["batches"], state["members"])
        pending.done = state["done"]
        pending.old = [None if values is None else values.numpy() for values in state["old"]]
        pending.reference = [None if values is None else values.numpy() for values in state["reference"]]
        return pending


def _packed(row: Row) -> dict[str, Any]:
    turns = []
    for turn in row.episode.steps:
        plain = asdict(turn)
        plain |= {"statuses": [str(status) for status in turn.statuses], "observation": "", "info": {}}
        turns.append(plain)
    return {
        "group": row.episode.group,
        "task": row.episode.task,
        "turns": turns,
        "prompt_ids": torch.tensor(row.prompt_ids),
        "completion_ids": torch.tensor(row.completion_ids),
        "mask": torch.tensor(row.mask, dtype=torch.uint8),
        "logprobs": torch.tensor(row.logprobs, dtype=torch.float64),
        "advantage": _tensor(np.asarray(row.advantage)),
        "start": row.start,
        "columns": {name: _tensor(np.asarray(values)) for name, values in row.columns.items()},
    }


def _unpacked(record: Mapping[str, Any]) -> Row:
    steps = [
        Turn(**{**turn, "statuses": [ToolStatus(status) for status in turn["statuses"]]}) for turn in record["turns"]
    ]
    return Row(
        episode=Episode(group=record["group"], task=record["task"], steps=steps),
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
