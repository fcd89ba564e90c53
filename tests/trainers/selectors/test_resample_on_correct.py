"""Which episodes of a group train: quotas, penalties, both ways of Resample-on-Correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.rewards.clean_success import CleanSuccess, format_penalty, penalty, tool_error_penalty
from rstar2_env.trainers.selectors.base import SELECTORS, Selector, all_equal
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect, inclusions, quotas, systematic
from rstar2_env.trainers.step.selection import importance_weights

OK, BAD, OURS = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE


def success(errors: int = 0, calls: int = 4, tags: int = 1, turns: int = 5) -> Episode:
    return Episode(
        reward=1.0,
        correct=True,
        end="answered",
        statuses=[BAD] * errors + [OK] * (calls - errors),
        answer_tags=tags,
        turns=turns,
    )


def failure(errors: int = 0, calls: int = 4) -> Episode:
    return Episode(end="answered", statuses=[BAD] * errors + [OK] * (calls - errors), answer_tags=1, turns=5)


def lost() -> Episode:
    return Episode(end="unavailable", statuses=[OURS])


def choose(selector: Selector, group: Sequence[Episode], keep: int, seed: int = 0) -> list[int]:
    return selector(group, keep, np.random.default_rng(seed))


def counts(group: Sequence[Episode], chosen: Sequence[int]) -> tuple[int, int]:
    positives = sum(group[i].correct for i in chosen)
    return positives, len(chosen) - positives


# Quotas ---------------------------------------------------------------------------------------------------------------

GOLDEN = {
    **{1: (1, 15), 8: (4, 12), 24: (12, 4), 31: (15, 1)},
    **dict.fromkeys(range(2, 6), (2, 14)),
    **dict.fromkeys(range(15, 18), (8, 8)),
    **dict.fromkeys(range(27, 31), (14, 2)),
}


@pytest.mark.parametrize(("positives", "expected"), GOLDEN.items())
def test_golden_quotas_of_sixteen_out_of_thirty_two(positives: int, expected: tuple[int, int]) -> None:
    assert quotas(positives, 32 - positives, 16) == expected


@pytest.mark.parametrize(
    ("positives", "negatives", "keep", "minimum", "expected"),
    [
        (3, 2, 5, 2, (3, 2)),
        (3, 2, 9, 2, (3, 2)),
        (1, 3, 2, 0, (0, 2)),  # 1/2 and 3/2 are rounded to even: 0 and 2
        (3, 1, 2, 0, (2, 0)),
        (15, 1, 4, 2, (3, 1)),  # 3.75 and 0.25: 4 and 0, then 1 of the failures, then one success less
        (1, 15, 4, 2, (1, 3)),
        (2, 2, 3, 2, (1, 2)),  # 3/2 and 3/2: 2 and 2; of equal quotas, that of the successes is reduced
        (1, 1, 1, 2, (1, 0)),  # 1/2 and 1/2: 0 and 0; of equal quotas, that of the successes is increased
        (1, 5, 3, 0, (1, 2)),  # 1/2 and 5/2: 0 and 2; the smaller quota is increased
        (5, 1, 3, 0, (2, 1)),
        (9, 5, 7, 0, (4, 3)),  # 9/2 and 5/2: 4 and 2
        (30, 2, 5, 2, (3, 2)),
        (30, 2, 5, 1, (4, 1)),
        (30, 2, 4, 9, (2, 2)),  # a minimum that does not fit is half of what is kept
        (30, 9, 5, 9, (3, 2)),
    ],
)
def test_golden_quotas(positives: int, negatives: int, keep: int, minimum: int, expected: tuple[int, int]) -> None:
    assert quotas(positives, negatives, keep, minimum=minimum) == expected


def test_the_smallest_numbers_that_quotas_accept() -> None:
    assert quotas(3, 3, 1, minimum=0) == (1, 0)
    for keep, minimum in ((0, 0), (1, -1)):
        with pytest.raises(ConfigurationError, match="keep >= 1 and minimum >= 0"):
            quotas(3, 3, keep, minimum=minimum)


sides, keeps, minimums = st.integers(0, 80), st.integers(1, 80), st.integers(0, 6)


@given(positives=sides, negatives=sides, keep=keeps, minimum=minimums)
def test_quotas_fill_the_room_within_what_there_is(positives: int, negatives: int, keep: int, minimum: int) -> None:
    pos, neg = quotas(positives, negatives, keep, minimum=minimum)
    assert pos + neg == min(keep, positives + negatives)
    assert 0 <= pos <= positives
    assert 0 <= neg <= negatives


@given(positives=sides, negatives=sides, keep=keeps, minimum=minimums)
def test_quotas_keep_the_minimum_of_a_side_that_has_it(positives: int, negatives: int, keep: int, minimum: int) -> None:
    pos, neg = quotas(positives, negatives, keep, minimum=minimum)
    fewest = min(minimum, keep // 2)
    assert pos >= min(fewest, positives)
    assert neg >= min(fewest, negatives)


@given(positives=sides, negatives=sides, keep=keeps, minimum=minimums)
def test_quotas_stay_within_one_of_the_share_unless_the_minimum_speaks(
    positives: int, negatives: int, keep: int, minimum: int
) -> None:
    pos, neg = quotas(positives, negatives, keep, minimum=minimum)
    total = positives + negatives
    if total > keep and min(pos, neg) > minimum:
        assert abs(pos - positives * keep / total) <= 1
        assert abs(neg - negatives * keep / total) <= 1


@given(positives=sides, negatives=sides, keep=keeps)
def test_more_successes_never_get_a_smaller_quota(positives: int, negatives: int, keep: int) -> None:
    if negatives:
        assert quotas(positives + 1, negatives - 1, keep)[0] >= quotas(positives, negatives, keep)[0]


@pytest.mark.parametrize(("played", "keep"), [(32, 16), (24, 16), (16, 8), (64, 16), (16, 16), (8, 16)])
def test_quotas_sum_up_for_every_split_of_the_usual_sizes(played: int, keep: int) -> None:
    for positives in range(played + 1):
        assert sum(quotas(positives, played - positives, keep)) == min(keep, played)


def test_quotas_of_nothing_are_refused() -> None:
    for keep, minimum in ((0, 2), (-1, 2), (4, -1)):
        with pytest.raises(ConfigurationError, match="keep >= 1"):
            quotas(4, 4, keep, minimum=minimum)


# Penalties ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], 0.5),
        ([OURS], 0.5),
        ([OK], 0.0),
        ([ToolStatus.EMPTY], 0.0),
        ([BAD], 1.0),
        ([OK, OK, OK, BAD], 0.25),
        ([OURS, BAD, OK], 0.5),
        ([ToolStatus.MALFORMED, ToolStatus.UNKNOWN_TOOL, ToolStatus.INVALID_ARGUMENTS, OK], 0.75),
        ([ToolStatus.TIMEOUT, ToolStatus.SYNTAX_ERROR, ToolStatus.MEMORY, ToolStatus.BLOCKED], 1.0),
    ],
)
def test_p_err_is_the_share_of_failed_calls_and_a_half_without_any(statuses: list[ToolStatus], expected: float) -> None:
    assert tool_error_penalty(Episode(statuses=statuses)) == expected


def test_p_err_counts_no_injected_fault() -> None:
    assert tool_error_penalty(Episode(statuses=[OK], injected=[BAD, BAD])) == 0.0
    assert tool_error_penalty(Episode(injected=[BAD])) == 0.5


def test_p_err_comes_from_statuses_and_never_from_text() -> None:
    shown = Message("user", "<tool_response>\nValueError: error\n</tool_response>")
    episode = Episode(messages=[shown])
    episode.observe(0.0, False, False, {"tool_calls": [{"name": "python", "status": "ok", "injected": False}]})
    assert tool_error_penalty(episode) == 0.0


@pytest.mark.parametrize(
    ("tags", "turns", "expected"),
    [(0, 1, 1.0), (0, 7, 1.0), (1, 1, 0.0), (1, 5, 0.0), (2, 5, 0.2), (3, 2, 1.0), (9, 4, 1.0), (2, 0, 1.0)],
)
def test_p_format_is_the_share_of_turns_with_an_answer_too_many(tags: int, turns: int, expected: float) -> None:
    assert format_penalty(Episode(answer_tags=tags, turns=turns)) == pytest.approx(expected)


def test_a_solution_in_one_turn_has_no_format_penalty() -> None:
    """The released code gives it 1, since it counts turns in a text that lacks the first one's header."""
    assert format_penalty(Episode(answer_tags=1, turns=1)) == 0.0
    assert penalty(Episode(answer_tags=1, turns=1)) == 0.5


