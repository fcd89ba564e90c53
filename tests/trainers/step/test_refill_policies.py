"""What becomes of a step that is short of groups: fresh ones up to a bound (DAPO), or copies of others (POLARIS)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from small_run import SmallPlayer, collector

from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.group import GroupMeanBatchStd
from rstar2_env.trainers.losses.aggregations import PromptMean
from rstar2_env.trainers.ranks import ONE
from rstar2_env.trainers.samplers.uniform import Uniform

MIXED, SAME = [1.0, 0.0, 1.0, 0.0], [1.0] * 4


def earning(*good):
    """Groups whose number is in ``good`` are mixed, the others all right."""
    told: Counter[int] = Counter()

    def earns(problem, group, rng):
        told[group] += 1
        return (MIXED if group in good else SAME)[(told[group] - 1) % 4]

    return SmallPlayer(earns)


def trained(batch):
    """How many rows each group has."""
    return Counter(row.episode.group for row in batch.rows)


@pytest.mark.parametrize(("share", "copies"), [(0.5, 2), (0.75, 0), (None, 0)])
def test_copies_fill_the_step_where_the_share_was_found(share, copies):
    batch = collector(earning(0, 2), replace=share).collect(0)
    assert len(batch.rows) == 4 * (2 + copies)
    assert set(trained(batch)) == {0, 2}
    assert batch.missing == 2 - copies
    assert batch.figures["rollout/groups_replaced"][0] == copies
    assert batch.figures["rollout/groups_missing"][0] == 2 - copies


def test_no_group_is_copied_twice_before_each_was_copied_once():
    for seed in range(8):
        assert trained(collector(earning(1, 2), replace=0.1, seed=seed).collect(0)) == {1: 8, 2: 8}
    assert trained(collector(earning(3), replace=0.25).collect(0)) == {3: 16}


def test_where_nothing_was_found_nothing_is_copied():
    batch = collector(earning(), replace=0.01).collect(0)
    assert (batch.rows, batch.missing) == ([], 4)


def test_rounds_of_refill_are_played_until_the_share_is_there_and_no_longer():
    batch = collector(earning(0, 5, 6, 7, 8), replace=0.3, refill=9).collect(0)
    # One of four is less than the share; the second round plays three more, of which two are mixed.
    assert len(batch.groups) == 7
    assert len(batch.rows) == 16
    assert sum(trained(batch)[group] == 8 for group in (0, 5, 6)) == 1


def test_a_copy_has_the_advantages_of_its_group_and_counts_in_those_of_the_batch():
    batch = collector(earning(0), replace=0.25, advantage=GroupMeanBatchStd(eps=0.0)).collect(0)
    # The deviation is that of four copies of (1, 0, 1, 0), and not of one beside three groups of ones.
    expected = 0.5 / np.std(MIXED * 4, ddof=1)
    assert [abs(row.advantage) for row in batch.rows] == pytest.approx([expected] * 16)


def test_a_copy_weighs_as_much_as_a_group_in_every_aggregation():
    rows = collector(earning(0, 2), replace=0.25).collect(0).rows
    assert sorted(row.copy for row in rows) == [0] * 8 + [1] * 8
    lengths, groups = np.array([row.policy_tokens for row in rows]), np.array([row.group for row in rows])
    weights = PromptMean()(lengths, groups, ONE)
    assert [sum(weights[groups == group] * lengths[groups == group]) for group in set(groups)] == pytest.approx(
        [0.25] * 4
    )


def test_the_copies_are_the_same_on_any_number_of_processes():
    def run(ranks):
        return trained(collector(earning(0, 3), replace=0.2, ranks=ranks, problems_per_step=8, seed=5).collect(0))

    (alone,) = in_processes(1, run)
    assert sum(in_processes(2, run), Counter()) == alone
    assert alone.total() == 32


def test_another_seed_copies_others():
    chosen = {
        tuple(
            sorted(
                trained(collector(earning(*range(5)), replace=0.3, problems_per_step=8, seed=seed).collect(0)).items()
            )
        )
        for seed in range(8)
    }
    assert len(chosen) > 1


def test_the_sampler_and_the_figures_see_each_group_once():
    told = []

    class Hears(Uniform):
        def observe(self, outcomes):
            told.extend(outcomes)

    batch = collector(earning(0), replace=0.25, sampler=Hears(None)).collect(0)
    assert [outcome.group for outcome in told] == [0, 1, 2, 3]
    assert batch.figures["kept/episodes"][0] == 4
    assert [len(group) for group in batch.groups] == [4] * 4


def test_refill_stops_at_its_bound_and_says_how_many_are_missing():
    batch = collector(earning(0), refill=9).collect(0)
    assert len(batch.groups) == 4 + 9 * 3
    assert (batch.missing, batch.refilled) == (3, 27)
    whole = collector(earning(0, 4, 5, 6), refill=9).collect(0)
    assert (len(whole.rows), whole.missing) == (16, 0)
    assert len(whole.groups) == 7


def test_the_folder_hears_how_often_an_episode_trains_besides(tmp_path):
    batch = collector(earning(0, 2), replace=0.5).collect(0)
    writer = RunWriter(tmp_path / "run")
    writer.begin({})
    writer.train(1, batch.groups, batch.decisions)
    copies = [[entry.decision.copies for entry in group] for group in read_run(tmp_path / "run").groups(1)]
    assert copies == [[1] * 4, [0] * 4, [1] * 4, [0] * 4]
