"""Rows of a rollout over several processes: the optimizer steps of one process, whoever played the groups."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from training_rows import row

from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout, PendingRows
from rstar2_env.trainers.losses.aggregations import ConstLen, PromptMean, SeqMean, TokenMean
from rstar2_env.trainers.ranks import ONE

AGGREGATIONS = (TokenMean(), SeqMean(), PromptMean(), ConstLen(length=100))


class Exchanging:
    """Simulated processes that also exchange values."""

    def __init__(self, ranks):
        self.ranks, self.rank, self.size = ranks, ranks.rank, ranks.size
        self.sum, self.gather = ranks.sum, ranks.gather

    def exchange(self, values):
        assert len(values) == self.size
        return [sent[self.rank] for sent in self.gather(values)]


@st.composite
def rollouts(draw):
    """Rows of the kept groups of a rollout, by group."""
    sizes = draw(st.lists(st.integers(1, 4), max_size=12))
    numbers = draw(st.lists(st.integers(0, 60), min_size=len(sizes), max_size=len(sizes), unique=True))
    made = {}
    for number, size in zip(numbers, sizes, strict=True):
        lengths = draw(st.lists(st.integers(3, 30), min_size=size, max_size=size))
        made[number] = [row(number, 4, length, 1.0, seed=at) for at, length in enumerate(lengths)]
    return made


def dealt(groups, layout, processes):
    """The pending rows of each process; process ``number % processes`` played a group."""

    def work(ranks):
        own = [one for number, rows in groups.items() if number % processes == ranks.rank for one in rows]
        return PendingRows.dealt(own, [0] * len(own), Exchanging(ranks), partial(layout.divide, 7))

    return in_processes(processes, work)


def keys(rows):
    return Counter((one.episode.group, tuple(one.completion_ids), tuple(one.logprobs)) for one in rows)


@settings(max_examples=40, deadline=None)
@given(
    groups=rollouts(),
    passes=st.integers(1, 2),
    minibatches=st.integers(1, 6),
    processes=st.sampled_from([1, 2, 3, 4, 8, 16]),
)
def test_each_optimizer_step_has_the_rows_and_the_weights_of_one_process(groups, passes, minibatches, processes):
    layout = BatchLayout(4096, passes=passes, minibatches=minibatches, seed=3)
    (alone,) = dealt(groups, layout, 1)
    parts = dealt(groups, layout, processes)
    assert {len(part.batches) for part in parts} == {len(alone.batches)}
    assert len(alone.batches) == passes * min(minibatches, len(groups)) or not groups
    for step, batch in enumerate(alone.batches):
        expected = [alone.rows[position] for position in batch]
        found = [[part.rows[position] for position in part.batches[step]] for part in parts]
        assert keys(one for own in found for one in own) == keys(expected)
        assert not groups or found
        homes = [{one.episode.group for one in own} for own in found]
        assert sum(map(len, homes)) == len(set().union(*homes)), "a group is in one process"
        for aggregation in AGGREGATIONS:

            def weights(rows, ranks, aggregation=aggregation):
                lengths = np.array([one.policy_tokens for one in rows], dtype=np.int64)
                return aggregation(lengths, np.array([one.group for one in rows], dtype=np.int64), ranks)

            whole = dict(zip(map(id, expected), weights(expected, ONE), strict=True))
            total = Counter()
            for one in expected:
                total[one.episode.group] += whole[id(one)] * one.policy_tokens
            apart = in_processes(
                processes, lambda ranks, weights=weights, found=found: weights(found[ranks.rank], ranks)
            )
            shares = Counter()
            for own, values in zip(found, apart, strict=True):
                for one, value in zip(own, values, strict=True):
                    shares[one.episode.group] += value * one.policy_tokens
            assert shares.keys() == total.keys()
            np.testing.assert_allclose([shares[group] for group in total], list(total.values()), rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(groups=rollouts(), before=st.sampled_from([1, 2, 5]), after=st.sampled_from([1, 3, 4]))
def test_rows_that_wait_in_a_checkpoint_resume_on_another_number_of_processes(groups, before, after):
    layout = BatchLayout(4096, passes=2, minibatches=3)
    parts = [PendingRows.from_state(part.state_dict()) for part in dealt(groups, layout, before)]
    again = [PendingRows.divided(parts, rank, after) for rank in range(after)]
    for step in range(len(parts[0].batches)):
        assert keys(part.rows[position] for part in again for position in part.batches[step]) == keys(
            part.rows[position] for part in parts for position in part.batches[step]
        )


def test_a_row_that_moves_keeps_everything_that_is_trained_on_or_recorded():
    one = row(1, 4, 20, np.linspace(-1, 1, 20), version=3)
    one.episode.shown_ids, one.episode.source, one.copy = [5, 6, 7], "refined", 2
    one.columns["accuracy"] = 0.25
    # The other group has more tokens, so that this one moves to the process that played nothing.
    groups = {0: [row(0, 4, 29, 1.0), row(0, 4, 29, -1.0, seed=1)], 2: [one]}
    one.episode.group = 2
    first, second = dealt(groups, BatchLayout(4096), 2)
    (moved,) = second.rows
    assert {each.episode.group for each in first.rows} == {0}
    assert (moved.prompt_ids, moved.completion_ids, moved.mask) == (one.prompt_ids, one.completion_ids, one.mask)
    assert (moved.logprobs, moved.columns, moved.group) == (one.logprobs, {"accuracy": 0.25}, one.group)
    assert np.array_equal(moved.advantage, one.advantage)
    assert (moved.episode.shown_ids, moved.episode.source) == ([5, 6, 7], "refined")
    assert [turn.version for turn in moved.episode.steps] == [3, 3]
    assert moved.turn_of().tolist() == one.turn_of().tolist()
