"""What went wrong in other trainers: each a case in which an estimator must keep its head."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit import Said, advantages, episode, plain
from small_run import SmallPlayer, collector

from rstar2_env.core.options.parts import make_part
from rstar2_env.core.row import Row
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.rollouts.plain import Plain
from rstar2_env.trainers.selectors.keep_all import KeepAll

RELATIVE = [
    "gdpo:whiten=none",
    "gpg",
    "group_mean",
    "group_norm",
    "maxrl",
    "opo",
    "pass_at_k:normalize=true",
    "reinforce_pp:baseline=group",
    "rloo",
]
"""Estimators that compare the rewards of a group."""


def collected(advantage, earned, **options):
    """The first step of one group, whose episodes earn this."""
    left = list(earned)
    player = SmallPlayer(lambda problem, group, rng: left.pop(0))
    chosen = {"problems_per_step": 1, "group_size": len(earned), "selector": KeepAll(), **options}
    return collector(player, advantage=make_part(ADVANTAGES, advantage), **chosen).collect(0)


class TestRoundingIsNoSpread:
    """NeMo-RL: of one loser and seven equal winners, the deviation of the others was rounding, and was divided by."""

    @pytest.mark.parametrize("part", RELATIVE)
    def test_one_loser_among_equal_winners(self, part):
        noisy = [0.0, *(0.95 + place * 2e-17 for place in range(6)), 0.1 * 9.5]
        (values,) = advantages(part, plain(*noisy))
        assert np.abs(values).max() < 4
        assert max(values[1:]) - min(values[1:]) < 1e-9

    def test_leave_one_out(self):
        (values,) = advantages("rloo", plain(0, *[0.95] * 7))
        assert values == pytest.approx([-0.95, *[0.95 / 7] * 7])

    @pytest.mark.parametrize("part", RELATIVE)
    def test_winners_alone_are_equal_whatever_rounding_says(self, part):
        assert not np.any(advantages(part, plain(0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2))[0])

    def test_a_selector_that_keeps_the_winners_alone_leaves_no_group_of_zeros(self):
        played, options = [0.95] * 4 + [0.0] * 4, {"group_size": 4, "oversample": 2}
        batch = collected("rloo", played, selector=KeepAll(reject_equal=True), **options)
        assert batch.rows == []
        assert batch.rejected == 1


class _StepRows(Plain):
    """Each episode trains as two rows, as one whose history is rewritten."""

    def rows(self, episode, advantage):
        row = Row.of(episode, advantage)
        return [row, replace(row)]


class TestFragmentsAreOneEpisode:
    """slime: an episode that trains as several rows weighed that often in the mean of its group."""

    @pytest.mark.parametrize("part", RELATIVE)
    def test_an_episode_of_several_rows_counts_once(self, part):
        earned = [1.0, 0.0, 0.0, 0.5]
        whole, apart = collected(part, earned), collected(part, earned, rollout=_StepRows())
        assert len(apart.rows) == 2 * len(whole.rows)
        for one, other in zip(whole.rows, apart.rows[::2], strict=True):
            assert one.advantage == pytest.approx(other.advantage)


class TestFailuresAreNobody:
    """agentcore-rl-toolkit: a rollout that failed entered statistics and loss as one token with a reward of 0."""

    @pytest.mark.parametrize("part", [*RELATIVE, "reinforce_pp", "task_norm:of=rloo", "capo", "gigpo", "rae:decay=0"])
    def test_the_advantages_are_those_of_the_others_alone(self, part):
        earned = [1.0, "unavailable", 0.25, "unavailable"]
        batch = collected(part, earned)
        others = [row.episode for row in batch.rows]
        assert [one.reward for one in others] == [1.0, 0.25]
        (alone,) = advantages(part, others)
        for row, value in zip(batch.rows, alone, strict=True):
            assert row.advantage == pytest.approx(value)


def test_a_return_does_not_end_at_a_tools_tokens():
    """verl: REINFORCE++ set the running return to 0 there, so that turns before the last one earned nothing."""
    group = [episode(Said(1, 2), Said(1, 2), Said(1, 0, 1.0)), episode(Said(1, 2), Said(1, 0, 0.0))]
    for part in ("reinforce_pp", "reinforce_pp:gamma=0.999", "gigpo:gamma=0.999"):
        value = np.resize(advantages(part, group)[0][0], 7)
        assert min(value[[0, 3, 6]]) > 0.5
