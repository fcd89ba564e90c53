"""A text that is added to the first message, and to nothing else."""

import pytest
from wrapper_env import answer, make

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.wrappers import wrap


@pytest.mark.parametrize("first", [False, True])
def test_the_text_stands_after_or_before_the_first_message(first):
    plain, asked = make(), wrap(make(), [["instruction", {"text": "Write a plan.", "first": first}]])
    message, info = plain.reset(seed=3)
    expected = f"Write a plan.\n\n{message}" if first else f"{message}\n\nWrite a plan."
    assert asked.reset(seed=3) == (expected, info)
    assert asked.step(answer("x")) == plain.step(answer("x"))


def test_an_empty_text_is_refused():
    with pytest.raises(ConfigurationError, match="it is empty"):
        wrap(make(), [["instruction", {"text": " "}]])
