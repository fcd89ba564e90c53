"""What the policy is shown is cut where asked, between tags that stay whole."""

import pytest
from wrapper_env import answer, call, make

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.wrappers import ObservationLimit, UnaryFeedback


class Words:
    def encode(self, text, /, *, add_special_tokens=True):
        return text.split(" ")

    def decode(self, ids, /):
        return " ".join(ids)


@pytest.mark.parametrize(
    ("cut", "body"),
    [
        ("middle", "ab\n[... 4 characters left out ...]\ngh"),
        ("tail", "abcd\n[... 4 characters left out ...]"),
        ("head", "[... 4 characters left out ...]\nefgh"),
    ],
)
def test_the_part_that_was_named_is_left_out(cut, body):
    env = ObservationLimit(make("abcdefgh"), 4, cut=cut)
    env.reset(seed=1)
    shown, *_, info = env.step(call())
    assert shown == f"<tool_response>\n{body}\n</tool_response>"
    assert info["tool_calls"][0]["truncated"] is True


@pytest.mark.parametrize("cut", ["head", "middle", "tail"])
def test_tokens_are_counted_with_a_tokenizer(cut):
    env = ObservationLimit(make("one two three four five six"), 2, cut=cut, tokenizer=Words())
    env.reset(seed=1)
    shown, *_ = env.step(call())
    assert "4 tokens left out" in shown
    kept = {"head": "five six", "tail": "one two", "middle": "one\n"}
    assert kept[cut] in shown


def test_short_results_stay_as_they_are():
    env = ObservationLimit(make("abcd"), 4, cut="head")
    env.reset(seed=1)
    shown, *_, info = env.step(call())
    assert shown == "<tool_response>\nabcd\n</tool_response>"
    assert info["tool_calls"][0]["truncated"] is False


def test_an_observation_without_results_is_cut_as_a_whole_and_the_question_never():
    env = ObservationLimit(UnaryFeedback(make(), feedback="no " * 50), 10)
    question, _ = env.reset(seed=1)
    assert "left out" not in question
    shown, *_, info = env.step(answer("wrong"))
    assert "140 characters left out" in shown
    assert info["observation_left_out"] == 140


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 2.5}, {"limit": 5, "cut": "nose"}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        ObservationLimit(make(), **options)
