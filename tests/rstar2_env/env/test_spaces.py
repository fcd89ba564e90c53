"""UnicodeText holds any string up to a length, and batches loudly where it cannot."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.env.spaces import UnicodeText


@given(st.text(max_size=200))
def test_every_string_that_is_short_enough_belongs(text):
    assert text in UnicodeText(200)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "😀" * 5, "\n", np.str_("numpy")])
def test_odd_strings_belong(text):
    assert text in UnicodeText(10)


@pytest.mark.parametrize("thing", ["x" * 11, b"bytes", 7, None, ["a"], np.array(["a"])])
def test_longer_strings_and_other_things_do_not(thing):
    assert thing not in UnicodeText(10)


@given(st.integers(0, 2**32 - 1), st.integers(1, 100))
def test_samples_belong_and_can_be_encoded(seed, length):
    space = UnicodeText(length, seed=seed)
    for _ in range(5):
        sample = space.sample()
        assert sample in space
        sample.encode("utf-8")


def test_samples_follow_the_seed():
    one, two = UnicodeText(seed=3), UnicodeText(seed=3)
    assert [one.sample() for _ in range(10)] == [two.sample() for _ in range(10)]
    assert len({UnicodeText(seed=seed).sample() for seed in range(50)}) > 40


def test_samples_are_not_ascii_alone():
    assert not all(UnicodeText(seed=seed).sample().isascii() for seed in range(20))


@pytest.mark.parametrize("option", ["mask", "probability"])
def test_a_mask_is_refused_rather_than_ignored(option):
    with pytest.raises(ValueError, match="does not accept mask or probability"):
        UnicodeText().sample(**{option: 1})


@pytest.mark.parametrize("length", [0, -1, 2.5, "10", None])
def test_a_length_that_is_no_positive_integer_is_refused(length):
    with pytest.raises(ValueError, match="positive integer"):
        UnicodeText(length)


def test_spaces_of_one_length_are_equal_and_hash_alike():
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6)
    assert UnicodeText(5) != gym.spaces.Text(5)
    assert len({UnicodeText(5), UnicodeText(5)}) == 1


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))])
def test_a_copy_is_equal_and_samples_on(twin):
    space = UnicodeText(50, seed=1)
    space.sample()
    copied = twin(space)
    assert copied == space
    assert copied.sample() == space.sample()


def test_it_is_small_when_pickled():
    assert len(pickle.dumps(UnicodeText())) < 500


def test_samples_go_to_json_and_back():
    space = UnicodeText(seed=1)
    samples = [space.sample() for _ in range(3)]
    assert space.from_jsonable(space.to_jsonable(samples)) == samples


def test_a_batch_is_a_tuple_of_texts():
    batch = batch_space(UnicodeText(5), 3)
    assert isinstance(batch, gym.spaces.Tuple)
    assert ("a", "b", "é") in batch


def test_it_cannot_be_flattened_into_an_array():
    assert not UnicodeText().is_np_flattenable
