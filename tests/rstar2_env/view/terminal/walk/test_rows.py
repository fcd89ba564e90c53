"""A table of many rows fetches and keeps those that are near, and its columns fit every terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

pytest.importorskip("textual", reason="textual is in the extra 'view'")

from walked import walk

from rstar2_env.view.answers import Answers
from rstar2_env.view.terminal.columns import TableColumn, fit_widths

ROWS = 20_000
LEAST = (0, 10, 0, 5, 9)


def written(file, rows=ROWS):
    file.write_text("".join(json.dumps({"messages": [], "reward": number}) + "\n" for number in range(rows)))
    return file


@pytest.mark.slow
def test_only_pages_in_view_are_fetched_of_many_rows(tmp_path, monkeypatch):
    asked = []
    real = Answers.episodes

    def told(answers, name, question):
        asked.append((int(question["offset"]), int(question["limit"])))
        return real(answers, name, question)

    monkeypatch.setattr(Answers, "episodes", told)
    file = written(tmp_path / "x.jsonl")

    async def act(walker):
        await walker.until("20,000 held out")
        await walker.press("enter", until="20,000 episodes")
        await walker.until("eval-0-0 ")
        asked.clear()
        await walker.press("end", until=f"eval-0-{ROWS - 1} ")
        assert {offset for offset, _ in asked} <= {ROWS - 100, ROWS - 200}
        for number in range(50, 60):
            walker.table.select(100 * number)
            await walker.until(f"eval-0-{100 * number} ")
        await walker.press("s", "down", "down", "enter", until="sort reward")
        await walker.press("r", until="sort -reward")
        await walker.until(f"eval-0-{ROWS - 1} ")
        assert walker.table.cursor == 0
        await walker.press("pagedown", "pagedown", until=f"eval-0-{ROWS - 39} ")
        assert len(walker.table.pages) <= 8
        assert {limit for _, limit in asked} == {100}
        assert len(asked) < 30

    walk(act, file, cache=tmp_path / "cache")


def test_a_table_that_was_empty_at_first_shows_rows_that_come_later(tmp_path, monkeypatch):
    real, empty = Answers.episodes, [True]

    def episodes(answers, name, params):
        return {"rows": [], "total": 0, "partial": True} if empty else real(answers, name, params)

    monkeypatch.setattr(Answers, "episodes", episodes)
    file = written(tmp_path / "x.jsonl", 3)

    async def act(walker):
        await walker.press("enter", until="0 episodes so far")
        empty.clear()
        walker.table.reload()
        await walker.until("eval-0-0 ")

    walk(act, file, cache=tmp_path / "cache")


def test_the_cursor_moves_by_rows_and_pages_and_stays_within(tmp_path):
    file = written(tmp_path / "x.jsonl", 45)

    async def act(walker):
        await walker.press("enter", until="eval-0-0 ")
        for key, at in [("up", 0), ("down", 1), ("pagedown", 21), ("pagedown", 41), ("pagedown", 44), ("down", 44)]:
            await walker.press(key, until=lambda at=at: walker.table.cursor == at)
            await walker.until(f"eval-0-{at} ")
        await walker.press("home", until="eval-0-0 ")
        await walker.pilot.click(walker.table, offset=(3, 5))
        await walker.until(lambda: walker.table.cursor == 4)
        await walker.pilot.click(walker.table, offset=(3, 5))
        await walker.until("eval-0-4   5 of 45")

    walk(act, file, cache=tmp_path / "cache")


@given(st.lists(st.integers(0, 60), min_size=5, max_size=5), st.integers(20, 200), st.integers(0, 200))
def test_columns_fit_or_are_at_their_least(wanted, width, question):
    columns = [TableColumn(str(at), lambda row: Text(), least=least) for at, least in enumerate(LEAST)]
    columns.append(TableColumn("question", lambda row: Text(), least=20, spare=True))
    widths, gap = fit_widths(columns, [*wanted, question], width)
    taken = sum(one + gap for one in widths if one)
    least = [min(one, least) if least else one for one, least in zip(wanted, LEAST, strict=True)]
    assert taken <= width or (widths[:5] == least and gap == 1)
    assert all(low <= one <= most for low, one, most in zip(least, widths, wanted, strict=False))
    assert widths[5] <= question
    if widths[:5] != wanted:
        assert gap == 1, "the gaps are closed before anything is cut"
        assert widths[5] == 0, "what is spare goes first"


def test_the_widest_column_gives_first():
    columns = [TableColumn(str(at), lambda row: Text(), least=4) for at in range(3)]
    assert fit_widths(columns, [6, 30, 12], 40) == ([6, 19, 12], 1)
    assert fit_widths(columns, [6, 30, 12], 54) == ([6, 30, 12], 2)
