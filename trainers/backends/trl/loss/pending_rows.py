"""``PendingRows``: the rows of a rollout, and the optimizer steps that remain on them; checkpoints save both.

``BatchLayout`` divides the rows of a rollout into optimizer steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from rstar2_env.core.episode import Episode
from rstar2_env.core.packed_episodes import pack_for_losses, unpack_for_losses
from rstar2_env.core.row import FloatArray, Row

from ....step.deal import assign_groups, divide_groups
from ..protocols import ExchangingRanks
from .micro_batches import MicroBatch, completion_values, row_embeddings
from .packing import tree_tokens

_DRAWS = 1_000_003
"""Last number of the seed of the loss terms, ``[seed, step, _DRAWS]``; the seed of the groups' order ends with 0."""

ROW_VALUES = ("old", "old_mean_logp", "reference", "embeddings")
"""Names of the values that are stored for each row: the log-probabilities of its completion, the mean log-probability
over the vocabulary at each token, the log-probabilities under the reference model, and the embedding of the row, (H,).
All values except those of the reference model are computed with the weights before the first update on the rollout."""


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """Options for dividing the rows of a rollout into optimizer steps and micro-batches.

    Attributes:
        tokens_per_device: Maximum number of tokens in one micro-batch, padding included.
        passes: Number of passes over the rows of a rollout.
        minibatches: Maximum number of optimizer steps in each pass; a pass has fewer if there are fewer groups.
        seed: Seed of the order of the groups in each pass.
        share_prefixes: Whether tokens that rows of a micro-batch share are computed only once, if the model allows it.
    """

    tokens_per_device: int
    passes: int = 1
    minibatches: int = 1
    seed: int = 0
    share_prefixes: bool = True

    @property
    def updates(self) -> int:
        """Maximum number of optimizer steps of one rollout."""
        return self.passes * self.minibatches

    def divide(self, step: int, groups: Collection[int]) -> list[list[int]]:
        """Return the groups of each optimizer step on one rollout.

        Args:
            step: Number of the first optimizer step on the rollout; it determines the random order of the groups
                together with ``seed``.
            groups: The groups of all processes.
        """
        rng = np.random.default_rng([self.seed, step, 0])
        return divide_groups(groups, passes=self.passes, minibatches=self.minibatches, rng=rng)

    def draws(self, step: int) -> np.random.Generator:
        """Return the random generator of the loss terms at a step: the same on every process and after a resume."""
        return np.random.default_rng([self.seed, step, _DRAWS])


