"""Alphametics (``SEND + MORE = MONEY``): rules and a solver. Not covered: other operations than addition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def holds(addends: Sequence[str], total: str, digits: Mapping[str, int]) -> bool:
    """Whether different letters have different digits, no word begins with 0, and the sum comes out."""
    words = [*addends, total]
    if len(set(digits.values())) < len(digits) or any(digits[word[0]] == 0 for word in words):
        return False
    *parts, whole = (int("".join(str(digits[letter]) for letter in word)) for word in words)
    return sum(parts) == whole


def solutions(addends: Sequence[str], total: str) -> Iterator[dict[str, int]]:
    """Every solution: column after column from the right, where the sum's digit follows from the others."""
    width = max(len(total), *map(len, addends))
    columns = [[word[-place] for word in addends if place <= len(word)] for place in range(1, width + 1)]
    sums = [total[-place] if place <= len(total) else "" for place in range(1, width + 1)]
    leading = {word[0] for word in [*addends, total]}
    digits: dict[str, int] = {}

    def fill(place: int, at: int, so_far: int, used: int) -> Iterator[dict[str, int]]:
        if place == width:
            if so_far == 0:
                yield dict(digits)
            return
        column = columns[place]
        while at < len(column) and column[at] in digits:
            so_far += digits[column[at]]
            at += 1
        if at < len(column):
            letter = column[at]
            for digit in range(letter in leading, 10):
                if not used >> digit & 1:
                    digits[letter] = digit
                    yield from fill(place, at + 1, so_far + digit, used | 1 << digit)
                    del digits[letter]
            return
        carry, digit = divmod(so_far, 10)
        letter = sums[place]
        if letter == "":
            if digit == 0:
                yield from fill(place + 1, 0, carry, used)
        elif letter in digits:
            if digits[letter] == digit:
                yield from fill(place + 1, 0, carry, used)
        elif not used >> digit & 1 and not (digit == 0 and letter in leading):
            digits[letter] = digit
            yield from fill(place + 1, 0, carry, used | 1 << digit)
            del digits[letter]

    yield from fill(0, 0, 0, 0)


def is_unique(addends: Sequence[str], total: str) -> bool:
    """Whether there is exactly one solution."""
    found = solutions(addends, total)
    return next(found, None) is not None and next(found, None) is None


def interchangeable(addends: Sequence[str], total: str) -> bool:
    """Whether two letters weigh the same in the sum, so that swapping them gives a second solution.

    A cheap test before the solver: most sums at random fail it. Letters that differ in whether they may be 0 are not
    compared, since one of the two orders may then be out.
    """
    weights: dict[str, int] = {}
    for sign, words in ((1, addends), (-1, [total])):
        for word in words:
            for place, letter in enumerate(reversed(word)):
                weights[letter] = weights.get(letter, 0) + sign * 10**place
    leading = {word[0] for word in [*addends, total]}
    kinds = [(weight, letter in leading) for letter, weight in weights.items()]
    return len(set(kinds)) < len(kinds)