@given(
    statuses=st.lists(st.sampled_from(list(ToolStatus)), max_size=8), tags=st.integers(0, 9), turns=st.integers(1, 9)
)
def test_the_penalty_is_the_sum_and_lies_between_zero_and_two(
    statuses: list[ToolStatus], tags: int, turns: int
) -> None:
    episode = Episode(statuses=statuses, answer_tags=tags, turns=turns)
    assert penalty(episode) == tool_error_penalty(episode) + format_penalty(episode)
    assert 0.0 <= penalty(episode) <= 2.0


# Selection ------------------------------------------------------------------------------------------------------------

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


# Keeping all ----------------------------------------------------------------------------------------------------------


def test_keep_all_keeps_the_first_that_are_available() -> None:
    group = [lost(), success(), failure(), lost(), success(), failure()]
    assert choose(KeepAll(), group, 3) == [1, 2, 4]
    assert choose(KeepAll(), group, 9) == [1, 2, 4, 5]


def test_keep_all_rejects_an_all_equal_group_only_on_request() -> None:
    group = [success(), success(errors=3)]
    assert choose(KeepAll(), group, 2) == [0, 1]
    assert choose(KeepAll(reject_equal=True), group, 2) == []
    assert choose(KeepAll(reject_equal=True), [*group, failure()], 3) == [0, 1, 2]


