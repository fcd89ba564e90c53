"""An evaluation that fails in one process ends in all of them; no process waits for the episodes of another."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

from letter_env import LetterEnv

from rstar2_env.core.episode import Episode
from rstar2_env.testing.training.processes import in_each
from rstar2_env.trainers.backends.trl.run.run import TrlRun
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.ranks import OtherProcessError


class Plays:
    """The evaluation player of one process."""

    def __init__(self, *, fails):
        self.fails, self.played = fails, []

    def play(self, requests):
        if self.fails:
            raise ValueError("no engine")
        self.played += [request.group for request in requests]
        return [Episode(group=request.group, reward=1.0, correct=True, end="answered") for request in requests]


def evaluations(*fails):
    """What each process of an evaluation of five episodes returns or raises, with its player."""
    config = TRAINERS.get("grpo").configure({"model": "m", "env": LetterEnv, "eval": {"episodes": 5}}, {})
    players = [Plays(fails=one) for one in fails]

    def evaluate(ranks):
        setup = SimpleNamespace(config=config, ranks=ranks)
        play = SimpleNamespace(evaluation=players[ranks.rank])
        rollouts = SimpleNamespace(evaluating=nullcontext)
        recorder = SimpleNamespace(write_held_out=lambda episodes: None)
        return TrlRun(setup, None, play, rollouts, recorder, None, None).evaluate()

    return in_each(len(fails), evaluate), players


def test_the_episodes_are_divided_and_every_process_has_the_figures_of_all():
    found, players = evaluations(False, False)
    assert sorted(players[0].played + players[1].played) == [0, 1, 2, 3, 4]
    assert all(figures["pass_rate"] == 1.0 and figures["episodes"] == 5 for figures in found)


def test_a_failure_in_one_process_ends_the_others():
    (first, second, third), _ = evaluations(False, True, False)
    assert isinstance(second, ValueError)
    for other in (first, third):
        assert isinstance(other, OtherProcessError)
        assert str(other) == "Process 1 of 3 failed: ValueError: no engine"
