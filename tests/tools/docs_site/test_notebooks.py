"""A tutorial's page shows what a run of the same cells printed, and nothing of another."""

import json

import notebooks
import pytest

CELLS = [
    {"cell_type": "markdown", "source": ["# Title\n"]},
    {"cell_type": "code", "source": ["print(1)"], "outputs": []},
]


def write(path, cells):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells}))


def printed(*outputs):
    return [CELLS[0], CELLS[1] | {"outputs": list(outputs)}]


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": [text]}


@pytest.fixture
def page(tmp_path):
    """Makes the page of the notebook, beside a copy that was run."""
    write(tmp_path / "a.ipynb", CELLS)

    def make(cells):
        write(tmp_path / "run" / "a.ipynb", cells)
        return notebooks.page(tmp_path / "a.ipynb", [tmp_path / "run"])

    return make


def test_without_a_copy_there_is_code_alone(tmp_path):
    write(tmp_path / "a.ipynb", CELLS)
    assert notebooks.page(tmp_path / "a.ipynb", [tmp_path / "run"]) == "# Title\n\n```python\nprint(1)\n```\n"


def test_what_a_cell_printed_is_shown_with_its_settings(page):
    text = page(printed(stream("1\n"), stream("2\n"), {"output_type": "execute_result", "data": {"text/plain": ["3"]}}))
    assert text.startswith("# Title\n\nThe outputs below are those of a short run")
    assert text.endswith("```python\nprint(1)\n```\n\n```text\n1\n2\n3\n```\n")


def test_a_picture_is_shown_in_place_of_its_text(page):
    drawn = {"output_type": "execute_result", "data": {"text/plain": ["<Plot>"], "image/png": ["iVBO\n", "Rw==\n"]}}
    text = page(printed(stream("1\n"), drawn))
    assert text.endswith("```text\n1\n```\n\n![What the cell draws](data:image/png;base64,iVBORw==)\n")


@pytest.mark.parametrize("other", [{"source": ["print(2)"]}, {"cell_type": "raw"}], ids=str)
def test_a_copy_with_other_code_is_not_shown(page, other):
    cells = printed(stream("1\n"))
    cells[1] |= other
    assert page(cells).endswith("```python\nprint(1)\n```\n")


def test_a_changed_text_keeps_the_outputs(page):
    cells = printed(stream("1\n"))
    cells[0] = CELLS[0] | {"source": ["# Old title\n"]}
    text = page(cells)
    assert text.startswith("# Title\n")
    assert text.endswith("```text\n1\n```\n")


def test_a_record_is_shown_like_the_copy_that_was_run(tmp_path, monkeypatch):
    write(tmp_path / "a.ipynb", CELLS)
    drawn = {"output_type": "execute_result", "data": {"text/plain": ["<Plot>"], "image/png": ["iVBO\n", "Rw==\n"]}}
    shown = stream("reading 5\rdone \x1b[1mbold\x1b[0m\r\n")
    value = {"output_type": "execute_result", "data": {"text/plain": ["3"], "text/html": ["<b>3</b>"]}}
    outputs = [
        stream("a warning\n", "stderr"),
        stream("in "),
        stream("parts\n"),
        shown,
        stream("[2026-11-23 17:01:51,274] a log\n"),
        value,
        drawn,
    ]
    write(tmp_path / "run" / "a.ipynb", printed(*outputs))
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    monkeypatch.setattr(notebooks, "RUN", tmp_path / "run")
    monkeypatch.setattr(notebooks, "RECORDED", tmp_path / "kept")
    notebooks.record()
    (kept,) = (tmp_path / "kept").iterdir()
    assert all(json.loads(kept.read_text())[key] for key in ("command", "commit", "load"))
    assert notebooks.page(tmp_path / "a.ipynb", [kept.parent]) == notebooks.page(
        tmp_path / "a.ipynb", [tmp_path / "run"]
    )
    assert not [left for left in ("warning", "log", "\\u001b", "<b>") if left in kept.read_text()]


def test_code_that_was_not_run_is_not_recorded(tmp_path, monkeypatch):
    write(tmp_path / "a.ipynb", CELLS)
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    monkeypatch.setattr(notebooks, "RUN", tmp_path / "run")
    monkeypatch.setattr(notebooks, "RECORDED", tmp_path / "kept")
    with pytest.raises(SystemExit, match=r"a\.ipynb was not run with this code"):
        notebooks.record()


def test_every_tutorial_has_outputs_of_its_code():
    for path in notebooks.FOLDER.glob("*.ipynb"):
        text = notebooks.page(path, [notebooks.RECORDED])
        assert "```text\n" in text, (
            f"run `make docs-test` and `python tools/docs_site/notebooks.py record` for {path.name}"
        )


def test_tutorials_are_in_the_order_in_which_they_are_read():
    assert [page.removeprefix("tutorials/").removesuffix(".md") for page in notebooks.pages()][:4] == [
        "own_environment",
        "own_part",
        "pretrained",
        "gsm8k",
    ]


@pytest.mark.parametrize(
    "output",
    [
        stream("a warning\n", "stderr"),
        stream("[2026-11-23 17:01:51,274] [WARNING] a log\n"),
        stream("\x1b[?25l\r\x1b[2K"),
        stream("reading episodes, MB ━━━━          ━━━━ 0/?\n"),
        stream("reading episodes, MB         ━━━━━━━━━━       0 s so far\n"),
        stream("playing: 40/40 (100 %), 129.0/s, 0 s left, 100.0 % correct\n"),
    ],
)
def test_logs_and_progress_are_left_out(page, output):
    text = page(printed(output, stream("1\n")))
    assert text.endswith("```text\n1\n```\n")


def test_the_rules_of_a_table_are_kept(page):
    table = "┏━━━┳━━━┓\n┃ a ┃ b ┃\n┡━━━╇━━━┩\n│ 1 │ 2 │\n└───┴───┘"
    assert page(printed(stream(f"{table}\n"))).endswith(f"```text\n{table}\n```\n")


def test_colours_and_overwritten_lines_are_left_out(page):
    assert page(printed(stream("reading 5\rdone \x1b[1mbold\x1b[0m\r\n"))).endswith("```text\ndone bold\n```\n")
