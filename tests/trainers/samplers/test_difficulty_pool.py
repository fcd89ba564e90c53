"""``difficulty_pool``: each problem weighs as the pool that its last group put it into."""

from __future__ import annotations

from collections import Counter

import pytest
from outcomes import went

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.samplers.difficulty_pool import DifficultyPool

IDS = ["hard", "edge", "normal", "top", "easy", "unseen"]
TOLD = [went(name, right) for name, right in (("hard", 0), ("edge", 2), ("normal", 4), ("top", 6), ("easy", 8))]


def shares(sampler, count=12000):
    drawn = Counter(start.problem_id for start in sampler.draw(count))
    return {name: drawn[name] / count for name in IDS}


def test_the_weights_of_the_pools_with_inclusive_bounds():
    sampler = DifficultyPool(IDS)
    sampler.observe(TOLD)
    # Hard up to .25, normal up to .75, easy above: weights .2, 1, .2; the unseen problem 1.
    expected = dict(zip(IDS, (0.2, 0.2, 1.0, 1.0, 0.2, 1.0), strict=True))
    total = sum(expected.values())
    assert shares(sampler) == pytest.approx({name: weight / total for name, weight in expected.items()}, abs=0.02)


def test_unseen_problems_are_all_alike():
    assert shares(DifficultyPool(IDS)) == pytest.approx(dict.fromkeys(IDS, 1 / 6), abs=0.02)


def test_the_last_group_alone_counts():
    sampler = DifficultyPool(IDS, hard=0.0, easy=0.0)
    sampler.observe(TOLD)
    assert {start.problem_id for start in sampler.draw(100)} == {"normal", "top", "unseen"}
    sampler.observe([went("easy", 4), went("normal", 8), went("top", 3, 0)])
    assert {start.problem_id for start in sampler.draw(100)} == {"easy", "top", "unseen"}


def test_where_every_problem_weighs_nothing_all_come():
    sampler = DifficultyPool(IDS, hard=0.0)
    sampler.observe([went(name, 0) for name in IDS])
    assert {start.problem_id for start in sampler.draw(200)} == set(IDS)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ConfigurationError, match="greater than easy_from"):
        DifficultyPool(IDS, normal_from=0.9)
