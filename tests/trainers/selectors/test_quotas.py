"""How many successes and failures Resample-on-Correct keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.selectors.resample_on_correct import quotas

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
        with pytest.raises(ConfigurationError, match="must keep at least 1 episode"):
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
        with pytest.raises(ConfigurationError, match="must keep at least 1 episode"):
            quotas(4, 4, keep, minimum=minimum)
