"""Claims about what is kept of each episode, and how problems are told apart."""

from __future__ import annotations

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.episode_metrics import repetition
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.figures.summary import summary_of
from rstar2_env.evaluation.figures.tally import About, EpisodeTally, difficulty_of
from rstar2_env.problems import Problem

OK, ERROR, LOST = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE


def episode(problem: str = "", **fields: object) -> Episode:
    done = {"end": "answered", "turns": 1, "answer_tags": 1, **fields}
    return Episode(problem_id=problem, **done)


def said(*turns: str) -> Episode:
    return Episode(messages=[Message("user", "a b c d a b c d"), *(Message("assistant", turn) for turn in turns)])


def test_repetition_is_the_share_of_sequences_of_four_words_that_stood_before():
    assert repetition(said("a b c d e f")) == 0.0
    # Six sequences, of which "a b c d" comes three times.
    assert repetition(said("a b c d a b c d", "a b c d")) == pytest.approx(1 / 6 + 1 / 6)
    assert repetition(said("too short")) == repetition(said()) == 0.0


def test_episodes_of_a_problem_add_up_and_those_without_an_id_by_their_start():
    tally = EpisodeTally()
    for sample in range(3):
        tally.add(episode("p", correct=sample == 0), About(start=7))
        tally.add(episode(correct=True), About(start=sample // 2))
    assert {key: (found.episodes, found.correct) for key, found in tally.problems.items()} == {
        "p": (3, 1),
        0: (2, 2),
        1: (1, 1),
    }


def test_right_answers_vote_together_and_wrong_ones_as_they_are_written():
    tally = EpisodeTally()
    for answer, correct in (("1/2", True), ("0.5", True), (" 3  4", False), ("3 4", False), (None, False)):
        tally.add(episode("p", answer=answer, correct=correct))
    assert tally.problems["p"].votes() == (["", "", "3 4", "3 4", None], [True, True, False, False, False])


@pytest.mark.parametrize("end", ["unavailable", "cancelled", "no_text", "cut", "refused"])
def test_an_episode_that_does_not_count_is_in_its_end_alone(end):
    tally = EpisodeTally()
    tally.add(episode("p", end=end, statuses=[OK], usage={"cost": 0.5}, error="Traceback\nOSError: gone"))
    assert (tally.count, tally.episodes, tally.statuses) == (1, 0, {})
    assert tally.ends == {end: 1}
    assert tally.usage == {"cost": 0.5}
    assert tally.cause == ("" if end == "cancelled" else "OSError: gone")


def test_calls_are_counted_in_all_and_in_correct_episodes():
    tally = EpisodeTally()
    tally.add(episode("p", statuses=[OK, ERROR], correct=True))
    tally.add(episode("p", statuses=[ERROR]))
    assert (tally.statuses, tally.statuses_correct) == ({"ok": 1, "exception": 2}, {"ok": 1, "exception": 1})


def test_the_difficulty_is_in_the_words_of_the_source():
    assert difficulty_of(Problem("p", "?", "1", meta={"level": 3, "difficulty": None})) == "3"
    assert difficulty_of(Problem("p", "?", "1")) == difficulty_of(None) == ""


def test_figures_of_an_episode_are_shares_of_what_they_name():
    tally = EpisodeTally()
    for end, tokens, statuses, correct in (
        ("tokens", 10, [OK], False),
        ("turns", 0, [], False),
        ("answered", 30, [LOST], True),
        ("answered", 20, [OK, OK], True),
    ):
        tally.add(episode("p", end=end, recorded_tokens=tokens, statuses=statuses, correct=correct))
    summary = summary_of(tally)
    assert summary.truncated.value == 0.5
    assert (summary.code_share.value, summary.code_share_correct.value) == (0.5, 0.5)
    # An episode whose tokens nobody counted says nothing of their number.
    assert (summary.tokens.value, summary.tokens.count) == (20.0, 3)
    assert summary.calls.value == 0.75
