"""Sixty-four simulated processes: what they collect, deal, balance and save is what one process collects.

The processes are threads that gather as the processes of a run do; the rows and the code are those of a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="trainers need the extra 'train'")

from small_run import SmallPlayer, collector

from rstar2_env.core.episode import Episode
from rstar2_env.testing.training.processes import ThreadRanks, in_processes
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout, PendingRows

SIZE, GROUPS, EACH = 64, 192, 4
LAYOUT = BatchLayout(tokens_per_device=256, minibatches=2, seed=3)


class LongTail(SmallPlayer):
    """Episodes whose lengths have a long tail, as those of a real run."""

    def ended(self, earned: Any, rng: np.random.Generator, *rest: Any) -> Episode:
        episode = super().ended(earned, rng, *rest)
        more = int(30 * rng.lognormal(0, 0.7))
        episode.completion_ids += [7] * more
        episode.mask += [1] * more
        episode.logprobs += [-1.0] * more
        if episode.steps:
            episode.steps[0].stop += more
        return episode


class Exchanging:
    """The ranks of one process, which can also send each other process a value of its own."""

    def __init__(self, ranks: ThreadRanks) -> None:
        self.rank, self.size, self.sum, self.gather = ranks.rank, ranks.size, ranks.sum, ranks.gather

    def exchange(self, values: Sequence[Any]) -> list[Any]:
        return [sent[self.rank] for sent in self.gather(list(values))]


def collected(ranks: ThreadRanks | None = None) -> Any:
    given = {} if ranks is None else {"ranks": ranks}
    return collector(LongTail(), problems_per_step=GROUPS, group_size=EACH, refill=0, **given).collect(5)


def dealt(ranks: ThreadRanks) -> tuple[Any, PendingRows]:
    batch, members = collected(ranks), Counter[int]()
    numbers = []
    for row in batch.rows:
        numbers.append(members[row.episode.group])
        members[row.episode.group] += 1
    return batch, PendingRows.dealt(batch.rows, numbers, Exchanging(ranks), lambda groups: LAYOUT.divide(5, groups))


@pytest.fixture(scope="module")
def parts() -> list[tuple[Any, PendingRows]]:
    return in_processes(SIZE, dealt)


def rows_of(pending: Sequence[PendingRows]) -> Counter[tuple[int, ...]]:
    return Counter((row.episode.group, *row.completion_ids) for part in pending for row in part.rows)


def test_they_collect_and_deal_the_rows_that_one_process_collects(parts: list[tuple[Any, PendingRows]]) -> None:
    alone = collected()
    expected = Counter((row.episode.group, *row.completion_ids) for row in alone.rows)
    assert rows_of([pending for _, pending in parts]) == expected
    assert len(expected) > 300


def test_groups_are_whole_and_in_the_same_optimizer_step_everywhere(parts: list[tuple[Any, PendingRows]]) -> None:
    homes: dict[int, set[int]] = {}
    steps: dict[int, set[int]] = {}
    for rank, (_, pending) in enumerate(parts):
        for step, batch in enumerate(pending.batches):
            for position in batch:
                homes.setdefault(pending.rows[position].episode.group, set()).add(rank)
                steps.setdefault(pending.rows[position].episode.group, set()).add(step)
    assert {len(found) for found in homes.values()} == {1}
    assert {len(found) for found in steps.values()} == {1}


def test_the_largest_load_of_each_step_is_near_the_mean(parts: list[tuple[Any, PendingRows]]) -> None:
    for step in range(LAYOUT.minibatches):
        loads = [sum(pending.rows[place].tokens for place in pending.batches[step]) for _, pending in parts]
        largest = max(
            sum(row.tokens for row in pending.rows if row.episode.group == group)
            for _, pending in parts
            for group in {row.episode.group for row in pending.rows}
        )
        # Groups stay whole: a process may have one group more than the mean, and never two.
        assert max(loads) <= np.mean(loads) + largest
    played = [sum(row.tokens for row in batch.rows) for batch, _ in parts]
    own = [sum(row.tokens for row in pending.rows) for _, pending in parts]
    assert sum(own) == sum(played)
    assert np.std(own) < 0.7 * np.std(played), "dealing evens out what each process played"


@pytest.mark.parametrize("size", [1, 24, 64])
def test_a_checkpoint_is_read_by_another_number_of_processes(parts: list[tuple[Any, PendingRows]], size: int) -> None:
    saved = [PendingRows.from_state(pending.state_dict()) for _, pending in parts]
    again = [PendingRows.divided(saved, rank, size) for rank in range(size)]
    assert rows_of(again) == rows_of(saved)
    before = [sum(len(part.batches[step]) for part in saved) for step in range(LAYOUT.minibatches)]
    assert [sum(len(part.batches[step]) for part in again) for step in range(LAYOUT.minibatches)] == before
