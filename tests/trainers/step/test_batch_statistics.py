"""Which groups an estimator of the batch sees."""

from __future__ import annotations

import numpy as np
import pytest
from small_run import MIXED, SAME, SIGNS, advantages, by_group, collector

from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.group import GroupMean, GroupMeanBatchStd
from rstar2_env.trainers.advantages.rae import Rae
from rstar2_env.trainers.advantages.reinforce import Reinforce
from rstar2_env.trainers.advantages.task_norm import TaskNorm
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def test_a_rejected_group_belongs_to_the_batch():
    options = {"advantage": GroupMeanBatchStd(), "problems_per_step": 2}
    for selector in (KeepAll(), KeepAll(reject_equal=True), ResampleOnCorrect()):
        batch = collector(by_group([MIXED, SAME]), selector=selector, **options).collect(0)
        assert advantages(batch)[:4] == pytest.approx([1.0801 * sign for sign in SIGNS], abs=3e-4)
        assert len(batch.rows) == (8 if selector == KeepAll() else 4)


def test_a_group_that_was_replaced_does_not():
    player = by_group([MIXED, SAME, [1.0, 1.0, 0.0, 0.0]])
    batch = collector(player, advantage=GroupMeanBatchStd(), problems_per_step=2, refill=1).collect(0)
    assert np.abs(advantages(batch)) == pytest.approx(0.5 / 0.53452, abs=3e-4)


def test_of_all_that_were_rejected_those_that_nobody_replaced_do():
    player = by_group([MIXED, SAME, SAME])
    batch = collector(player, advantage=GroupMeanBatchStd(), problems_per_step=2, refill=1).collect(0)
    assert batch.missing == 1
    assert np.abs(advantages(batch)) == pytest.approx(1.0801, abs=3e-4)


def test_a_group_that_was_played_beyond_those_wanted_does_not():
    def work(ranks):
        player = by_group([MIXED, SAME, MIXED, SAME])
        options = {"advantage": GroupMeanBatchStd(), "problems_per_step": 2, "refill": 1}
        return collector(player, ranks=ranks, **options).collect(0)

    for batch in in_processes(2, work):
        assert batch.missing == 0
        assert np.abs(advantages(batch)) == pytest.approx(0.5 / 0.53452, abs=3e-4)


def test_an_estimator_of_groups_alone_sees_those_that_train():
    seen: list[int] = []

    class Looks(GroupMean):
        def __call__(self, groups, ranks):
            seen.extend(len(group) for group in groups)
            return super().__call__(groups, ranks)

    collector(by_group([MIXED, SAME]), advantage=Looks()).collect(0)
    assert seen == [4, 4]


@pytest.mark.parametrize("part", [TaskNorm, Rae, Reinforce])
def test_a_statistic_over_the_batch_counts_the_groups_that_were_rejected(part):
    seen: list[list[float]] = []

    class Looks(part):
        def __call__(self, groups, ranks):
            seen.extend([episode.reward for episode in group] for group in groups)
            return super().__call__(groups, ranks)

    selector = KeepAll(reject_equal=True)
    collector(by_group([MIXED, SAME]), advantage=Looks(), selector=selector).collect(0)
    assert len(seen) == 4
    assert sorted(map(sum, seen)) == sorted([sum(MIXED), sum(MIXED), sum(SAME), sum(SAME)])


def test_of_a_rejected_group_as_many_episodes_count_as_would_train():
    seen: list[int] = []

    class Looks(Reinforce):
        def __call__(self, groups, ranks):
            seen.extend(len(group) for group in groups)
            return super().__call__(groups, ranks)

    selector = ResampleOnCorrect()
    player = by_group([MIXED * 2, SAME * 2])
    collector(player, advantage=Looks(), selector=selector, oversample=2).collect(0)
    assert seen == [4] * 4, "eight were played"
