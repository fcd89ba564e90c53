"""``laser``: the scores within and beyond the target, and the targets that the monitored lengths give."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards import RewardContext
from rstar2_env.rewards.laser import Laser


@dataclass
class Went:
    successes: int
    lengths: list[int]


def episode(length, *, correct, repeats=False):
    ids = [5, 6] * length if repeats else list(range(length))
    return Episode(correct=correct, completion_ids=ids[:length], mask=[1] * length)


def group(accuracy, size=8):
    right = round(accuracy * size)
    return [Episode(correct=number < right, mask=[1]) for number in range(size)]


@pytest.mark.parametrize(
    ("length", "correct", "expected"), [(10, True, 1.5), (11, True, 1.0), (10, False, -0.5), (11, False, -0.5)]
)
def test_a_right_answer_within_the_target_gets_the_bonus(length, correct, expected):
    part = Laser(target=10)
    assert part.needs == {"tokens"}
    assert part(episode(length, correct=correct), RewardContext()) == expected


def monitored(part):
    """Five groups of eight in each band: a fifth, half and all of them within the targets, and little less below."""
    easy = [[4000] * 6 + [5000] * 2] + [[9000] * 8] * 4
    medium = [[8000] * 3 + [9000] + [12000] * 4] * 5
    hard = [[3000] * 7 + [16000]] * 5
    part.observe([Went(right, own) for right, each in ((8, easy), (4, medium), (1, hard)) for own in each])
    return part


def test_the_golden_targets_of_three_bands():
    part = monitored(Laser(mode="d"))
    assert part.needs == {"group", "tokens"}
    # Shares of 1/5, 1/2 and 1 of the band's answers, right or wrong, on a grid of 1024.
    assert part.targets == {"easy": 5120, "medium": 9216, "hard": 16384}


@pytest.mark.parametrize(
    ("accuracy", "within"), [(7 / 8, 5120), (6 / 8, 5120), (5 / 8, 9216), (3 / 8, 9216), (1 / 8, 16384)]
)
def test_the_accuracy_of_the_group_chooses_the_target(accuracy, within):
    part, ctx = monitored(Laser(mode="d")), RewardContext(group=group(accuracy))
    assert part(episode(within, correct=True), ctx) == 1.5
    assert part(episode(within + 1, correct=True), ctx) == 1.0
    assert part(episode(within + 1, correct=False), ctx) == -0.5


def test_a_long_wrong_answer_that_does_not_repeat_itself_is_let_be_with_de():
    part, ctx = monitored(Laser(mode="de")), RewardContext(group=group(7 / 8))
    assert part(episode(5121, correct=False), ctx) == 0.0
    assert part(episode(5120, correct=False), ctx) == -0.5
    assert part(episode(5121, correct=False, repeats=True), ctx) == -0.5
    assert part(episode(5121, correct=True), ctx) == 1.0


def test_where_no_length_of_the_grid_does_the_longest_answer_is_the_target():
    part = Laser(mode="d", limit=2048)
    part.observe([Went(0, [100, 3000, 200]), Went(3, [4000, 10, 20])])
    assert part.targets["hard"] == 4000
    assert part.targets["medium"] == 2048


def test_before_the_first_step_the_target_is_the_limit():
    ctx = RewardContext(group=group(1))
    assert Laser(mode="d", limit=20)(episode(20, correct=True), ctx) == 1.5
    assert Laser(mode="d", limit=20)(episode(21, correct=True), ctx) == 1.0


def test_the_targets_change_every_so_many_steps_and_only_the_newest_groups_count():
    part = Laser(mode="d", limit=4096, lowest=1, step=1, every=3, monitor=2)
    found = []
    for length in range(16, 9, -1):
        part.observe([Went(2, [length] * 2)])
        found.append(part.targets["easy"])
    assert found == [16, 16, 16, 14, 14, 14, 11]


def test_a_resumed_run_has_the_same_targets():
    whole, begun, resumed = (Laser(mode="d", limit=4096, lowest=1, step=1, every=3, monitor=4) for _ in range(3))
    for length in range(10, 20):
        whole.observe([Went(1, [length, length + 3])])
    for length in range(10, 15):
        begun.observe([Went(1, [length, length + 3])])
    resumed.load_state_dict(json.loads(json.dumps(begun.state_dict())))
    for length in range(15, 20):
        resumed.observe([Went(1, [length, length + 3])])
    assert resumed.targets == whole.targets
    assert resumed.state_dict() == whole.state_dict()


def test_an_episode_without_tokens_is_refused():
    with pytest.raises(ConfigurationError, match="'laser' counts tokens"):
        Laser()(Episode(correct=True), RewardContext())
