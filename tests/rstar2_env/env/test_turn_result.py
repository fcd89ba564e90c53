"""What an environment of one's own overrides, and what ToolEnv does with what it returns."""

import pytest
from toy_turns import GOLD, RIGHT, WRONG, call

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.env.turn_result import Ended, GoesOn
from rstar2_env.testing import ToyEnv, check_text_env


class TalkingEnv(ToyEnv):
    """Goes on after a wrong answer, pays by the tries, and refuses the answer 13."""

    def begin(self, options):
        self.begun = dict(options)
        if self.problem.answer == "13":
            raise ConfigurationError("13 is unlucky.")
        self.tries = 0

    def answer_turn(self, turn):
        self.tries += 1
        ended = super().answer_turn(turn)
        if ended.correct:
            return Ended(ended.answer, 1 / self.tries, True, info={"said": turn})
        return GoesOn("Wrong, \ud800 once more.", {"hint": 5 - self.tries})

    def end_info(self, end):
        return {"tries": self.tries, "ended": end}


class PolyglotEnv(TalkingEnv):
    """Asks for an answer in every turn."""

    def answer_tags(self):
        return self.dialect.answer_tags(self.turns[-1:])


def test_it_keeps_the_contract():
    check_text_env(lambda: TalkingEnv(max_turns=4), actions=[WRONG, RIGHT])


def test_an_answer_may_go_on_and_shows_a_text_that_a_tokenizer_takes():
    env = TalkingEnv()
    env.reset(seed=1, **GOLD)
    text, reward, terminated, truncated, info = env.step(WRONG)
    assert (text, reward, terminated, truncated) == ("Wrong, ? once more.", 0.0, False, False)
    assert info == {"role": "user", "tool_calls": [], "answer_tags": 1, "hint": 4}
    assert env.turns == (WRONG,)


def test_an_end_has_its_own_reward_and_its_own_words_in_info():
    env = TalkingEnv()
    env.reset(seed=1, **GOLD)
    env.step(WRONG)
    text, reward, terminated, truncated, info = env.step(RIGHT)
    assert (text, reward, terminated, truncated) == ("", 0.5, True, False)
    assert (info["end"], info["answer"], info["correct"], info["answer_tags"]) == ("answered", "10", True, 2)
    assert (info["said"], info["tries"], info["ended"]) == (RIGHT, 2, "answered")


@pytest.mark.parametrize("last", [WRONG, call()])
def test_a_budget_holds_also_where_an_answer_goes_on_and_end_info_is_told(last):
    env = TalkingEnv(max_turns=2)
    env.reset(seed=1, **GOLD)
    env.step(WRONG)
    text, reward, terminated, truncated, info = env.step(last)
    assert (text, reward, terminated, truncated, info["end"]) == ("", 0.0, False, True, "turns")
    assert info["ended"] == "turns"


def test_a_text_that_is_too_long_is_cut():
    env = TalkingEnv(max_text=1024)
    env.answer_turn = lambda turn: GoesOn("x" * 5000)
    env.reset(seed=1, **GOLD)
    text, *_ = env.step(WRONG)
    assert text in env.observation_space
    assert "left out" in text


def test_begin_is_told_the_options_and_may_refuse_the_problem():
    env = TalkingEnv()
    env.reset(seed=1, **GOLD)
    assert env.begun == {"problem_id": "p5"}
    with pytest.raises(ConfigurationError, match="unlucky"):
        env.reset(seed=1, options={"problem": {"question": "What is 6 + 7?", "answer": "13"}})
    with pytest.raises(EpisodeOverError):
        env.step(RIGHT)


def test_answer_tags_may_be_counted_otherwise():
    env = PolyglotEnv()
    env.reset(seed=1, **GOLD)
    assert [env.step(turn)[4]["answer_tags"] for turn in (WRONG, WRONG, RIGHT)] == [1, 1, 1]


def test_an_environment_with_neither_a_grader_nor_an_answer_turn_is_refused():
    assert ToyEnv(grader=lambda problem, answer: None)
    with pytest.raises(ConfigurationError, match="answer_turn"):
        ToyEnv(grader=None)
    assert isinstance(PolyglotEnv(), ToolEnv)
