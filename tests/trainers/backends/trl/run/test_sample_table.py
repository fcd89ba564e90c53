"""The table of sampled episodes: which ones, and what stands in a cell."""

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import Decision
from rstar2_env.trainers.backends.trl.run.sample_table import COLUMNS, as_markdown, sampled


def groups_of(count, size):
    groups = [
        [Episode(group=group, problem_id=f"p{group}", reward=float(member), end="answered") for member in range(size)]
        for group in range(count)
    ]
    return groups, [[Decision(member % 2 == 0, "" if member % 2 == 0 else "draw") for member in range(size)]] * count


def test_episodes_are_chosen_evenly_over_all_groups():
    rows = sampled(7, *groups_of(8, 5), count=4)
    assert [row[1] for row in rows] == ["p0", "p2", "p4", "p6"]
    assert {row[0] for row in rows} == {7}


def test_of_few_episodes_all_are_there_and_of_none_none():
    assert [row[2] for row in sampled(1, *groups_of(1, 3))] == [0.0, 1.0, 2.0]
    assert [row[6] for row in sampled(1, *groups_of(1, 3))] == ["", "draw", ""]
    assert sampled(1, [], []) == []


def test_what_a_program_printed_stays_in_its_cell():
    groups, decisions = groups_of(1, 1)
    groups[0][0].messages = [Message("user", "a | b\n<script>alert(1)</script>")]
    lines = as_markdown(sampled(1, groups, decisions)).splitlines()
    assert len(lines) == 3
    assert all(line.count("|") == len(COLUMNS) + 1 for line in lines)
    assert "<script>" not in lines[2]
