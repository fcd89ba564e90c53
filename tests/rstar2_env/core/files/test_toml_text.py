"""Values as TOML: what is written reads back the same."""

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.files.toml_text import toml_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = TEXT | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.booleans()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_what_is_written_reads_back_the_same(values):
    assert tomllib.loads(toml_text(values)) == values


def test_a_value_that_toml_cannot_say_is_a_comment():
    text = toml_text({"steps": None, "run": {"threads": None, "seed": 1, "nested": {"a": None, "b": [None, 2]}}})
    assert "# steps = none\n" in text
    assert tomllib.loads(text) == {"run": {"seed": 1, "nested": {"b": [2]}}}


@pytest.mark.parametrize("value", [1e-06, 1e300, math.inf, -0.5, 3.0])
def test_a_number_keeps_its_value_and_its_kind(value):
    found = tomllib.loads(toml_text({"x": value}))["x"]
    assert (found, type(found)) == (value, float)
