"""Which episodes of a group Resample-on-Correct keeps, in both published modes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from roc_groups import choose, counts, failure, lost, success

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards.roc_penalty import penalty
from rstar2_env.trainers.selectors.base import Selector
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect, quotas

MODES = [ResampleOnCorrect(mode="sample"), ResampleOnCorrect(mode="rank")]
modes = pytest.mark.parametrize("selector", MODES, ids=["sample", "rank"])
episodes = st.one_of(
    st.builds(success, errors=st.integers(0, 4), tags=st.integers(0, 3)), st.builds(failure), st.builds(lost)
)


@modes
@given(group=st.lists(episodes, max_size=40), keep=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_what_is_chosen_is_available_distinct_ordered_and_within_the_quotas(
    selector: Selector, group: list[Episode], keep: int, seed: int
) -> None:
    chosen = choose(selector, group, keep, seed)
    assert chosen == sorted(set(chosen))
    assert all(type(position) is int and group[position].available for position in chosen)
    usable = [episode for episode in group if episode.available]
    positives = sum(episode.correct for episode in usable)
    if positives in (0, len(usable)):
        assert chosen == []
    else:
        assert counts(group, chosen) == quotas(positives, len(usable) - positives, keep)
    assert chosen == choose(selector, group, keep, seed), "the same generator gives the same choice"


@modes
def test_a_group_whose_rewards_are_all_equal_is_rejected(selector: Selector) -> None:
    for group in ([], [success()] * 8, [failure()] * 8, [lost()] * 8, [success(), lost()], [lost(), failure()]):
        assert choose(selector, group, 4) == []


@modes
def test_a_group_of_unequal_rewards_that_are_all_positive_is_kept_whole_in_size(selector: Selector) -> None:
    group = [Episode(reward=r, correct=True, end="terminated") for r in (0.5, 1.0, 0.25, 2.0)]
    assert len(choose(selector, group, 2)) == 2


@modes
def test_a_lost_episode_is_as_if_it_had_not_been_played(selector: Selector) -> None:
    group = [success(errors=i % 3) if i % 2 else failure() for i in range(16)]
    with_lost = [episode for pair in zip(group, [lost()] * 16, strict=True) for episode in pair]
    for seed in range(20):
        assert choose(selector, with_lost, 8, seed) == [2 * i for i in choose(selector, group, 8, seed)]


def test_rank_takes_the_lowest_penalties_and_of_equals_the_earliest() -> None:
    group = [success(errors=e) for e in (2, 0, 1, 0, 2, 0, 1, 3)] + [failure()] * 8
    for seed in range(10):
        chosen = choose(ResampleOnCorrect(mode="rank"), group, 8, seed)
        assert [i for i in chosen if group[i].correct] == [1, 2, 3, 5]


def test_rank_keeps_the_same_penalties_in_any_order_of_the_group() -> None:
    rng = np.random.default_rng(0)
    group = [success(errors=i % 5) for i in range(16)] + [failure()] * 16
    kept = set()
    for _ in range(20):
        shuffled = [group[i] for i in rng.permutation(32)]
        chosen = choose(ResampleOnCorrect(mode="rank"), shuffled, 16)
        kept.add(tuple(sorted(penalty(shuffled[i]) for i in chosen if shuffled[i].correct)))
    assert len(kept) == 1


def frequencies(selector: Selector, group: Sequence[Episode], keep: int, draws: int) -> Counter[int]:
    rng = np.random.default_rng(0)
    return Counter(i for _ in range(draws) for i in selector(group, keep, rng))


def chi_square(observed: Sequence[float], expected: float) -> float:
    return sum((o - expected) ** 2 / expected for o in observed)


@modes
def test_failures_are_kept_uniformly_whatever_their_errors(selector: Selector) -> None:
    group = [failure(errors=i % 5) for i in range(12)] + [success()] * 12
    draws = 6000
    seen = frequencies(selector, group, 12, draws)
    statistic = chi_square([seen[i] for i in range(12)], draws * 6 / 12)
    # Eleven degrees of freedom: 45 is passed once in two hundred thousand, and drawing without replacement varies less.
    assert statistic < 45


def test_sample_draws_a_success_with_a_weight_inverse_to_its_penalty() -> None:
    """With room for one success, the frequencies are the weights themselves."""
    group = [success(errors=e) for e in (0, 1, 2, 3, 4)] + [failure()] * 5
    selector = ResampleOnCorrect(mode="sample", minimum=1, delta=0.2)
    draws = 20000
    seen = frequencies(selector, group, 2, draws)
    weights = np.array([1 / (p + 0.2) for p in (0, 0.25, 0.5, 0.75, 1.0)])
    expected = draws * weights / weights.sum()
    assert sum(seen[i] for i in range(5)) == draws
    statistic = sum((seen[i] - expected[i]) ** 2 / expected[i] for i in range(5))
    assert statistic < 30  # four degrees of freedom: passed once in two hundred thousand


def test_sample_draws_equal_successes_equally_in_any_place() -> None:
    group = [success()] * 8 + [failure()] * 8
    seen = frequencies(ResampleOnCorrect(mode="sample"), group, 8, 6000)
    assert chi_square([seen[i] for i in range(8)], 3000) < 37  # seven degrees of freedom


def test_sample_prefers_clean_successes_and_excludes_none() -> None:
    group = [success()] * 8 + [success(errors=4, tags=3, turns=2)] * 8 + [failure()] * 16
    seen = frequencies(ResampleOnCorrect(mode="sample"), group, 16, 3000)
    clean, dirty = sum(seen[i] for i in range(8)), sum(seen[i] for i in range(8, 16))
    assert clean > 10 * dirty > 0


def test_seeds_change_the_choice() -> None:
    group = [success(errors=i % 5) for i in range(16)] + [failure()] * 16
    for selector in MODES:
        assert len({tuple(choose(selector, group, 16, seed)) for seed in range(20)}) > 10


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="mode"):
        ResampleOnCorrect(mode="best")  # type: ignore[arg-type]  # the mistake that is tested
    for delta in (0.0, -1.0):
        with pytest.raises(ConfigurationError, match="delta"):
            ResampleOnCorrect(delta=delta)
    with pytest.raises(ConfigurationError, match="minimum"):
        ResampleOnCorrect(minimum=-1)


@pytest.mark.parametrize("selector", [ResampleOnCorrect(minimum=0), ResampleOnCorrect("rank", minimum=0)])
def test_a_group_of_one_kind_whose_rewards_differ_is_chosen_from(selector: ResampleOnCorrect) -> None:
    wrong = [Episode(end="answered", reward=reward) for reward in (0.0, 0.5, 0.25)]
    assert len(choose(selector, wrong, 2)) == 2
    assert {at: one["quota"] for at, one in selector.weighed(wrong, 2).items()} == {0: 2, 1: 2, 2: 2}
    right = [Episode(end="answered", reward=reward, correct=True, answer_tags=1) for reward in (1.0, 0.5, 0.25)]
    assert len(choose(selector, right, 2)) == 2
