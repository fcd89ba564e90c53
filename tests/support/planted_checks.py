"""The checks of ``planted.py``, which pytest runs only where the file is named: no points are exactly enough."""

from planted import Grade, clipped, rest


def test_all_but_one_boundary() -> None:
    assert [clipped(one) for one in (1, 3)] == [1, 2]
    assert [rest(one) for one in (0, 1, 2, 5)] == [0, 1, 0, 1]
    assert [Grade().passed(points) for points in (1.9, 3, 2.1)] == [False, True, True]
