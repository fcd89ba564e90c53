"""``quality_ties``: clean calls are better where every answer is right, and nothing else changes."""

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.advantages.group import GroupNorm
from rstar2_env.trainers.advantages.quality_ties import QualityTies
from rstar2_env.trainers.ranks import ONE


def played(failed, right=True, calls=2):
    statuses = [ToolStatus.TIMEOUT] * failed + [ToolStatus.OK] * (calls - failed)
    return Episode(statuses=statuses, correct=right, reward=float(right), answer_tags=1, turns=2, end="answered")


def test_of_right_answers_the_cleaner_ones_are_better_by_the_size_of_grpos_advantages():
    group = [played(0), played(2), played(2), played(0)]
    assert QualityTies(scale=1)([group], ONE) == [pytest.approx([0.866, -0.866, -0.866, 0.866], abs=2e-4)]
    assert QualityTies(scale=0.5)([group], ONE) == [pytest.approx([0.433, -0.433, -0.433, 0.433], abs=2e-4)]
    # An answer without a call stands between a clean call and one that failed.
    none, clean, failed = QualityTies()([[played(0, calls=0), played(0), played(2)]], ONE)[0]
    assert clean > none > failed
    assert none == pytest.approx(0)


def test_where_an_answer_is_wrong_or_nothing_differs_it_is_the_other_estimator():
    mixed = [played(0), played(2), played(0, right=False), played(2, right=False)]
    wrong = [played(0, right=False), played(2, right=False)]
    same = [played(1), played(1)]
    groups = [mixed, wrong, same]
    assert QualityTies()(groups, ONE) == GroupNorm()(groups, ONE)
    assert QualityTies(of="rloo")([mixed], ONE)[0] == pytest.approx([2 / 3, 2 / 3, -2 / 3, -2 / 3])


def test_eps_is_added_to_the_deviation_of_the_penalties():
    """Penalties 0 and 1: their deviation is sqrt(1/2)."""
    assert QualityTies(scale=1, eps=1)([[played(0), played(2)]], ONE) == [
        pytest.approx([0.5 / (0.5**0.5 + 1), -0.5 / (0.5**0.5 + 1)])
    ]
