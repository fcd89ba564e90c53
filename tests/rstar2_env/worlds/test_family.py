"""Knobs check themselves, and name the family that they make."""

from dataclasses import dataclass

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.worlds import Family, knob


@dataclass(frozen=True)
class Rivers(Family):
    """Rivers."""

    name = "rivers"
    random_baseline = 0.0
    length: int = knob(5, 2, 9)
    depth: float = knob(0.5, 0, 1)
    salty: bool = knob(False)
    colour: str = knob("blue", choices=("blue", "green"))
    bridges: int = knob(3, 1)


def test_the_defaults_are_the_familys_name_alone():
    assert Rivers().named() == Rivers().named(seed=0) == "rivers"
    assert Rivers.defaults() == Rivers().knobs


def test_what_differs_from_the_defaults_is_in_the_name_sorted():
    assert Rivers(salty=True, depth=1).named(seed=2) == "rivers:depth=1,salty=True,seed=2"


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"length": 1}, "length must be an integer from 2 to 9, not 1"),
        ({"length": 2.0}, "must be an integer"),
        ({"length": True}, "must be an integer"),
        ({"depth": 1.5}, "depth must be a number from 0 to 1, not 1.5"),
        ({"depth": "0"}, "must be a number"),
        ({"depth": float("nan")}, "must be a finite number from 0 to 1, not nan"),
        ({"salty": 1}, "salty must be true or false, not 1"),
        ({"colour": "red"}, "colour must be one of 'blue', 'green', not 'red'"),
        ({"bridges": 0}, "bridges must be an integer of at least 1, not 0"),
        ({"lenght": 3}, "Did you mean 'length'"),
    ],
)
def test_a_knob_that_makes_no_sense_is_refused_by_name(knobs, told):
    with pytest.raises(ConfigurationError, match=told):
        Rivers.with_knobs(knobs)


def test_whole_numbers_do_for_a_knob_that_is_a_number():
    assert Rivers(depth=1).depth == 1
    assert Rivers(bridges=10**9).bridges == 10**9
