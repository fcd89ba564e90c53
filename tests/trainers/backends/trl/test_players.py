"""The players of a run: evaluation overrides the training options, and gold answers come from the training problems."""

import pytest
from letter_env import LetterEnv

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import FixedSource, Problem
from rstar2_env.rollout import EpisodeRequest
from rstar2_env.trainers.backends.trl import players
from rstar2_env.trainers.backends.trl.players import gold_answers
from rstar2_env.trainers.base import TRAINERS

ASKED = [{"id": "q1", "question": "6 times 7?", "answer": "42"}]


def config(env, **options):
    return TRAINERS.get("igpo").configure({"model": "m", "env": env, "env_options": options})


def test_the_answer_of_a_problem_is_found_by_its_id():
    assert gold_answers(config("rstar2/MathTool-v0", problems=ASKED))("q1") == "42"


def test_a_problem_without_an_answer_is_refused(monkeypatch):
    """As a source of one's own may have."""
    source = FixedSource([Problem("q2", "Why?", " ")])
    monkeypatch.setattr(players, "problem_source", lambda config, split: source)
    with pytest.raises(ConfigurationError, match="'q2' does not have one"):
        gold_answers(config("rstar2/MathTool-v0", problems=ASKED))("q2")


def test_an_environment_without_problems_is_refused_before_anything_is_played():
    with pytest.raises(ConfigurationError, match=r"not have a source of problems: choose .*, such as rstar2/MathTool"):
        gold_answers(config(LetterEnv))


@pytest.mark.train
def test_an_evaluation_during_training_plays_at_its_own_temperature_and_budgets(letter_options):
    held_out = {"every": 1, "episodes": 2, "temperature": 0.0, "max_episode_tokens": 12, "max_turn_tokens": 1}
    requests = [EpisodeRequest(group=0, seed=1, sampling_seed=seed) for seed in range(6)]

    def played(player):
        return [tuple(episode.completion_ids) for episode in player.play(requests)]

    trainer = trainers.make("grpo", **letter_options, eval=held_out)
    try:
        sampled, greedy = played(trainer.play.train), played(trainer.play.evaluation)
        budgets = [player.budget for player in (trainer.play.train, trainer.play.evaluation)]
    finally:
        trainer.close()
    assert len(set(greedy)) == 1 < len(set(sampled))
    assert [(budget.tokens, budget.turn_tokens) for budget in budgets] == [(16, 2), (12, 1)]
