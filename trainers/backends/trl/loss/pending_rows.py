"""``PendingRows``: the rows of one rollout with its remaining updates, which checkpoints save.

``BatchLayout`` describes how the rows of a rollout are divided into updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from rstar2_env.core.episode import Episode
from rstar2_env.core.packed_episodes import pack_for_losses, unpack_for_losses
from rstar2_env.core.row import FloatArray, Row

from .micro_batches import MicroBatch, completion_values, row_embeddings

_DRAWS = 1_000_003
"""End of the seed of the terms' random draws; the seed of a group order ends in the rank of a process instead."""

ROW_VALUES = ("old", "old_mean_logp", "reference", "embeddings")
"""Names of the values that are stored for each row before the first update on it: the log-probabilities of its
completion, the mean log-probability over the vocabulary at each token, the log-probabilities under the reference model,
and the embedding of the row, (H,)."""


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """How the rows of a rollout are divided into optimizer steps and micro-batches.

    Attributes:
        tokens_per_device: Maximum number of tokens in one micro-batch, padding included.
        passes: Number of passes over the rows of a rollout.
        minibatches: Number of optimizer steps in each pass.
        seed: Seed of the order of the groups in each pass.
    """

    tokens_per_device: int
    passes: int = 1
    minibatches: int = 1
    seed: int = 0

    @property
    def updates(self) -> int:
        """Number of optimizer steps on the rows of one rollout."""
        return self.passes * self.minibatches

    def draws(self, step: int) -> np.random.Generator:
        """Return the random generator of terms for an optimizer step: the same on every process and after a resume."""
        return np.random.default_rng([self.seed, step, _DRAWS])


def optimizer_batches(
    groups: Sequence[int], passes: int, minibatches: int, rng: np.random.Generator
) -> list[list[int]]:
    """Divide the rows of a rollout into optimizer batches; in each pass, every row is in exactly one batch.

    Groups stay whole, since aggregations and advantages refer to groups. Each pass shuffles the groups.

    Args:
        groups: Group of each row on this process.
        passes: Number of passes over the rows.
        minibatches: Optimizer batches in each pass. A process with fewer groups has empty batches.
        rng: Random generator for the orders.

    Returns:
        ``passes * minibatches`` lists of row positions.
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


class PendingRows:
    """The rows of one rollout on this process.

    Args:
        rows: The rows.
        batches: The optimizer batches of the rows, as ``optimizer_batches`` returns them.
        members: Number of each row's episode in its group.

    Attributes:
        done: Number of batches that were trained on.
        values: For each name of ``ROW_VALUES``, the value of each row; ``None`` if it is not computed yet or not
            needed.
    """

    def __init__(
        self, rows: Sequence[Row], batches: Sequence[Sequence[int]], members: Sequence[int] | None = None
    ) -> None:
        self.rows, self.batches = list(rows), [list(batch) for batch in batches]
        self.members = [0] * len(self.rows) if members is None else list(members)
        self.done = 0
        self.values: dict[str, list[FloatArray | None]] = {name: [None] * len(self.rows) for name in ROW_VALUES}

    @property
    def over(self) -> bool:
        """Whether every batch was trained on."""
        return self.done == len(self.batches)

    @property
    def batch(self) -> list[int]:
        """Positions of the rows of the next batch."""
        return self.batches[self.done]

    def batch_rows(self) -> list[Row]:
        """Return the rows of the next batch."""
        return [self.rows[position] for position in self.batch]

    def batch_values(self, name: str) -> list[FloatArray | None]:
        """Return the values of one name of ``ROW_VALUES`` for the rows of the next batch."""
        return [self.values[name][position] for position in self.batch]

    def store(
        self,
        computed: Mapping[str, torch.Tensor | None],
        batch: MicroBatch,
        rows: Sequence[Row],
        positions: Sequence[int],
    ) -> None:
        """Store values that a forward pass computed.

        Args:
            computed: Values by a name of ``ROW_VALUES``: embeddings are (B, H), all others have one value for each
                predicted token, (B, W - 1); ``None`` if they were not computed.
            batch: The micro-batch of the pass.
            rows: The rows from which the micro-batch was built.
            positions: Position of each of ``rows`` among the rows of this rollout.
        """
        for name, values in computed.items():
            if values is None:
                continue
            own = row_embeddings(values, batch) if name == "embeddings" else completion_values(values, batch, rows)
            for place, of_row in zip(batch.rows, own, strict=True):
                self.values[name][positions[place]] = of_row

    def state_dict(self) -> dict[str, Any]:
        """Return the data of the remaining updates, as plain values and tensors that ``torch.load`` reads safely.

        An episode is reduced to its group, its turns without texts and infos, and the fields that losses read: its
        metrics were counted, and its text was written, when it was played.
        """
        numbers: dict[int, int] = {}  # so that the rows of one episode share it again when they are loaded
        return {
            "rows": [_packed(row) for row in self.rows],
            "episodes": [numbers.setdefault(id(row.episode), len(numbers)) for row in self.rows],
            "batches": self.batches,
            "members": self.members,
            "done": self.done,
            **{name: [_tensor(value) for value in values] for name, values in self.values.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a state that ``state_dict`` returned."""
        episodes: dict[int, Episode] = {}
        rows = [_unpacked(*pair, episodes) for pair in zip(state["rows"], state["episodes"], strict=True)]
        pending = cls(rows, state["batches"], state["members"])
        pending.done = state["done"]
        for name in ROW_VALUES:
            pending.values[name] = [None if values is None else values.numpy() for values in state[name]]
        return pending

    @classmethod
    def divided(cls, parts: Sequence[Self], rank: int, size: int) -> Self:
        """Return the share of one process when rows are redistributed: every ``size``-th group, with all its rows.

        Args:
            parts: The rows of each former process, all after the same number of updates.
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
                for name in ROW_VALUES:
                    mine.values[name].append(part.values[name][position])
            for batch, other in zip(mine.batches, part.batches, strict=True):
                batch += [place[position] for position in other if position in place]
        return mine


def _packed(row: Row) -> dict[str, Any]:
    return {
        **pack_for_losses(row.episode),
        "prompt_ids": torch.tensor(row.prompt_ids),
        "completion_ids": torch.tensor(row.completion_ids),
        "mask": torch.tensor(row.mask, dtype=torch.uint8),
        "logprobs": torch.tensor(row.logprobs, dtype=torch.float64),
        "advantage": _tensor(np.asarray(row.advantage)),
        "start": row.start,
        "columns": {name: _tensor(np.asarray(values)) for name, values in row.columns.items()},
    }


def _unpacked(record: Mapping[str, Any], number: int, episodes: dict[int, Episode]) -> Row:
    return Row(
        episode=episodes.setdefault(number, unpack_for_losses(record)),
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
