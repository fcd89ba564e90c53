"""The scores of the package: golden numbers, and what they refuse."""

from pathlib import Path

import pytest

import rstar2_env.rewards as package
from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.rewards import REWARDS, RewardContext, ToolUse, make_component
from rstar2_env.rewards.answer_format import AnswerFormat
from rstar2_env.rewards.cosine_length import CosineLength
from rstar2_env.rewards.environment_return import EnvironmentReturn
from rstar2_env.rewards.overlong import Overlong
from rstar2_env.rewards.unfinished import UnfinishedPenalty
from rstar2_env.rewards.wrong_by_turns import WrongByTurns

CTX = RewardContext()


def test_every_score_of_the_package_has_a_name():
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")}
    assert set(REWARDS.names()) - {"return"} <= files
    assert len(REWARDS.names()) == 24


def test_the_return_is_what_the_environment_paid():
    assert EnvironmentReturn()(Episode(reward=-0.25), CTX) == -0.25


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, 0.0), (16384, 0.0), (18432, -0.5), (20479, -4095 / 4096), (20480, -1.0), (30000, -1.0)]
)
def test_a_long_episode_is_punished_as_in_dapo(tokens, expected):
    episode = Episode(completion_ids=[7] * tokens)
    assert Overlong(20480)(episode, CTX) == pytest.approx(expected)
    assert Overlong(20480, factor=0.5)(episode, CTX) == pytest.approx(expected / 2)


def test_the_penalty_of_deepsearch_grows_over_4096_of_its_16384_tokens():
    for tokens, expected in ((12288, 0.0), (14336, -0.5), (16384, -1.0)):
        assert Overlong(16384, share=0.25)(Episode(completion_ids=[7] * tokens), CTX) == expected


def test_the_tokens_of_the_environment_count_as_the_limit_counts_them():
    assert Overlong(20, buffer=10)(Episode(completion_ids=[7] * 15, mask=[1] * 5 + [0] * 10), CTX) == -0.5


def test_overlong_refuses_what_it_cannot_measure():
    with pytest.raises(ConfigurationError, match=r"counts tokens.*from the wrapper to the rewards"):
        Overlong(20, buffer=10)(Episode(), CTX)
    with pytest.raises(ConfigurationError, match=r"'overlong', the buffer \(4096 tokens\) must not exceed the limit"):
        Overlong(1024, 4096)


@pytest.mark.parametrize("end", ["turns", "tokens", "time", "no_answer", "truncated"])
def test_an_episode_that_a_limit_ended_is_punished(end):
    assert UnfinishedPenalty()(Episode(end=end), CTX) == -0.2
    assert UnfinishedPenalty(penalty=0.5)(Episode(end=end, correct=True), CTX) == -0.5


@pytest.mark.parametrize("end", ["answered", "terminated"])
def test_an_episode_that_ended_by_itself_is_not_punished(end):
    assert UnfinishedPenalty()(Episode(end=end), CTX) == 0.0


def test_what_the_caller_knows_is_filled_in_where_it_is_taken_and_not_written():
    assert make_component("overlong:buffer=16", limit=64).score == Overlong(64, 16)
    assert make_component("overlong:buffer=16,limit=32", limit=64).score == Overlong(32, 16)
    assert make_component("tool_use:each=0.5", limit=64).score == ToolUse(0.5)


def test_a_wrong_answer_costs_less_the_more_turns_were_tried():
    # Turns of both sides: 2, 4, 6, 10, 16.
    scores = [WrongByTurns()(Episode(turns=turns), CTX) for turns in (1, 2, 3, 5, 8)]
    assert scores == pytest.approx([-1.0, -0.9, -0.8, -0.6, -0.6])
    assert WrongByTurns()(Episode(turns=0), CTX) == -1.0
    assert [WrongByTurns()(Episode(turns=turns, correct=True), CTX) for turns in (1, 2, 8)] == [0, 0, 0]