class PendingRows:
    """The rows of one rollout on this process.

    Args:
        rows: The rows.
        members: For each row, the index of its episode in the episode's group.
        batches: Positions of the rows of each optimizer step, in the order of the steps.

    Attributes:
        done: Number of batches that were trained on.
        values: For each name of ``ROW_VALUES``, the value of each row; ``None`` if it is not computed yet or not
            needed.
    """

    def __init__(self, rows: Sequence[Row], members: Sequence[int], batches: Sequence[Sequence[int]]) -> None:
        self.rows, self.members, self.batches = list(rows), list(members), [list(batch) for batch in batches]
        self.done = 0
        self.values: dict[str, list[FloatArray | None]] = {name: [None] * len(self.rows) for name in ROW_VALUES}

    @property
    def over(self) -> bool:
        """Whether the trainer has trained on every batch."""
        return self.done == len(self.batches)

    @property
    def batch(self) -> list[int]:
        """Positions of the rows of the next batch."""
        return self.batches[self.done]

    @property
    def first_pass(self) -> bool:
        """Whether the rows of the next batch were in no earlier batch."""
        return set(self.batch).isdisjoint(position for earlier in self.batches[: self.done] for position in earlier)

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
        """Store values that a forward pass computed for some rows.

        Args:
            computed: Values by a name of ``ROW_VALUES``: embeddings are (B, H), all others have one value for each
                predicted token, (B, W - 1); ``None`` if they were not computed.
            batch: The micro-batch of the pass.
            rows: The rows from which the micro-batch was built.
            positions: Position of each of these rows among the rows of the rollout.
        """
        for name, values in computed.items():
            if values is None:
                continue
            own = row_embeddings(values, batch) if name == "embeddings" else completion_values(values, batch, rows)
            for place, of_row in zip(batch.rows, own, strict=True):
                self.values[name][positions[place]] = of_row

    def state_dict(self) -> dict[str, Any]:
        """Return the data that the remaining updates need, as values and tensors that ``torch.load`` reads safely.

        Episodes are saved without texts and infos, since their metrics were counted and their texts were written when
        they were played. A saved episode has its group, its turns and the fields that losses read.
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
        pending = cls(rows, state["members"], state["batches"])
        pending.done = state["done"]
        for name in ROW_VALUES:
            pending.values[name] = [None if values is None else values.numpy() for values in state[name]]
        return pending

    @classmethod
    def dealt(
        cls,
        rows: Sequence[Row],
        members: Sequence[int],
        ranks: ExchangingRanks,
        divide: Callable[[Collection[int]], list[list[int]]],
        *,
        share_prefixes: bool = False,
    ) -> Self:
        """Exchange rows, so that each process gets whole groups and about as many tokens as every other process.

        All processes call it together.

        Args:
            rows: The rows that this process played.
            members: Index of each row's episode in its group.
            ranks: The processes.
            divide: Returns the groups of each optimizer step, given the groups of all processes.
            share_prefixes: Whether tokens that the rows of a group share are computed once.
        """
        tokens = sum(ranks.gather(_tokens_of(rows, share_prefixes=share_prefixes)), Counter[int]())
        batches = divide(tokens)
        home = assign_groups(tokens, batches, ranks.size)
        played = list(zip(rows, members, strict=True))
        found = [pair for pair in played if home[pair[0].episode.group] == ranks.rank]
        if ranks.size > 1:
            leaving = [
                [pair for pair in played if home[pair[0].episode.group] == process != ranks.rank]
                for process in range(ranks.size)
            ]
            sent = [cls(*_columns(pairs), []).state_dict() for pairs in leaving]
            for state in ranks.exchange(sent):
                arrived = cls.from_state(state)
                found += zip(arrived.rows, arrived.members, strict=True)
        # So that the order does not depend on the processes that played the groups.
        found.sort(key=lambda pair: pair[0].episode.group)
        own, numbers = _columns(found)
        return cls(own, numbers, [_positions(own, batch) for batch in batches])

    @classmethod
    def divided(cls, parts: Sequence[Self], rank: int, size: int) -> Self:
        """Return the rows of one process after the number of processes has changed; groups stay whole.

        Args:
            parts: The rows of each former process, all after the same number of updates.
            rank: Rank of this process.
            size: New number of processes.
        """
        tokens = sum((_tokens_of(part.rows) for part in parts), Counter[int]())
        batches = [
            sorted(
                {part.rows[position].episode.group for part, own in zip(parts, step, strict=True) for position in own}
            )
            for step in zip(*(part.batches for part in parts), strict=True)
        ]
        home = assign_groups(tokens, batches, size)
        mine = cls([], [], [[] for _ in batches])
        mine.done = parts[0].done
        for part in parts:
            for position, row in enumerate(part.rows):
                if home[row.episode.group] == rank:
                    mine.rows.append(row)
                    mine.members.append(part.members[position])
                    for name in ROW_VALUES:
                        mine.values[name].append(part.values[name][position])
        mine.batches = [_positions(mine.rows, batch) for batch in batches]
        return mine


def _tokens_of(rows: Sequence[Row], *, share_prefixes: bool = False) -> Counter[int]:
    """Return the number of tokens of each group; with ``share_prefixes``, count tokens that rows share only once."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.episode.group, []).append(row)
    return Counter(
        {
            group: tree_tokens([row.ids for row in own]) if share_prefixes else sum(row.tokens for row in own)
            for group, own in groups.items()
        }
    )


def _columns(pairs: Sequence[tuple[Row, int]]) -> tuple[list[Row], list[int]]:
    return [row for row, _ in pairs], [member for _, member in pairs]


def _positions(rows: Sequence[Row], groups: Collection[int]) -> list[int]:
    """Return the positions in ``rows`` of the rows that belong to ``groups``."""
    return [position for position, row in enumerate(rows) if row.episode.group in groups]


def _packed(row: Row) -> dict[str, Any]:
    return {
        **pack_for_losses(row.episode),
        "prompt_ids": torch.tensor(row.prompt_ids),
        "completion_ids": torch.tensor(row.completion_ids),
        "mask": torch.tensor(row.mask, dtype=torch.uint8),
        "logprobs": torch.tensor(row.logprobs, dtype=torch.float64),
        "advantage": _tensor(np.asarray(row.advantage)),
        "start": row.start,
        "copy": row.copy,
        "shown_ids": torch.tensor(row.episode.shown_ids, dtype=torch.int64),
        "columns": {name: _tensor(np.asarray(values)) for name, values in row.columns.items()},
    }


def _unpacked(record: Mapping[str, Any], number: int, episodes: dict[int, Episode]) -> Row:
    if number not in episodes:
        episodes[number] = unpack_for_losses(record)
        episodes[number].shown_ids = record["shown_ids"].tolist()
    return Row(
        episode=episodes[number],
        prompt_ids=record["prompt_ids"].tolist(),
        completion_ids=record["completion_ids"].tolist(),
        mask=record["mask"].tolist(),
        logprobs=record["logprobs"].tolist(),
        advantage=_number_or_array(record["advantage"]),
        start=record["start"],
        copy=record["copy"],
        columns={name: _number_or_array(values) for name, values in record["columns"].items()},
    )


def _tensor(values: FloatArray | None) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(np.array(values, dtype=np.float64))


def _number_or_array(values: torch.Tensor) -> float | FloatArray:
    array: FloatArray = values.numpy()
    return float(array) if array.ndim == 0 else array
