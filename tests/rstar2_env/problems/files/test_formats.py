"""Claims about problem files of every format: the same problems come out, and a bad record is reported by its place."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, ProblemFormatError
from rstar2_env.problems import FiniteSource, LazySource, load_problems
from rstar2_env.problems.files.write import write_jsonl

ROWS = [{"problem": f"What is {n} + 1?", "solution": {"answer": str(n + 1)}, "level": n} for n in range(6)]
COLUMNS = {"question": "problem", "answer": "solution.answer"}


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def make(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / f"some.{kind}"
    if kind == "jsonl":
        return write(path, "".join(json.dumps(row) + "\n" for row in ROWS))
    if kind == "json":
        return write(path, json.dumps({"version": 1, "data": ROWS}))
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra 'train'")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path, row_group_size=2)
        return path
    datasets = pytest.importorskip("datasets", reason="datasets comes with the extra 'train'")
    datasets.Dataset.from_list(ROWS).save_to_disk(str(tmp_path / "some"))
    return tmp_path / "some"


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "folder"])
def test_every_format_gives_the_same_problems(tmp_path, kind):
    source = load_problems(make(tmp_path, kind), columns=COLUMNS)
    assert isinstance(source, FiniteSource)
    assert [(p.question, p.answer, p.meta["level"]) for p in source] == [
        (f"What is {n} + 1?", str(n + 1), n) for n in range(6)
    ]
    assert list(source.ids) == [f"some-{n}" for n in range(1, 7)]
    assert source.get("some-3").answer == "3"


@pytest.mark.parametrize("kind", ["json", "parquet", "folder"])
def test_a_record_that_is_no_problem_is_named_by_its_number(tmp_path, kind):
    path = make(tmp_path, kind)
    with pytest.raises(ProblemFormatError, match=r"some[^ ]*[:\[]1.*'question' is missing; the record has 'problem'"):
        load_problems(path)


def test_csv_and_tsv_are_text_with_empty_cells_left_out(tmp_path):
    commas = write(tmp_path / "a.csv", '\ufeffid,question,answer,level\nx,"one, ""two""\nlines",1,\n,q,2,3\n')
    tabs = write(tmp_path / "b.tsv", "question\tanswer\nq, r\t7\n")
    first, second = load_problems(commas)
    assert (first.id, first.question, dict(first.meta)) == ("x", 'one, "two"\nlines', {})
    assert (second.id, second.meta["level"]) == ("a-2", "3")
    assert load_problems(tabs)[0].question == "q, r"


def test_a_csv_cell_may_be_longer_than_pythons_limit(tmp_path):
    path = write(tmp_path / "long.csv", f"question,answer,solution\nq,1,{'x' * 200_000}\n")
    assert len(load_problems(path)[0].meta["solution"]) == 200_000


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "question,answer\nq,1,extra\n", r"a\.csv:2.*more cells than the 2"),
        ("a.csv", 'question,answer\n"q,1\n', r"a\.csv"),
        ("a.csv", "question,answer\nq,\n", r"a\.csv:2.*'answer' is missing"),
        ("a.json", '{"question": "q"}', r"JSON array of problems.*one object per line is JSONL"),
        ("a.json", '[{"question": "q",\n "answer" 1}]', r"a\.json: expected a JSON array.*line 2, column"),
        ("a.json", "[]", "does not contain any problems"),
        ("a.parquet", "no parquet", r"a\.parquet cannot be read as Parquet"),
    ],
)
def test_a_broken_file_says_where_and_what(tmp_path, name, text, said):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow comes with the extra 'train'")
    with pytest.raises(ProblemFormatError, match=said):
        load_problems(write(tmp_path / name, text))


def test_numbers_of_a_json_array_keep_every_digit(tmp_path):
    path = write(tmp_path / "n.json", '[{"q": "a", "n": 0.12345678901234567890123}, {"q": "b", "n": 27.0}]')
    source = load_problems(path, columns={"question": "q", "answer": "n"})
    assert [problem.answer for problem in source] == ["0.12345678901234567890123", "27.0"]


def test_a_suffix_can_be_overruled_and_an_unknown_format_is_named(tmp_path):
    path = write(tmp_path / "a.txt", "question,answer\nq,1\n")
    assert load_problems(path, format="csv")[0].answer == "1"
    with pytest.raises(ConfigurationError, match="one of 'jsonl', 'json', 'csv', 'tsv', 'parquet', or None, not"):
        load_problems(path, format="xml")


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"rstar2-env\[train\]"):
        load_problems(write(tmp_path / "a.parquet", ""))


def test_a_folder_that_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"written by datasets\.save_to_disk"):
        load_problems(tmp_path)


def test_a_data_set_of_several_splits_gives_the_one_asked_for(tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets comes with the extra 'train'")
    parts = {"train": ROWS[:4], "test": ROWS[4:]}
    datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name, rows in parts.items()}).save_to_disk(
        str(tmp_path / "set")
    )
    assert len(list(load_problems(tmp_path / "set", columns=COLUMNS, split="test"))) == 2
    with pytest.raises(ConfigurationError, match="splits train, test, but not 'dev'"):
        load_problems(tmp_path / "set", columns=COLUMNS, split="dev")


def test_a_data_set_is_read_by_its_rows_in_pickled_copies_too(tmp_path):
    source = load_problems(make(tmp_path, "folder"), columns=COLUMNS, where="level > 1", keep=["level"])
    copy = pickle.loads(pickle.dumps(source))
    assert isinstance(copy, LazySource)
    assert [copy[n] for n in range(4)] == list(source)
    assert copy.get("some-6").answer == "6"
    assert copy[0].meta == {"level": 2}


def test_unique_leaves_out_a_question_that_came_before(tmp_path):
    path = write(tmp_path / "a.csv", "question,answer\na  b,1\nc,2\na b,1\n")
    assert [problem.question for problem in load_problems(path, unique=True)] == ["a  b", "c"]


def test_incomplete_records_are_left_out_only_when_asked(tmp_path):
    path = write(tmp_path / "a.csv", "question,answer\na,\nb,2\n")
    assert [problem.id for problem in load_problems(path, skip_incomplete=True)] == ["a-2"]
    with pytest.raises(ProblemFormatError):
        load_problems(path)


def test_what_is_written_is_read_back(tmp_path):
    problems = [load_problems("arithmetic")[n] for n in range(5)]
    assert write_jsonl(problems, tmp_path / "deep" / "a.jsonl") == 5
    again = list(load_problems(tmp_path / "deep" / "a.jsonl"))
    assert again == problems
    with pytest.raises(ConfigurationError, match="already exists"):
        write_jsonl(problems, tmp_path / "deep" / "a.jsonl")
