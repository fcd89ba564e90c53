"""The plan of an evaluation: tasks are made on demand, and the number of episodes is bounded."""

from __future__ import annotations

import itertools

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.play.plan import EvaluationPlan, plan_of
from rstar2_env.problems import Problem


def test_a_plan_of_twenty_million_episodes_draws_a_problem_when_it_is_played():
    numbers = itertools.count()
    problems = (Problem(id=str(number), question="1 + 1?", answer="2") for number in numbers)
    plan = EvaluationPlan(problems, 20_000_000, seed=0)
    assert len(plan) == 20_000_000
    assert [plan[index].problem_id for index in (0, 1, 2)] == ["0", "1", "2"]
    assert next(numbers) == 3


def test_a_number_of_episodes_that_cannot_be_played_is_refused():
    with pytest.raises(ConfigurationError, match="times the number of samples of each must be at most"):
        plan_of(None, 10**9, seed=0, samples=2)
