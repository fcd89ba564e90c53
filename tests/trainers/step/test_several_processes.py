"""Several processes collect what one does, and none waits for one that failed."""

from __future__ import annotations

import numpy as np
import pytest
from small_run import MIXED, SAME, SIGNS, SmallPlayer, advantages, by_group, coin, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_each, in_processes
from rstar2_env.trainers.advantages.group import GroupMeanBatchStd
from rstar2_env.trainers.ranks import OtherProcessError
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def test_two_collect_what_one_does():
    one = collector(refill=0).collect(3)
    two = in_processes(2, lambda ranks: collector(ranks=ranks).collect(3))
    assert [row.completion_ids for batch in two for row in batch.rows] == [row.completion_ids for row in one.rows]
    assert [value for batch in two for value in advantages(batch)] == advantages(one)
    for name, figure in one.figures.items():
        together = np.sum([batch.figures[name] for batch in two], axis=0)
        assert together == pytest.approx(np.array(figure)), name


def test_every_process_knows_how_long_the_slowest_one_played():
    first, second = in_processes(2, lambda ranks: collector(ranks=ranks).collect(0))
    times = [first.seconds["rollout"], second.seconds["rollout"]]
    assert first.slowest == second.slowest == max(times) > 0
    assert first.slowest_process == second.slowest_process == times.index(max(times))


@pytest.mark.parametrize("selector", [ResampleOnCorrect(), ResampleOnCorrect(mode="rank")])
def test_the_selection_of_a_group_does_not_depend_on_who_plays_it(selector):
    options = {"selector": selector, "oversample": 2}
    one = collector(**options).collect(0)
    two = in_processes(2, lambda ranks: collector(ranks=ranks, **options).collect(0))
    assert [row.completion_ids for batch in two for row in batch.rows] == [row.completion_ids for row in one.rows]


def test_they_agree_on_every_round_of_refill():
    def work(ranks):
        collect = collector(by_group([SAME, MIXED, MIXED, SAME, SAME, MIXED]), ranks=ranks, refill=4)
        batch = collect.collect(0)
        return batch, ranks.calls, collect.state_dict()

    (first, calls, state), (second, other_calls, other_state) = in_processes(2, work)
    assert calls == other_calls
    assert state == other_state
    # Groups 0 and 3 fail, 4 and 5 replace them; 4 fails, and is replaced by 6 and 7, since each process plays one.
    assert [group[0].group for group in first.groups] == [0, 1, 4, 6]
    assert [group[0].group for group in second.groups] == [2, 3, 5, 7]
    assert {row.episode.group for batch in (first, second) for row in batch.rows} == {1, 2, 5, 7}
    assert first.missing == second.missing == 0


def test_groups_beyond_those_wanted_are_dropped_as_surplus():
    def work(ranks):
        player = by_group([SAME, *[MIXED] * 7])
        return collector(player, ranks=ranks, refill=1).collect(0)

    first, second = in_processes(2, work)
    assert {row.episode.group for batch in (first, second) for row in batch.rows} == {1, 2, 3, 4}
    assert [decision.reason for decision in second.decisions[-1]] == ["surplus"] * 4
    assert second.rejected == 1


def test_a_process_that_fails_ends_all():
    def work(ranks):
        def earns(problem, group, rng):
            if group == 3:
                raise OSError("no device")
            return coin(problem, group, rng)

        return collector(SmallPlayer(earns), ranks=ranks).collect(0)

    first, second = in_each(2, work)
    assert isinstance(second, OSError)
    assert isinstance(first, OtherProcessError)
    assert str(first) == "Process 1 of 2 failed: OSError: no device"


def test_an_advantage_that_fails_on_one_process_ends_all():
    class Fails(GroupMeanBatchStd):
        def __call__(self, groups, ranks):
            if ranks.rank == 0:
                raise ValueError("no sum")
            return super().__call__(groups, ranks)

    first, second = in_each(2, lambda ranks: collector(ranks=ranks, advantage=Fails()).collect(0))
    assert isinstance(first, ValueError)
    assert isinstance(second, OtherProcessError)


def test_a_share_of_no_group_that_trains_still_reduces():
    def work(ranks):
        player = by_group([MIXED, SAME])
        return collector(player, ranks=ranks, problems_per_step=2, advantage=GroupMeanBatchStd()).collect(0)

    first, second = in_processes(2, work)
    assert second.rows == []
    # The rejected group of the other process is of the batch: 0.5 over the deviation of 1, 0, 0, 1, 0, 0, 0, 0.
    assert advantages(first) == pytest.approx([1.0801 * sign for sign in SIGNS], abs=3e-4)


def test_groups_are_not_split():
    with pytest.raises(ConfigurationError, match="use a multiple of 2"):
        in_processes(2, lambda ranks: collector(ranks=ranks, problems_per_step=3))
