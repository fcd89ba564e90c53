"""Every filter and order of the table of episodes gives what plain Python gives over the same rows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import Decision, RunWriter
from rstar2_env.core.status import ToolStatus
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import facts_of
from rstar2_env.view.queries import figures, problems
from rstar2_env.view.queries.episodes import aggregate_episodes, find_place, list_episodes, page_of
from rstar2_env.view.queries.figures import MOST_VALUES, columns_of, figures_by_split
from rstar2_env.view.queries.filters import SORTS, words_query
from rstar2_env.view.queries.groups import list_groups
from rstar2_env.view.queries.problems import find_problem, list_problems

WORDS = ("alpha", "beta", "gamma", "np.linalg", "naïve", "x_1")
ERRORS = {str(status) for status in ToolStatus if status.is_error}


def made(rng: random.Random, group: int) -> Episode:
    said = " ".join(rng.choices(WORDS, k=4))
    return Episode(
        group=group,
        problem_id=f"p{group % 7}",
        task="rhymes" if group % 7 == 6 else ("sums", "games")[group % 7 % 2],
        messages=[Message("user", f"Do it well. Problem: Question {group % 7}"), Message("assistant", said)],
        reward=rng.choice([0.0, 0.5, 1.0]),
        end=rng.choice(["answered", "turns", "unavailable"]),
        turns=rng.randint(0, 4),
        statuses=rng.choices(
            [ToolStatus.OK, ToolStatus.TIMEOUT, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE], k=rng.randint(0, 3)
        ),
        injected=[ToolStatus.TIMEOUT] * rng.randint(0, 1),
        correct=rng.random() < 0.5,
        recorded_tokens=rng.randint(0, 99),
    )


def write(folder: Path) -> None:
    rng = random.Random(0)
    writer = RunWriter(folder)
    writer.begin({})
    for step in range(1, 6):
        groups = [[made(rng, group) for _ in range(4)] for group in range(9)]
        decisions = [
            [
                Decision(kept := rng.random() < 0.5, "" if kept else rng.choice(["quota", "draw"]), group // 6,
                         rng.choice([None, -0.5, 0.5]))
                for _ in range(4)
            ]
            for group in range(9)
        ]  # fmt: skip
        writer.train(step, groups, decisions)
        writer.held_out(step, [made(rng, number) for number in range(5)], seconds=float(2 * step))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    base = tmp_path_factory.mktemp("filters")
    write(base / "run")
    with RunIndex(base / "run", base / "cache") as opened:
        assert opened.refresh()
        yield opened


@pytest.fixture(scope="module")
def rows(index):
    return list_episodes(index, {"limit": "1000"})["rows"]


def test_the_values_of_a_column_have_the_numbers_of_episodes_that_their_filter_finds(index):
    columns = [column for column in columns_of(index) if column["filter"] == "values"]
    assert {"statuses", "injected", "end", "task"} <= {column["name"] for column in columns}
    for column in columns:
        name = {"statuses": "status", "last_status": "last"}.get(column["name"], column["name"])
        for one in column["values"]:
            chosen = {name: one["value"]}
            assert one["count"] == list_episodes(index, chosen)["total"]
            if name != "split":
                for split in ("train", "eval"):
                    assert one["splits"].get(split, 0) == list_episodes(index, {**chosen, "split": split})["total"]


def test_each_split_keeps_its_most_frequent_values(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.begin({})
    many, kept = MOST_VALUES + 1, Decision(kept=True)
    writer.train(
        1, [[Episode(group=at, problem_id=f"t{at}", task=f"t{at}")] * 2 for at in range(many)], [[kept, kept]] * many
    )
    writer.held_out(1, [Episode(group=at, problem_id=f"e{at}", task=f"e{at}") for at in range(many)])
    with RunIndex(tmp_path / "run", tmp_path / "cache") as opened:
        opened.refresh()
        (tasks,) = (column["values"] for column in columns_of(opened) if column["name"] == "task")
    assert [(one["value"][0], one["count"]) for one in tasks] == [("t", 2)] * MOST_VALUES + [("e", 1)] * MOST_VALUES


ORDERED = {
    ("ok", "timeout"): ("timeout", {"answered": "answered", "turns": "ended"}),
    ("timeout", "ok"): ("ok", {"answered": "ok", "turns": "ok"}),
    ("timeout", "exception", "ok"): ("ok", {"answered": "failed", "turns": "failed"}),
    ("exception", "unavailable"): ("unavailable", {"answered": "answered", "turns": "ended"}),
    ("ok",): ("ok", {"answered": "", "turns": ""}),
    (): ("", {"answered": "", "turns": ""}),
}
"""Statuses in order: the last one, and what followed the first failed call, by the end of the episode."""

ASKED = {
    "last=timeout": lambda row: row["last_status"] == "timeout",
    "last=error,unavailable": lambda row: row["last_status"] in {*ERRORS, "unavailable"},
    "after_error=failed,answered": lambda row: row["after_error"] in ("failed", "answered"),
    "split=train": lambda row: row["split"] == "train",
    "step=2": lambda row: row["step"] == 2,
    "step=2-4": lambda row: 2 <= row["step"] <= 4,
    "step=4-": lambda row: row["step"] >= 4,
    "step=-2": lambda row: row["step"] <= 2,
    "group=1,3": lambda row: row["group"] in (1, 3),
    "round=1": lambda row: row["round"] == 1,
    "problem=p3": lambda row: row["problem_id"] == "p3",
    "problem_q=P3": lambda row: row["problem_id"] == "p3",
    "task=games": lambda row: row["task"] == "games",
    "end=turns,unavailable": lambda row: row["end"] in ("turns", "unavailable"),
    "reason=quota": lambda row: row["reason"] == "quota",
    "status=timeout": lambda row: "timeout" in row["statuses"],
    "status=timeout,exception": lambda row: {"timeout", "exception"} & set(row["statuses"]),
    "status=error": lambda row: ERRORS & set(row["statuses"]),
    "injected=1": lambda row: row["injected"],
    "injected=0": lambda row: not row["injected"],
    "injected=timeout": lambda row: "timeout" in row["injected"],
    "kept=1": lambda row: row["kept"] is True,
    "kept=0": lambda row: row["kept"] is False,
    "correct=1": lambda row: row["correct"],
    "correct=0&end=answered&min_reward=0.5": lambda row: (
        not row["correct"] and row["end"] == "answered" and row["reward"] >= 0.5
    ),
    "max_reward=0.5": lambda row: row["reward"] <= 0.5,
    "min_advantage=0": lambda row: row["advantage"] is not None and row["advantage"] >= 0,
    "min_turns=2&max_turns=3": lambda row: 2 <= row["turns"] <= 3,
    "min_policy_tokens=50": lambda row: row["policy_tokens"] >= 50,
    "min_errors=2": lambda row: row["errors"] >= 2,
    "min_seconds=5": lambda row: row["seconds"] is not None and row["seconds"] >= 5,
    "max_calls=1&split=eval": lambda row: row["calls"] <= 1 and row["split"] == "eval",
    "nothing=of that": lambda row: True,
}


def asked_of(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split("&"))


@pytest.mark.parametrize("asked", ASKED)
def test_a_filter_keeps_what_it_says(index, rows, asked):
    wanted = [row["key"] for row in rows if ASKED[asked](row)]
    found = list_episodes(index, {**asked_of(asked), "limit": "1000"})
    assert [row["key"] for row in found["rows"]] == wanted
    assert found["total"] == len(wanted)
    if "of that" not in asked:
        assert 0 < len(wanted) < len(rows)


@pytest.mark.parametrize(
    "name", ["reward", "advantage", "turns", "policy_tokens", "errors", "correct", "end", "problem_id"]
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_order_is_by_value_and_then_by_place_with_the_unknown_last(index, name, sign):
    rows = list_episodes(index, {"sort": "key", "limit": "1000"})["rows"]
    found = list_episodes(index, {"sort": sign + name, "limit": "1000"})["rows"]
    known = sorted((row for row in rows if row[name] is not None), key=lambda row: row[name], reverse=bool(sign))
    if sign:  # equal ones stay in the order of their places
        known = sorted(
            known, key=lambda row: (-float(row[name]) if not isinstance(row[name], str) else 0, rows.index(row))
        ) if not isinstance(known[0][name], str) else [
            row for value in sorted({row[name] for row in known}, reverse=True) for row in rows if row[name] == value
        ]  # fmt: skip
    assert [row["key"] for row in found] == [row["key"] for row in known + [row for row in rows if row[name] is None]]


def test_a_list_begins_with_the_newest_step_of_training(index, rows):
    assert len({(row["split"], row["step"]) for row in rows}) > 3
    assert [row["key"] for row in rows] == [
        row["key"] for row in sorted(
            list_episodes(index, {"sort": "key", "limit": "1000"})["rows"],
            key=lambda row: (row["split"] != "train", -row["step"]),
        )
    ]  # fmt: skip
    steps = [row["step"] for row in list_groups(index, {"split": "train", "limit": "1000"})["rows"]]
    assert steps == sorted(steps, reverse=True)
    assert len(set(steps)) > 1


@pytest.mark.parametrize("text", ["%", "p_", "\\"])
def test_a_part_of_a_problem_is_taken_as_it_is_written(index, text):
    assert list_episodes(index, {"problem_q": text})["total"] == 0


def test_a_page_has_bounds():
    assert page_of({"offset": "-3", "limit": "5000"}) == (0, 1000)
    assert page_of({"limit": "-1"}) == (0, 1)


def test_pages_together_are_the_whole_list(index, rows):
    pages = [
        list_episodes(index, {"sort": "-reward", "offset": str(at), "limit": "17"})["rows"] for at in range(0, 230, 17)
    ]
    assert sorted(row["key"] for page in pages for row in page) == sorted(row["key"] for row in rows)


@pytest.mark.parametrize("asked", [{}, {"kept": "0", "sort": "-reward"}, {"q": "alpha", "sort": "problem_id"}], ids=str)
def test_every_episode_has_its_place_and_its_neighbours_in_the_table(index, rows, asked):
    keys = [row["key"] for row in list_episodes(index, {**asked, "limit": "1000"})["rows"]]
    assert len(keys) > 10
    for at, key in enumerate(keys):
        found = find_place(index, asked, key)
        assert (found["place"], found["total"]) == (at, len(keys))
        assert found["previous"] == (keys[at - 1] if at else None)
        assert found["next"] == (keys[at + 1] if at + 1 < len(keys) else None)
    for key in {row["key"] for row in rows} - set(keys):
        assert find_place(index, asked, key) == {"total": len(keys), "place": None, "previous": None, "next": None}
    with pytest.raises(KeyError):
        find_place(index, asked, "train-99-99")


@pytest.mark.parametrize(
    ("q", "holds"),
    [
        ("alpha", lambda said: "alpha" in said),
        ("ALPHA beta", lambda said: "alpha" in said and "beta" in said),
        ('"alpha beta"', lambda said: "alpha beta" in said),
        ("np.linalg", lambda said: "np.linalg" in said),
        ("gam*", lambda said: "gamma" in said),
        ("naive", lambda said: "naïve" in said),
        ("x_1", lambda said: "x_1" in said),
    ],
)
def test_a_search_finds_words_in_the_conversation(index, rows, q, holds):
    from rstar2_env.view.queries.episodes import find_episode

    wanted = [row["key"] for row in rows if holds(find_episode(index, row["key"])["messages"][1]["content"])]
    found = [row["key"] for row in list_episodes(index, {"q": q, "limit": "1000"})["rows"]]
    assert found == wanted
    assert 0 < len(wanted) < len(rows)


def test_a_search_without_a_word_says_so():
    with pytest.raises(ConfigurationError, match="at least one word"):
        words_query('" +')


def test_every_column_can_be_sorted_by(index):
    for name in SORTS:
        assert list_episodes(index, {"sort": f"-{name}"})["rows"]


def test_groups_are_the_rows_of_their_episodes(index, rows):
    train = [row for row in rows if row["split"] == "train"]
    for group in list_groups(index, {"split": "train", "limit": "1000", "sort": "-success"})["rows"]:
        own = [
            row
            for row in train
            if (row["step"], row["round"], row["group"]) == (group["step"], group["round"], group["group"])
        ]
        counted = [row for row in own if row["end"] != "unavailable"]
        assert group["played"] == len(own) == 4
        assert group["kept"] == sum(row["kept"] for row in own)
        assert group["rejected"] == (group["kept"] == 0)
        assert group["success"] == (sum(row["correct"] for row in counted) / len(counted) if counted else None)
        calls = sum(row["calls"] for row in counted)
        assert group["tool_error_share"] == (sum(row["errors"] for row in counted) / calls if calls else None)
        kept = [row for row in counted if row["kept"]]
        calls = sum(row["calls"] for row in kept)
        assert group["kept_success"] == (sum(row["correct"] for row in kept) / len(kept) if kept else None)
        assert group["kept_tool_error_share"] == (sum(row["errors"] for row in kept) / calls if calls else None)
        assert group["marks"] == "".join(map(mark_of, own))
    rejected = list_groups(index, {"split": "train", "rejected": "1"})
    assert rejected["total"] == len({(row["step"], row["group"]) for row in train}) - len(
        {(row["step"], row["group"]) for row in train if row["kept"]}
    )
    others = list_groups(index, {"split": "train", "rejected": "No"})
    assert rejected["total"] + others["total"] == list_groups(index, {"split": "train"})["total"]
    with pytest.raises(ConfigurationError, match="rejected must be 1 or 0, not 'maybe'"):
        list_groups(index, {"split": "train", "rejected": "maybe"})


def mark_of(row) -> str:
    if row["end"] == "unavailable":
        return "x"
    letter = "C" if row["correct"] else "W"
    return letter.lower() if row["kept"] is False else letter


def test_the_marks_of_held_out_episodes_are_neither_kept_nor_dropped(index, rows):
    held_out = {(row["step"], row["group"]): mark_of(row) for row in rows if row["split"] == "eval"}
    groups = list_groups(index, {"split": "eval", "limit": "1000"})["rows"]
    assert {(group["step"], group["group"]): group["marks"] for group in groups} == held_out
    assert {"C", "W", "x"} == set(held_out.values())


def test_figures_of_a_split_are_those_of_its_rows(index, rows):
    found = figures_by_split(index)
    for split, own in (
        ("train", [row for row in rows if row["split"] == "train"]),
        ("eval", [row for row in rows if (row["split"], row["step"]) == ("eval", 5)]),
    ):
        counted = [row for row in own if row["end"] != "unavailable"]
        right = [row for row in counted if row["correct"]]
        figures = found[split]
        assert figures["episodes"] == len(own)
        assert figures["success"] == pytest.approx(len(right) / len(counted))
        for name, some in (("tool_error_share", counted), ("tool_error_share_correct", right)):
            assert figures[name] == sum(row["errors"] for row in some) / sum(row["calls"] for row in some)


@pytest.mark.parametrize("statuses", ORDERED)
def test_what_followed_a_failed_call_is_told_by_the_next_call_or_the_end(statuses):
    last, ends = ORDERED[statuses]
    for end, followed in ends.items():
        found = facts_of({"messages": [], "statuses": list(statuses), "end": end}, "train", 1, 0)
        assert (found.last_status, found.after_error) == (last, followed)


@pytest.mark.parametrize("asked", ["split=train&status=error", "q=alpha", "step=2-4&kept=0", "task=games&correct=1"])
def test_aggregates_are_those_of_the_rows_that_a_filter_keeps(index, asked):
    own = list_episodes(index, {**asked_of(asked), "limit": "1000"})["rows"]
    found = aggregate_episodes(index, asked_of(asked))
    counted = [row for row in own if row["end"] != "unavailable"]
    assert found["figures"]["episodes"] == len(own)
    assert found["figures"]["success"] == sum(row["correct"] for row in counted) / len(counted)
    assert found["figures"]["calls"] == sum(row["calls"] for row in counted)
    steps = sorted({row["step"] for row in own})
    assert (found["steps"], sum(found["episodes"])) == (steps, len(own))
    for step, success in zip(steps, found["success"], strict=True):
        here = [row["correct"] for row in counted if row["step"] == step]
        assert success == (sum(here) / len(here) if here else None)


def test_aggregates_of_all_episodes_are_computed_once(index, monkeypatch):
    found = aggregate_episodes(index, {"sort": "-reward"})
    assert found["figures"]["episodes"] == sum(found["episodes"]) == list_episodes(index, {})["total"]
    assert index.query("SELECT count(*) FROM answers WHERE name = 'aggregates'") == [(1,)]
    monkeypatch.setattr(figures, "figures_of", lambda *given: pytest.fail("computed again"))
    assert aggregate_episodes(index, {"step": ""}) == found


def test_a_filter_that_keeps_nothing_has_no_aggregates(index):
    assert aggregate_episodes(index, {"step": "77"}) == {"figures": None, "steps": [], "episodes": [], "success": []}


def test_a_problem_is_of_the_splits_that_played_it(index):
    assert find_problem(index, "p6", {"split": "train"})["seen"] == 20
    with pytest.raises(KeyError):
        find_problem(index, "p6", {"split": "eval"})


def test_the_trend_of_a_problem_has_its_last_steps(index, monkeypatch):
    whole = find_problem(index, "p0", {})["success"]
    assert len(set(whole)) > 2
    monkeypatch.setattr(problems, "TREND", 2)
    assert find_problem(index, "p0", {})["trend"] == whole[-2:]


def test_a_bound_of_success_is_within(index):
    every = [row["success"] for row in list_problems(index, {})["rows"]]
    for name, holds in (("max_success", lambda one: one <= every[0]), ("min_success", lambda one: one >= every[0])):
        found = list_problems(index, {name: repr(every[0])})
        assert [row["success"] for row in found["rows"]] == [one for one in every if holds(one)]


def test_problems_are_the_rows_of_their_episodes(index, rows):
    found = list_problems(index, {"sort": "-success", "min_success": "0.1"})["rows"]
    assert [row["success"] for row in found] == sorted((row["success"] for row in found), reverse=True)
    for problem in found:
        own = [row for row in rows if row["problem_id"] == problem["problem_id"]]
        counted = [row for row in own if row["end"] != "unavailable"]
        assert problem["seen"] == len(own)
        assert problem["success"] == pytest.approx(sum(row["correct"] for row in counted) / len(counted))
        tokens = [row["policy_tokens"] for row in counted if row["policy_tokens"]]  # 0 stands for an unknown number
        assert problem["tokens"] == pytest.approx(sum(tokens) / len(tokens))
        errors, calls = (sum(row[name] for row in counted) for name in ("errors", "calls"))
        assert problem["tool_error_share"] == errors / calls


def test_what_all_questions_of_a_task_begin_with_is_left_out_also_where_a_task_has_one(rows):
    assert {row["question"] for row in rows} == {f"Question {number}" for number in range(7)}
