"""Claims about the figures of many episodes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.figures.summary import ratio, summarize

OK, ERROR, LOST = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE


def episode(name: str, correct: bool, *statuses: ToolStatus, **fields: object) -> Episode:
    done = {"end": "answered", "turns": len(statuses) + 1, "answer_tags": 1, **fields}
    return Episode(problem_id=name, correct=correct, reward=float(correct), statuses=list(statuses), **done)


def test_an_unavailable_episode_is_in_no_figure_but_its_own():
    summary = summarize([episode("a", True, OK), episode("b", False, LOST, end="unavailable", answer_tags=0)])
    assert (summary.episodes, summary.unavailable) == (1, 1)
    assert summary.pass_rate.value == 1.0
    assert summary.reward.value == 1.0
    assert summary.turns.value == 2.0
    assert summary.broken_formats.value == 0.0
    assert summary.statuses == {"ok": 1}
    assert summary.ends == {"answered": 1, "unavailable": 1}


def test_a_cancelled_episode_is_no_failure_and_in_no_other_figure():
    summary = summarize([episode("a", True, OK), episode("a", False, ERROR, end="cancelled")])
    assert (summary.episodes, summary.unavailable, summary.cancelled) == (1, 0, 1)
    assert (summary.pass_rate.value, summary.tool_error_share.value) == (1.0, 0.0)


def test_the_share_of_tool_errors_is_over_calls_in_all_and_in_correct_episodes():
    summary = summarize([episode("a", True, ERROR, OK, OK), episode("b", False, ERROR), episode("c", True, OK)])
    assert summary.tool_error_share.value == pytest.approx(2 / 5)
    assert summary.tool_error_share.count == 5
    assert summary.tool_error_share_correct.value == pytest.approx(1 / 4)


def test_injected_faults_are_counted_apart():
    summary = summarize([episode("a", True, OK, injected=[ToolStatus.TIMEOUT])])
    assert summary.tool_error_share.value == 0.0
    assert summary.injected == {"timeout": 1}
    assert summary.statuses == {"ok": 1}


def test_no_answer_and_two_answers_are_broken_formats():
    summary = summarize([episode("abcd"[tags], True, answer_tags=tags) for tags in (0, 1, 2, 1)])
    assert summary.broken_formats.value == 0.5


def test_the_error_of_a_mean_is_that_of_the_textbook():
    values = [1.0, 0.0, 0.0, 1.0, 1.0]
    found = ratio(np.array(values), np.ones(5))
    assert found.value == pytest.approx(0.6)
    assert found.error == pytest.approx(np.std(values, ddof=1) / math.sqrt(5))


def test_episodes_of_one_problem_count_as_one_observation_in_the_error():
    once = summarize([episode(str(n), n % 2 == 0) for n in range(20)])
    four_times = summarize([episode(str(n % 20), n % 2 == 0) for n in range(80)])
    assert four_times.pass_rate.error == pytest.approx(once.pass_rate.error)


def test_the_error_of_a_share_of_calls_covers_the_truth_as_often_as_it_should():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        # Errors within an episode belong together: each episode has a rate of its own, 0.2 on average.
        rates = rng.beta(1, 4, size=200)
        calls = rng.integers(1, 6, size=200)
        share = ratio(rng.binomial(calls, rates), calls)
        assert share.value is not None
        assert share.error is not None
        covered += abs(share.value - 0.2) < 1.96 * share.error
    assert 0.91 < covered / 400 < 0.98


@pytest.mark.parametrize("episodes", [[], [episode("a", True)]])
def test_without_calls_or_episodes_there_is_no_figure_rather_than_a_zero(episodes):
    summary = summarize(episodes)
    assert summary.tool_error_share.value is None
    assert summary.pass_rate.error is None
    json.dumps(summary.to_dict())
