"""A module with one boundary that its checks forget, for the tests of ``tools/mutate.py``."""

BOUND = 2


def clipped(value: float) -> float:
    return min(value, BOUND)


def rest(count: int) -> int:
    while count > 1:
        count -= 2
    return count


class Grade:
    factor = 3

    def passed(self, points: float) -> bool:
        return self.factor * points > 6