def test_all_equal_is_about_rewards() -> None:
    assert all_equal([])
    assert all_equal([success(), success(errors=4)])
    assert not all_equal([success(), failure()])


def test_selectors_are_found_by_name() -> None:
    assert {"all", "roc"} <= set(SELECTORS.names())
    assert SELECTORS.get("roc") is ResampleOnCorrect
    assert SELECTORS.get("all") is KeepAll


# Stopping early -------------------------------------------------------------------------------------------------------


def test_keep_all_is_settled_by_its_first_ones_and_nothing_later_changes_what_it_keeps() -> None:
    selector = KeepAll()
    group = [success(), lost(), failure(), success(), failure()]
    assert not selector.settled([group[0], None, group[2], group[3], group[4]], 2), "the second may yet count"
    assert not selector.settled([group[0], lost(), None, group[3], None], 2)
    assert selector.settled([group[0], group[1], group[2], None, None], 2)
    assert choose(selector, group, 2) == choose(selector, [*group[:3], failure(), failure()], 2) == [0, 2]


@given(st.lists(st.sampled_from(["success", "failure", "lost", "plays"]), max_size=40), st.integers(1, 16))
def test_keep_all_keeps_the_same_whatever_becomes_of_those_that_still_play(kinds: list[str], keep: int) -> None:
    make = {"success": success, "failure": failure, "lost": lost}
    now = [make[kind]() if kind != "plays" else None for kind in kinds]
    if KeepAll().settled(now, keep):
        best = [episode or success() for episode in now]
        worst = [episode or lost() for episode in now]
        assert choose(KeepAll(), best, keep) == choose(KeepAll(), worst, keep)


