"""The numbers by which selectors choose, as the run's folder has them."""

from __future__ import annotations

import numpy as np
import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.selectors.balanced_band import BalancedBand
from rstar2_env.trainers.selectors.deviation import Deviation
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.minimum_group import MinimumGroup
from rstar2_env.trainers.selectors.quality_ties import QualityTieSelector
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect
from rstar2_env.trainers.step.selection import weigh


def episode(reward, end="answered", errors=0, tags=1):
    statuses = [ToolStatus.EXCEPTION] * errors + [ToolStatus.OK]
    return Episode(reward=reward, end=end, correct=reward > 0, answer_tags=tags, turns=2, statuses=statuses)


MIXED = [episode(1.0, errors=1), episode(1.0), episode(0.0, "unavailable"), episode(0.0), episode(0.0, tags=2)]


def test_roc_tells_penalties_quotas_and_the_chance_of_the_first_draw():
    told = weigh(MIXED, ResampleOnCorrect(minimum=1), 3)
    assert set(told) == {0, 1, 3, 4}, "what does not count is not weighed"
    assert told[0] == pytest.approx(
        {"penalty": 0.5, "tool_errors": 0.5, "format": 0.0, "quota": 1, "chance": (1 / 0.51) / (1 / 0.51 + 1 / 0.01)}
    )
    assert told[0]["chance"] + told[1]["chance"] == pytest.approx(1)
    assert told[4] == {"penalty": 0.5, "tool_errors": 0.0, "format": 0.5, "quota": 2, "chance": 0.5}


def test_the_chance_is_how_often_an_episode_is_drawn_first():
    group = [episode(1.0, errors=2), episode(1.0, errors=1), *[episode(0.0)] * 2]
    selector = ResampleOnCorrect(minimum=1, delta=0.5)
    told = weigh(group, selector, 2)
    drawn = [selector(group, 2, np.random.default_rng(seed))[0] for seed in range(3000)]
    assert drawn.count(0) / len(drawn) == pytest.approx(told[0]["chance"], abs=0.03)


def test_ranks_are_no_draws_and_a_rejected_group_has_no_quota():
    told = weigh(MIXED, ResampleOnCorrect(mode="rank"), 2)
    assert ["chance" in told[at] for at in (0, 1, 3, 4)] == [False, False, True, True]
    assert weigh([episode(1.0, errors=1)] * 2, ResampleOnCorrect(), 2)[0] == {
        "penalty": 0.5,
        "tool_errors": 0.5,
        "format": 0.0,
    }


def test_a_filter_tells_what_it_looked_at_and_what_the_other_selector_tells():
    assert weigh(MIXED, BalancedBand(of="all", low=0.6), 2)[0] == {"pass_rate": 0.5, "low": 0.6, "high": 0.8}
    passed = weigh(MIXED, BalancedBand(of="roc"), 2)[0]
    assert (passed["pass_rate"], passed["penalty"]) == (0.5, 0.5)
    assert "penalty" not in weigh(MIXED, BalancedBand(of="roc", low=0.6), 2)[0], "roc was not asked"
    assert weigh(MIXED, MinimumGroup(of="all", least=3), 2)[1] == {"counted": 4, "least": 3}
    looked = weigh(MIXED, Deviation(of="all"), 2)[0]
    assert looked == pytest.approx({"deviation": 0.5773502, "threshold": 0.0})
    assert weigh([episode(1.0)], Deviation(of="all"), 2)[0]["deviation"] == 0, "one alone does not deviate"


def test_ties_are_weighed_by_penalty_and_other_groups_as_by_the_other_selector():
    right = [episode(1.0, errors=errors) for errors in range(3)]
    assert [one["penalty"] for one in weigh(right, QualityTieSelector(), 2).values()] == pytest.approx([0, 0.5, 2 / 3])
    assert weigh(MIXED, QualityTieSelector(), 2) == weigh(MIXED, ResampleOnCorrect(), 2)


def test_positions_are_those_of_the_whole_group_where_some_train_apart():
    told = weigh(MIXED, ResampleOnCorrect(minimum=1), 3, apart=[0])
    assert set(told) == {1, 3, 4}
    assert told[4]["format"] == 0.5


def test_a_selector_without_numbers_tells_none():
    assert weigh(MIXED, KeepAll(), 2) == {}
