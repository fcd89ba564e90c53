"""Claims about the episodes that become traces: which qualify, and the balance of difficulty."""

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.traces.selection import ProblemTries, TraceSelection, balanced, level_of, most_traces


def episode(text="3", *, correct=True, end="answered", statuses=(), group=0):
    messages = [Message("user", "1+2?"), Message("assistant", text)]
    return Episode(group=group, messages=messages, correct=correct, end=end, statuses=list(statuses))


@pytest.mark.parametrize(
    ("options", "played", "said"),
    [
        ({}, episode(), None),
        ({}, episode(correct=False), "wrong"),
        ({}, episode(correct=False, end="turns"), "'turns'"),
        ({}, episode(end="unavailable"), "cannot be graded"),
        ({"min_calls": 1}, episode(), "fewer than 1 calls"),
        ({"min_calls": 1}, episode(statuses=[ToolStatus.OK]), None),
        ({"clean": True}, episode(statuses=[ToolStatus.OK, ToolStatus.TIMEOUT]), "but a call failed"),
        ({"clean": True}, episode(statuses=[ToolStatus.OK, ToolStatus.EMPTY]), None),
    ],
)
def test_only_right_episodes_that_meet_the_conditions_qualify(options, played, said):
    objection = TraceSelection(**options).objection(played)
    assert objection is None if said is None else said in objection


def test_an_episode_with_the_turns_of_another_does_not_qualify_again():
    tries = ProblemTries()
    assert tries.add(episode("a", group=0), TraceSelection()) is None
    assert "same turns" in tries.add(episode("a", group=1), TraceSelection())
    assert tries.add(episode("b", group=2), TraceSelection()) is None
    assert (tries.kept, tries.counted, tries.right) == ([0, 2], 3, 3)


def test_an_episode_that_does_not_count_does_not_change_the_rate():
    tries = ProblemTries()
    for played in (episode(), episode(end="unavailable"), episode(correct=False)):
        tries.add(played, TraceSelection())
    assert (tries.success_rate, tries.level) == (0.5, "medium")


@pytest.mark.parametrize(
    ("rate", "level"), [(1, "easy"), (0.51, "easy"), (0.5, "medium"), (0.26, "medium"), (0.25, "hard"), (0, "hard")]
)
def test_levels_end_at_a_half_and_a_quarter(rate, level):
    assert level_of(rate) == level


@pytest.mark.parametrize(
    ("counts", "shares", "kept"),
    [
        ({"easy": 90, "hard": 10}, {"easy": 0.5}, {"easy": 10, "hard": 10}),
        ({"easy": 90, "hard": 10}, {}, {"easy": 90, "hard": 10}),
        ({"easy": 90, "medium": 30, "hard": 10}, {"easy": 0.4, "medium": 0.4}, {"easy": 20, "medium": 20, "hard": 10}),
        ({"easy": 50, "hard": 71}, {"easy": 0.29}, {"easy": 29, "hard": 71}),  # 0.29 * 100 is below 29 in floats
        ({"easy": 5}, {"easy": 0.5}, {"easy": 0}),
    ],
)
def test_no_level_exceeds_its_share_and_no_more_is_dropped_than_needed(counts, shares, kept):
    assert most_traces(counts, shares) == kept


def test_the_choice_within_a_level_depends_on_the_seed_and_keeps_the_order():
    levels = ["easy"] * 20 + ["hard"] * 4
    first, second = balanced(levels, {"easy": 0.5}, 0), balanced(levels, {"easy": 0.5}, 1)
    assert first == balanced(levels, {"easy": 0.5}, 0)
    assert first != second
    assert first == sorted(first)
    assert [levels[at] for at in first].count("easy") == 4


@pytest.mark.parametrize(
    ("shares", "said"),
    [({"eazy": 0.5}, "Did you mean 'easy'"), ({"easy": 0}, "greater than 0"), ({"easy": 2}, "at most 1")],
)
def test_a_share_that_cannot_be_is_refused(shares, said):
    with pytest.raises(ConfigurationError, match=said):
        TraceSelection(shares=shares)
