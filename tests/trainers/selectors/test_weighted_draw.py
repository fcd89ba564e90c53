"""Draws with given probabilities, and importance weights of ``roc:mode=weighted``."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from roc_groups import choose, failure, lost, success

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect, inclusions, systematic
from rstar2_env.trainers.step.selection import importance_weights


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.data())
def test_probabilities_to_be_kept_add_up_to_the_number_and_are_in_proportion_below_1(sizes, data):
    count = data.draw(st.integers(1, len(sizes)))
    found = inclusions(np.array(sizes), count)
    assert found.sum() == pytest.approx(count)
    assert ((found > 0) & (found <= 1)).all()
    below = found < 1 - 1e-9
    assert np.ptp(found[below] / np.array(sizes)[below]) < 1e-9 if below.any() else True
    assert found[below].max(initial=0) <= 1


def test_a_systematic_draw_includes_each_element_with_its_probability():
    inclusion = inclusions(np.array([8.0, 1.0, 2.0, 3.0, 1.0]), 3)
    rng = np.random.default_rng(5)
    drawn = [systematic(inclusion, rng) for _ in range(20_000)]
    assert all(len(one) == len(set(one)) == 3 for one in drawn)
    shares = np.bincount([at for one in drawn for at in one], minlength=5) / len(drawn)
    assert shares == pytest.approx(inclusion, abs=0.015)
    assert inclusion[0] == 1
    assert 0 < inclusion[1] < 0.4


def test_every_pair_is_drawn_equally_often_so_that_neighbours_can_be_kept_together():
    """In the order of the group, a systematic draw of two of four would only ever keep the pairs (0, 2) and (1, 3)."""
    rng = np.random.default_rng(6)
    draws = 6000
    pairs = Counter(tuple(sorted(systematic(np.full(4, 0.5), rng))) for _ in range(draws))
    assert sorted(pairs) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert all(abs(seen - draws / 6) < 5 * (draws * 5 / 36) ** 0.5 for seen in pairs.values())


def test_weighted_means_of_kept_episodes_have_the_expectation_of_the_mean_over_all():
    group = [success(errors) for errors in (0, 0, 1, 2, 4)] + [failure() for _ in range(6)] + [lost()]
    values = np.arange(1.0, 13.0) ** 2
    means = {}
    for mode in ("sample", "weighted"):
        selector, rng = ResampleOnCorrect(mode=mode), np.random.default_rng(2)
        found = []
        for _ in range(20_000):
            chosen = selector(group, 4, rng)
            weights = selector.weights(group, 4, chosen) or [1.0] * len(chosen)
            found.append(float(np.mean(np.array(weights) * values[chosen])))
        means[mode] = np.mean(found)
    assert means["weighted"] == pytest.approx(values[:11].mean(), rel=0.02)
    assert abs(means["sample"] / values[:11].mean() - 1) > 0.1, "without weights the mean is biased"


def test_weighted_prefers_clean_successes_and_bounds_the_weights():
    group = [success(errors) for errors in (0, 0, 0, 4, 4, 4)] + [failure() for _ in range(6)]
    selector, rng = ResampleOnCorrect(mode="weighted", uniform=0.5), np.random.default_rng(3)
    drawn = [selector(group, 6, rng) for _ in range(2_000)]
    kept = Counter(at for chosen in drawn for at in chosen if at < 6)
    assert min(kept[at] for at in range(3)) > 2 * max(kept[at] for at in range(3, 6))
    weights = {weight for chosen in drawn for weight in selector.weights(group, 6, chosen)}
    assert max(weights) <= 1 / selector.uniform + 1e-9
    assert min(weights) < 1 < max(weights), "kept clean successes count less, since they are kept more often"


def test_weighted_refuses_what_could_drop_one_side():
    with pytest.raises(ConfigurationError, match="minimum=0 may drop all correct or all wrong episodes"):
        ResampleOnCorrect(mode="weighted", minimum=0)
    with pytest.raises(ConfigurationError, match="set group_size to 2 or more"):
        choose(ResampleOnCorrect(mode="weighted"), [success(), failure()], 1)


def test_weighted_reports_the_probability_to_be_kept():
    group = [success(errors) for errors in (0, 2, 4)] + [failure() for _ in range(5)]
    told = ResampleOnCorrect(mode="weighted").weighed(group, 4)
    assert sum(one["chance"] for one in told.values()) == pytest.approx(4)
    assert ResampleOnCorrect(mode="weighted").weights([failure(), failure()], 2, [0, 1]) == [1.0, 1.0]


def test_episodes_without_tokens_do_not_lower_the_weights_of_the_others():
    group = [success(), success(2), failure(), failure()]
    for episode in group[:3]:
        episode.completion_ids, episode.mask = [1], [1]
    assert [episode.policy_tokens for episode in group] == [1, 1, 1, 0]
    found = importance_weights(group, ResampleOnCorrect(mode="weighted"), 4, [0, 1, 2])
    assert found == pytest.approx({0: 1.0, 1: 1.0, 2: 1.0})


def test_published_ways_to_choose_have_no_weights():
    group = [success(), success(2), failure(), failure()]
    for mode in ("sample", "rank"):
        assert ResampleOnCorrect(mode=mode).weights(group, 2, [0, 2]) is None
