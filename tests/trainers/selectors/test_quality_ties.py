"""``quality_ties``: groups that are all right teach by their calls; every other group is left to another selector."""

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.selectors.quality_ties import QualityTieSelector, tied
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect

OK, BAD = ToolStatus.OK, ToolStatus.EXCEPTION


def played(failed, right=True, calls=4, end="answered"):
    statuses = [BAD] * failed + [OK] * (calls - failed)
    return Episode(statuses=statuses, correct=right, reward=float(right), answer_tags=1, turns=3, end=end)


def chosen(group, keep=4, **options):
    return QualityTieSelector(**options)(group, keep, np.random.default_rng(0))


def test_of_a_group_that_is_all_right_the_cleanest_and_the_least_clean_are_kept():
    group = [played(failed) for failed in (2, 0, 4, 1, 3, 0, 2, 4)]
    assert chosen(group) == [1, 2, 5, 7]
    assert chosen(group, keep=3) == [1, 5, 7], "the odd one is clean"
    assert chosen(group, keep=20) == list(range(8))


def test_where_their_calls_do_not_differ_the_other_selector_decides_and_rejects():
    assert chosen([played(1) for _ in range(8)]) == []
    assert chosen([played(0)]) == []
    assert chosen([played(1) for _ in range(8)], of="all") == [0, 1, 2, 3]


def test_as_soon_as_one_is_wrong_it_is_resample_on_correct():
    group = [played(failed) for failed in (2, 0, 4, 1, 3, 0)] + [played(0, right=False), played(4, right=False)]
    expected = ResampleOnCorrect(mode="rank")(group, 4, np.random.default_rng(0))
    assert chosen(group, of="(roc:mode=rank)") == expected
    assert not tied(group)
    assert not tied([played(failed, right=False) for failed in (0, 1)]), "wrong answers are no reason to call cleanly"


def test_episodes_that_do_not_count_are_never_kept():
    group = [played(0), played(4, end="unavailable"), played(0, right=False, end="unavailable"), played(3)]
    assert chosen(group) == [0, 3]


def test_it_says_why_an_episode_is_left_out():
    group = [played(failed) for failed in (2, 0, 4, 1)]
    assert QualityTieSelector().reasons(group, 2, [1, 2]) == {0: "penalty", 3: "penalty"}
    assert set(QualityTieSelector().reasons([played(1)] * 4, 2, []).values()) == {"equal"}


def test_an_episode_with_the_penalty_of_a_kept_one_is_not_left_out_for_its_penalty():
    group = [played(failed) for failed in (2, 0, 4, 4, 0)]
    assert chosen(group, keep=2) == [1, 3]
    assert QualityTieSelector().reasons(group, 2, [1, 3]) == {0: "penalty", 2: "order", 4: "order"}


def test_right_answers_whose_rewards_differ_are_no_tie():
    group = [played(failed) for failed in (0, 4)]
    assert tied(group)
    group[0].reward = 0.5
    assert not tied(group)
    assert not tied([])


def test_half_of_those_kept_are_the_least_clean():
    group = [played(failed) for failed in (3, 0, 4, 1, 2)]
    assert [chosen(group, keep=keep) for keep in (1, 2, 4, 5, 6)] == [
        [1],
        [1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4],
    ]


def test_equal_rewards_of_right_and_wrong_answers_are_no_tie():
    group = [played(0), played(4, right=False)]
    group[0].reward = group[1].reward = 0.5
    assert not tied(group)


def test_reasons_and_numbers_are_its_own_in_ties_alone_and_lost_episodes_have_no_numbers():
    lost = played(0, right=False, end="unavailable")
    ties = [*(played(failed) for failed in (2, 0, 4)), lost]
    part = QualityTieSelector(of="all")
    assert part.reasons(ties, 2, [1, 2]) == {0: "penalty", 3: "unavailable"}
    assert set(part.weighed(ties, 2)) == {0, 1, 2}
    mixed = [played(0), played(0), played(4, right=False)]
    assert part.reasons(mixed, 2, [0, 1]) == {2: "quota"}
    assert part.weighed(mixed, 2) == {}