def test_the_tool_bonus_grows_up_to_its_cap():
    def bonus(calls, correct):
        return ToolUse()(Episode(correct=correct, statuses=[ToolStatus.OK] * calls), CTX)

    scores = [bonus(calls, correct=True) for calls in range(8)]
    assert scores == sorted(scores)
    assert scores[0] == 0
    assert scores[-1] == scores[-2] == pytest.approx(0.1)
    assert [bonus(calls, correct=False) for calls in range(8)] == [0] * 8


@pytest.mark.parametrize(("correct", "expected"), [(True, [1, 0.75, 0.5, 0.5]), (False, [-1, -0.75, -0.5, -0.5])])
def test_the_cosine_has_its_golden_values_at_nought_half_and_full_length(correct, expected):
    part = CosineLength(100, of="text")

    def score(length):
        return part(Episode(correct=correct, messages=[Message("assistant", "x" * length)]), CTX)

    assert [score(length) for length in (0, 50, 100, 300)] == pytest.approx(expected)


def test_the_cosine_is_over_the_tokens_of_the_policy_where_nothing_else_is_said():
    part = CosineLength(100)
    assert (part.needs, CosineLength(100, of="text").needs) == ({"tokens"}, frozenset())
    assert part(Episode(correct=True, mask=[1] * 50 + [0] * 50), CTX) == pytest.approx(0.75)


def test_one_answer_is_the_right_format():
    assert [AnswerFormat()(Episode(answer_tags=tags), CTX) for tags in (0, 1, 2)] == [0, 1, 0]


class TestLinearLength:
    """Golden numbers of prime-rl, and whom it lets be."""

    @staticmethod
    def group(rewards, output=(100, 200, 50, 400), total=(150, 260, 90, 500), turns=(2, 4, 1, 5)):
        return [
            Episode(
                reward=reward,
                correct=reward > 0,
                prompt_ids=[5] * 10,
                completion_ids=[7] * (whole - 10),
                mask=[1] * own + [0] * (whole - 10 - own),
                turns=said,
            )
            for reward, own, whole, said in zip(rewards, output, total, turns, strict=True)
        ]

    def test_the_golden_advantages(self):
        group = self.group((1, 1, 0, 0))
        score = REWARDS.get("linear_length")(output=0.25, input=0.1, turns=0.1)
        shaped = [one.reward + score(one, RewardContext(group=group)) for one in group]
        mean = sum(shaped) / 4
        assert [value - mean for value in shaped] == pytest.approx([0.54359, 0.48734, -0.42578, -0.60516], abs=5e-6)

    def test_it_costs_nothing_where_nobody_is_right_and_most_where_everybody_is(self):
        score = REWARDS.get("linear_length")()
        for rewards, most in (((0, 0, 0, 0), 0.0), ((1, 0, 0, 1), -0.225), ((1, 1, 1, 1), -0.45)):
            group = self.group(rewards)
            assert score(group[3], RewardContext(group=group)) == pytest.approx(most)

    def test_every_length_is_a_share_of_the_longest_of_the_group(self):
        group = self.group((1, 1, 1, 1))
        for option, shares in (
            ("output", [0.25, 0.5, 0.125, 1]),
            ("input", [0.5, 0.6, 0.4, 1]),
            ("turns", [0.4, 0.8, 0.2, 1]),
        ):
            score = REWARDS.get("linear_length")(**{"output": 0.0, "input": 0.0, "turns": 0.0, option: 1.0})
            assert [score(one, RewardContext(group=group)) for one in group] == pytest.approx([-s for s in shares])

    def test_a_weight_below_zero_and_an_episode_without_tokens_are_refused(self):
        with pytest.raises(ConfigurationError, match="output must be"):
            REWARDS.get("linear_length")(output=-1)
        with pytest.raises(ConfigurationError, match="this episode has no token ids"):
            REWARDS.get("linear_length")()(Episode(turns=1), CTX)