def test_roc_is_settled_when_enough_of_both_kinds_have_ended() -> None:
    selector = ResampleOnCorrect(spare=1.5)
    ended = [success()] * 6 + [failure()] * 4
    assert selector.settled([*ended, *[None] * 6], 8)
    assert not selector.settled([*ended[1:], *[None] * 7], 8), "a success too few to choose from"
    assert not selector.settled([*ended[:-1], lost(), *[None] * 6], 8), "what was lost is none"
    assert not selector.settled([success()] * 15 + [None], 8), "it may yet be all equal"
    kept = choose(selector, ended, 8)
    assert len(kept) == 8
    assert counts(ended, kept)[1] >= 3


def test_a_spare_below_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="spare"):
        ResampleOnCorrect(spare=0.5)


@pytest.mark.parametrize(
    ("keep", "spare", "successes", "failures"), [(4, 2.0, 4, 2), (3, 2.0, 3, 2), (3, 1.0, 2, 2), (1, 1.0, 1, 1)]
)
def test_roc_is_settled_by_exactly_so_many(keep: int, spare: float, successes: int, failures: int) -> None:
    """Half of what is kept are failures, and ``spare`` times as many successes; halves are rounded up."""
    selector = ResampleOnCorrect(spare=spare)
    assert selector.settled([*[success()] * successes, *[failure()] * failures, None], keep)
    assert not selector.settled([*[success()] * (successes - 1), *[failure()] * 9, None], keep)
    assert not selector.settled([*[success()] * 9, *[failure()] * (failures - 1), None], keep)


@pytest.mark.parametrize("selector", [ResampleOnCorrect(minimum=0), ResampleOnCorrect("rank", minimum=0)])
def test_a_group_of_one_kind_whose_rewards_differ_is_chosen_from(selector: ResampleOnCorrect) -> None:
    wrong = [Episode(end="answered", reward=reward) for reward in (0.0, 0.5, 0.25)]
    assert len(choose(selector, wrong, 2)) == 2
    assert {at: one["quota"] for at, one in selector.weighed(wrong, 2).items()} == {0: 2, 1: 2, 2: 2}
    right = [Episode(end="answered", reward=reward, correct=True, answer_tags=1) for reward in (1.0, 0.5, 0.25)]
    assert len(choose(selector, right, 2)) == 2


def test_the_format_penalty_of_an_episode_without_turns_is_that_of_one() -> None:
    assert format_penalty(Episode(answer_tags=2, turns=0)) == format_penalty(Episode(answer_tags=2, turns=1)) == 1
    assert format_penalty(Episode(answer_tags=2, turns=2)) == 0.5
    assert format_penalty(Episode(answer_tags=9, turns=2)) == format_penalty(Episode(answer_tags=0, turns=2)) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_rewards_a_billionth_apart_are_equal(sign: int) -> None:
    """The largest is 1e9, so that a range of 1 is the bound."""
    for apart, equal in ((1, True), (2, False)):
        group = [Episode(reward=sign * 1e9), Episode(reward=sign * (1e9 - apart))]
        assert all_equal(group) == equal
    assert all_equal([Episode(reward=0.0)] * 2)
    assert not all_equal([Episode(reward=-1e-12), Episode(reward=1e-12)])


# Importance weights ---------------------------------------------------------------------------------------------------


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
    with pytest.raises(ConfigurationError, match="minimum=0 could drop all successes or all failures"):
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


@pytest.mark.parametrize(("errors", "calls", "tags", "score"), [(0, 4, 1, 1.0), (1, 4, 1, 0.875), (0, 0, 0, 0.25)])
def test_clean_success_takes_half_of_the_penalty_off_a_success(errors, calls, tags, score):
    assert CleanSuccess(no_call=0.5)(success(errors, calls, tags), None) == pytest.approx(score)
    assert CleanSuccess()(success(0, 0), None) == 1, "an episode without a call loses nothing by default"
    assert CleanSuccess(cost=0)(success(errors, calls, tags), None) == 1
    assert CleanSuccess()(failure(errors, 4), None) == 0
