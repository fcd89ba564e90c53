"""Alphametics (``SEND + MORE = MONEY``): rules, a solver, random sums, answers. Only addition is covered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rstar2_env.worlds.puzzle import UnreadableAnswerError
from rstar2_env.worlds.reading import plain

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BATCH = 128
_PAIR = re.compile(r"([A-Z]) ?(?:=|:|->|→|\\to|\\rightarrow)? ?([0-9])(?![0-9])")
_BETWEEN = re.compile(r"(?:[\s,;.{}()\[\]]|\band\b)*", re.IGNORECASE)


def holds(addends: Sequence[str], total: str, digits: Mapping[str, int]) -> bool:
    """Whether different letters have different digits, no word begins with 0, and the sum is right.

    Args:
        addends: The words to add.
        total: The word for their sum.
        digits: The digit of each letter.
    """
    words = [*addends, total]
    if len(set(digits.values())) < len(digits) or any(digits[word[0]] == 0 for word in words):
        return False
    *parts, whole = (int("".join(str(digits[letter]) for letter in word)) for word in words)
    return sum(parts) == whole


def solutions(addends: Sequence[str], total: str) -> Iterator[dict[str, int]]:
    """Yield every solution. The search goes from right to left; in a column, the addends determine the sum's digit."""
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
    """Whether the sum of words has exactly one solution."""
    if interchangeable(addends, total):
        return False
    found = solutions(addends, total)
    return next(found, None) is not None and next(found, None) is None


def interchangeable(addends: Sequence[str], total: str) -> bool:
    """Whether two letters have the same weight (total place value), so that swapping them gives a second solution.

    This check is cheaper than the solver, and most random sums have such letters. A letter that begins a word cannot be
    0, so swapping it with a letter that begins no word may be invalid: such pairs are not counted.
    """
    weights: dict[str, int] = {}
    for sign, words in ((1, addends), (-1, [total])):
        for word in words:
            for place, letter in enumerate(reversed(word)):
                weights[letter] = weights.get(letter, 0) + sign * 10**place
    leading = {word[0] for word in [*addends, total]}
    kinds = [(weight, letter in leading) for letter, weight in weights.items()]
    return len(set(kinds)) < len(kinds)


def random_sums(addends: int, length: int, letters: int, rng: np.random.Generator) -> Iterator[tuple[list[int], int]]:
    """Draw a batch of random sums, and yield the sums that contain exactly ``letters`` different digits.

    Args:
        addends: Number of addends.
        length: Number of digits of each addend.
        letters: Number of different digits in the addends and their total together.
        rng: The generator of random numbers.

    Yields:
        The addends and their total.
    """
    least = 10 ** (length - 1)
    numbers = rng.integers(least, 10 * least, size=(_BATCH, addends))
    sums = np.column_stack([numbers, numbers.sum(axis=1)])
    # The digits of each sum as a set of bits; the sum may have one digit more than its addends.
    places = 10 ** np.arange(length + 1)
    digits = np.where(sums[..., None] >= places, 1 << (sums[..., None] // places % 10), 0)
    masks = np.bitwise_or.reduce(digits.reshape(_BATCH, -1), axis=1)
    for row in np.flatnonzero([int(mask).bit_count() == letters for mask in masks]):
        *parts, whole = sums[row].tolist()
        yield parts, whole


def encoded(parts: Sequence[int], whole: int, rng: np.random.Generator) -> tuple[list[str], str, dict[str, int]]:
    """Replace the digits of a sum with random letters.

    Args:
        parts: The addends.
        whole: Their sum.
        rng: The generator of random numbers.

    Returns:
        The words of the addends, the word of the sum, and the digit of each letter, sorted by letter.
    """
    chosen = [_ALPHABET[int(place)] for place in rng.permutation(len(_ALPHABET))[:10]]
    *addends, total = ("".join(chosen[int(digit)] for digit in str(number)) for number in (*parts, whole))
    return addends, total, {letter: chosen.index(letter) for letter in letters_of(addends, total)}


def letters_of(addends: Sequence[str], total: str) -> list[str]:
    """The letters of a sum, sorted."""
    return sorted({*"".join(addends), *total})


def written(digits: Mapping[str, int]) -> str:
    """Write the digit of each letter in the form of an answer: ``A=1, B=7``."""
    return ", ".join(f"{letter}={digit}" for letter, digit in digits.items())


def read_digits(answer: str, addends: Sequence[str], total: str) -> dict[str, int]:
    """Read an answer that assigns a digit to every letter.

    Args:
        answer: The policy's answer.
        addends: The words to add.
        total: The word for their sum.

    Raises:
        UnreadableAnswerError: The answer does not assign exactly one digit to every letter.
    """
    text = " ".join(plain(answer).split())
    pairs = _PAIR.findall(text)
    letters = letters_of(addends, total)
    if not _BETWEEN.fullmatch(_PAIR.sub(" ", text)) or sorted(letter for letter, _ in pairs) != letters:
        raise UnreadableAnswerError(f"expected a digit for each of {', '.join(letters)}, got {answer[:80]!r}")
    return {letter: int(digit) for letter, digit in pairs}


def random_digits(addends: Sequence[str], total: str, rng: np.random.Generator) -> dict[str, int]:
    """Assign random digits to the letters: different letters get different digits, and no word begins with 0.

    Args:
        addends: The words to add.
        total: The word for their sum.
        rng: The generator of random numbers.
    """
    leading = {word[0] for word in (*addends, total)}
    while True:
        digits = dict(zip(letters_of(addends, total), rng.permutation(10).tolist(), strict=False))
        if all(digits[letter] for letter in leading):
            return digits
