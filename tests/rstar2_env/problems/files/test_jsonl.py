"""Claims about problem files: what is read, and how a bad line is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import SHARED

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems import FiniteSource, load_problems

SHARED = SHARED / "data"


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def test_fields_go_where_they_belong(tmp_path):
    file = write(
        tmp_path / "some.jsonl",
        {"id": "a", "question": "1+1?", "answer": "2", "source": "me", "level": 3, "calculations": ["1+1=2"]},
    )
    problem = load_problems(file).get("a")
    assert (problem.question, problem.answer, problem.source) == ("1+1?", "2", "me")
    assert problem.meta == {"level": 3, "calculations": ["1+1=2"]}


def test_a_problem_without_an_id_is_called_after_file_and_line(tmp_path):
    file = write(tmp_path / "some.jsonl", {"question": "a", "answer": "1"}, "", {"question": "b", "answer": "2"})
    source = load_problems(str(file))
    assert isinstance(source, FiniteSource)
    assert list(source.ids) == ["some-1", "some-3"]
    assert source.get("some-3").source == "some.jsonl"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("7", "7"),
        ("-12", "-12"),
        ("27.0", "27.0"),
        ("0.1", "0.1"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("0.12345678901234567890123", "0.12345678901234567890123"),
        ("1e3", "1000"),
        ("2.50E-3", "0.00250"),
        ("1e999999999", "1e999999999"),
    ],
)
def test_a_number_as_answer_keeps_every_digit(tmp_path, written, text):
    file = write(tmp_path / "n.jsonl", f'{{"question": "q", "answer": {written}, "level": 2.5}}')
    problem = load_problems(file)[0]
    assert problem.answer == text
    assert problem.meta["level"] == 2.5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"question": "q"}', ["answer", "missing"]),
        ('{"answer": "1"}', ["question", "missing"]),
        ('{"question": "", "answer": "1"}', ["question", "non-empty"]),
        ('{"question": 5, "answer": "1"}', ["question", "string", "int 5"]),
        ('{"question": "q", "answer": null}', ["answer", "NoneType None"]),
        ('{"question": "q", "answer": true}', ["answer", "bool True"]),
        ('{"question": "q", "answer": ["1"]}', ["answer", "list"]),
        ('{"question": "q", "answer": " "}', ["answer", "non-empty"]),
        ('{"question": "q", "answer": NaN}', ["NaN"]),
        ('{"question": "q", "answer": "1", "id": ""}', ["id", "non-empty"]),
        ('{"question": "q", "answer": "1", "id": [1]}', ["id", "list"]),
        ('{"question": "q", "answer": "1", "source": 3}', ["source", "int 3"]),
        ('{"question": "q", "answer": "1"', ["not valid JSON", "column"]),
        ('{"question": "q', ["not valid JSON: Unterminated string starting at column 14"]),
        ('{"question": "q", "answer": "1 + 2 = <<1+2=3>>3\\n#### 3"}', ["'answer'", "'#### 3'", "FILE:like=gsm8k"]),
        ("[1, 2]", ["object", "list"]),
        ('"text"', ["object", "str"]),
        ("[" * 100_000, ["object"]),
    ],
)
def test_a_bad_line_is_reported_by_file_line_and_field(tmp_path, line, said):
    file = write(tmp_path / "bad.jsonl", {"question": "fine", "answer": 1}, "", line)
    with pytest.raises(ProblemFormatError) as caught:
        load_problems(file)
    assert f"{file}:3" in str(caught.value)
    for word in said:
        assert word in str(caught.value)


def test_bytes_that_are_not_utf8_are_reported_by_line(tmp_path):
    file = tmp_path / "latin.jsonl"
    file.write_bytes(b'{"question": "q", "answer": "1"}\n{"question": "caf\xe9", "answer": "1"}\n')
    with pytest.raises(ProblemFormatError, match=r"latin\.jsonl:2.*UTF-8.*0xe9"):
        load_problems(file)


def test_a_byte_order_mark_and_unicode_line_separators_do_no_harm(tmp_path):
    file = tmp_path / "bom.jsonl"
    file.write_bytes('\ufeff{"question": "a\u2028b", "answer": "1"}\r\n'.encode())
    assert load_problems(file)[0].question == "a\u2028b"


def test_two_lines_with_one_id_are_both_named(tmp_path):
    record = {"id": "x", "question": "q", "answer": "1"}
    file = write(tmp_path / "twice.jsonl", record, {**record, "id": "y"}, record)
    with pytest.raises(ProblemFormatError, match=r"twice\.jsonl:3.*'x'.*line 1"):
        load_problems(file)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_problems_is_an_error(tmp_path, text):
    file = tmp_path / "empty.jsonl"
    file.write_text(text)
    with pytest.raises(ProblemFormatError, match="not contain any problems"):
        load_problems(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.jsonl cannot be read"):
        load_problems(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("name", "count"),
    [("gsm8k_test", 1319), ("gsm8k_train", 7473), ("aime24", 30), ("amc23", 40), ("college_math", 1000)],
)
def test_real_data_sets_are_read_whole(name, count):
    file = SHARED / f"{name}.jsonl"
    if not file.exists():
        pytest.skip(f"{name}.jsonl is not beside the repository, under shared/data")
    source = load_problems(file)
    assert isinstance(source, FiniteSource)
    assert len(source) == count
