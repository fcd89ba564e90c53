"""A figure that names its file of results is the file's figure."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import figures
import pytest
from places import ROOT

RESULTS = {"made": {"figures": {"part": {"share": 0.4583, "count": 12345, "loss": -0.25}}}}


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in figures.documents()])
def test_the_figures_of_a_page_are_those_of_its_files(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert figures.with_figures(text, figures.read_results()) == text, "run `python tools/figures.py --write`"


def test_every_file_of_results_and_every_table_is_quoted() -> None:
    texts = [path.read_text("utf-8") for path in figures.documents()]
    numbers = {mark["file"] for text in texts for mark in figures.marks(text)}
    shown = {(mark["file"], mark["name"]) for text in texts for mark in figures.tables(text)}
    results = figures.read_results()
    assert numbers | {file for file, _ in shown} == set(results)
    assert shown == {(file, name) for file, told in results.items() for name in told.get("tables", {})}


UNMEASURED = {
    "135": "part of the model's name, SmolLM2-135M",
    "95": "the level of the intervals",
}
"""Numbers in the text of README that are no results, with the reason."""
START = ("README.md", "docs/getting-started.md", "examples/README.md", "CHANGELOG.md")
"""README, the changelog and the pages of the part Start of the site."""


def test_every_number_of_readme_is_that_of_a_file_of_results() -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)
    for mark in figures.marks(text):
        text = text.replace(mark[0], "")
    assert set(re.findall(r"(?<!\w)\d[\d.,]*", text)) == set(UNMEASURED)


@pytest.mark.parametrize("page", START)
def test_a_time_on_the_first_pages_is_that_of_a_file_of_results(page: str) -> None:
    text = " ".join((ROOT / page).read_text("utf-8").split())
    assert re.findall(r".{20}(?<!-->)(?<! and) (?:minutes?|hours?|seconds|days?)\b", text) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.1<!-- made.part.share -->", "0.5<!-- made.part.share -->"),
        (".11<!-- made.part.share -->", ".46<!-- made.part.share -->"),
        ("40 %<!-- made.part.share -->", "46 %<!-- made.part.share -->"),
        ("+40.00%<!-- made.part.share -->", "+45.83%<!-- made.part.share -->"),
        ("1,000<!-- made.part.count -->", "12,345<!-- made.part.count -->"),
        ("7<!-- made.part.count -->", "12345<!-- made.part.count -->"),
        ("-.10<!-- made.part.loss -->", "-.25<!-- made.part.loss -->"),
        ("of 3 and 0.46<!-- made.part.share --> of it", "of 3 and 0.46<!-- made.part.share --> of it"),
    ],
)
def test_a_figure_keeps_its_form_and_gets_the_value_of_the_file(written: str, meant: str) -> None:
    assert figures.with_figures(written, RESULTS) == meant


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("half<!-- made.part.share -->", "Expected a number"),
        ("0.5<!-- other.part.share -->", "other.part.share"),
        ("0.5<!-- made.part.shore -->", "made.part.shore"),
        ("0.5<!-- made.part -->", "made.part"),
    ],
)
def test_a_mark_that_names_no_figure_is_refused(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        figures.with_figures(written, RESULTS)


ROWS = {"made": {"tables": {"speed": [["program", "seconds"], ["", "1 s"], ["b", "2 s"]]}}}
TABLE = """<!-- table made.speed -->

| program | seconds |
|---|---:|
| | 1 s |
| b | 2 s |

<!-- /table -->
"""


@pytest.mark.parametrize(
    "written",
    [TABLE, TABLE.replace("1 s", "3 s"), TABLE.replace("| b | 2 s |\n", ""), TABLE.replace("seconds |\n", "hours |\n")],
)
def test_a_table_gets_the_rows_of_the_file_and_keeps_its_alignment(written: str) -> None:
    assert figures.with_figures(written, ROWS) == TABLE


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (TABLE.replace("made.speed", "made.spede"), "made.spede"),
        (TABLE.replace("<!-- /table -->", ""), "Expected <!-- table"),
        (TABLE.replace("|---|---:|", "|---|---:|---|"), "as many cells"),
    ],
)
def test_a_mark_that_encloses_no_table_of_a_file_is_refused(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        figures.with_figures(written, ROWS)


@pytest.mark.parametrize("lacking", [*figures.SOURCE, "figures"])
def test_a_file_that_does_not_say_how_it_was_made_is_refused(tmp_path: Path, lacking: str) -> None:
    told = {"command": "make", "commit": "abc", "load": "quiet", "figures": {"a": 1}}
    (tmp_path / "made.json").write_text(json.dumps({**told, lacking: ""}))
    with pytest.raises(ValueError, match=f"made.json lacks {lacking}"):
        figures.read_results(tmp_path)


def test_the_command_names_the_line_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("Made.\n\nIt is 0.1<!-- made.part.share -->.\n")
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "documents", lambda: [page])
    monkeypatch.setattr(figures, "read_results", lambda: RESULTS)
    monkeypatch.setattr(sys, "argv", ["figures.py"])
    assert figures.main() == 1
    assert "page.md:3:" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["figures.py", "--write"])
    assert figures.main() == 0
    assert "0.5<!-- made" in page.read_text()
