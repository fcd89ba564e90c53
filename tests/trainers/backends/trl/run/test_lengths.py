"""An engine that would cut episodes short of their budget is refused before anything is played."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from letter_env import LetterEnv

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.trl.run.lengths import check_fits, check_lengths
from rstar2_env.trainers.base import TRAINERS

CHAT = SimpleNamespace(prompt=lambda system, text: list(range(100)))


def check(longest, positions=None, **options):
    config = TRAINERS.get("grpo_clip_higher").configure(
        {"model": "m", "env": LetterEnv, "max_episode_tokens": 400, **options}
    )
    check_lengths(config, SimpleNamespace(max_model_len=longest), CHAT, positions)


def test_a_prompt_and_the_longest_episode_must_fit_into_the_engines_conversations():
    check(500)
    check(None)
    with pytest.raises(ConfigurationError, match=r"500 tokens .*rollout.max_episode_tokens=400"):
        check(499)


def test_a_longer_budget_of_the_evaluation_must_fit_too():
    check(500, eval={"max_episode_tokens": 450})
    check(550, eval={"max_episode_tokens": 450, "every": 1})
    with pytest.raises(ConfigurationError, match=r"eval.max_episode_tokens=450.* lower .* to 449"):
        check(549, eval={"max_episode_tokens": 450, "every": 1})


def test_an_environment_that_cannot_start_is_left_to_the_first_rollout():
    class Broken(LetterEnv):
        def reset(self, **options):
            raise OSError("not today")

    check(401, env=Broken)


def test_more_positions_than_the_model_was_made_for_are_told(caplog):
    with caplog.at_level(logging.WARNING):
        check(None, positions=500)
        assert not caplog.records
        check(None, positions=499)
    assert "at most 499 tokens, but an episode may have 500" in caplog.text


def test_limits_that_a_hook_raises_beyond_the_engine_are_refused():
    check_fits(99, SimpleNamespace(max_model_len=100))
    with pytest.raises(ConfigurationError, match="the engine accepts at most 100"):
        check_fits(100, SimpleNamespace(max_model_len=100))
