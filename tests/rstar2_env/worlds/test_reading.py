"""What only sets an answer in type is taken off it, and nothing else is."""

import pytest

from rstar2_env.worlds import plain
from rstar2_env.worlds.reading import unquoted


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("abc", "abc"),
        ("  $abc$ \n", "abc"),
        ("\\text{abc}", "abc"),
        ("\\texttt{a\\_b}, \\mathrm{c}", "a_b, c"),
        ("a\\,b\\quad{}c~d", "a b {}c d"),
        ("\\frac{1}{2}", "\\frac{1}{2}"),
        ("a-b|c«d»", "a-b|c«d»"),
        ("1\\\\ 2", "1\\\\ 2"),
        ("", ""),
    ],
)
def test_plain(answer, text):
    assert plain(answer) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('"abc"', "abc"),
        ("'abc'", "abc"),
        ("“abc”", "abc"),
        ("``abc''", "abc"),
        ('""', ""),
        ('"', '"'),
        ("'abc\"", "'abc\""),
        ("«abc»", "«abc»"),
        ("abc", "abc"),
    ],
)
def test_unquoted(answer, text):
    assert unquoted(answer) == text
