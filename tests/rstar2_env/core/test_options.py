"""Claims about options given by name."""

from __future__ import annotations

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import call_with_options, parse_options


def test_values_that_are_json_are_read_as_such_and_others_as_text():
    read = parse_options(["a=3", "b=true", "c=[1, 2]", "d=text=more", "e=", "f=0.5", 'g="3"'])
    assert read == {"a": 3, "b": True, "c": [1, 2], "d": "text=more", "e": "", "f": 0.5, "g": "3"}


@pytest.mark.parametrize("pair", ["a", "=3", "a-b=3", "3=a", ""])
def test_what_is_no_pair_is_refused(pair):
    with pytest.raises(ConfigurationError, match="name=value"):
        parse_options([pair])


def test_a_name_that_comes_twice_is_refused():
    with pytest.raises(ConfigurationError, match="'a' is given twice"):
        parse_options(["a=1", "a=2"])


def test_an_unknown_option_names_the_nearest_and_the_known_ones():
    def part(level: int = 1, split: str = "train") -> int:
        return level

    assert call_with_options("part 'x'", part, {"level": 3}) == 3
    with pytest.raises(ConfigurationError, match=r"part 'x'.*Did you mean 'level'.*level, split"):
        call_with_options("part 'x'", part, {"levl": 3})


def test_a_type_error_inside_the_part_is_not_blamed_on_the_options():
    def part() -> None:
        raise TypeError("our own")

    with pytest.raises(TypeError, match="our own"):
        call_with_options("part", part, {})
