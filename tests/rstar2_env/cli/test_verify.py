"""``rstar2 verify`` grades files, says what is wrong with a line, and prints figures that add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run

from rstar2_env.core.errors import ProblemFormatError
from rstar2_env.verification.report import percentile, read_pairs

LINES = [
    {"gold": "1/2", "pred": "0.5", "expected": True, "id": "a", "categories": ["fraction"]},
    {"gold": "x+1", "pred": "1+x", "expected": True, "id": "b"},
    {"gold": "x+1", "pred": "x+2", "expected": True, "id": "c", "categories": ["algebra"]},
    {"gold": "7", "pred": "7", "expected": False, "id": "d", "categories": ["algebra", "integer"]},
    {"gold": 7, "pred": None, "expected": False},
    {"gold": "7", "pred": r"So it is $\boxed{7}$.", "expected": True},
]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n\n")
    return path


def test_json_is_one_object_with_the_figures(tmp_path: Path) -> None:
    result = run("verify", *["--jsonl", str(write(tmp_path / "pairs.jsonl", LINES)), "--json", "--timeout", "20"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["n"] == 6
    assert figures["accuracy"] == pytest.approx(4 / 6, abs=1e-3)
    assert figures["false_positives"] == 1
    assert figures["false_negatives"] == 1
    assert figures["wrong"] == ["c", "d"]
    assert 0 <= figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"]
    assert figures["by_category"]["algebra"] == {"n": 2, "accuracy": 0.0, "false_positives": 1, "false_negatives": 1}


def test_without_labels_there_is_no_accuracy(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl", [{"gold": "1", "pred": "1"}, {"gold": "1", "pred": "2"}])
    figures = json.loads(run("verify", *["--jsonl", str(path), "--json"]).stdout)
    assert figures["accuracy"] is None
    assert figures["correct"] == 1
    assert figures["wrong"] == []


def test_the_table_names_what_went_wrong_and_where_math_verify_disagrees(tmp_path: Path) -> None:
    lines = [*LINES, {"gold": r"10^{-30}", "pred": r"$10^{-31}$", "expected": False, "id": "tiny"}]
    path = write(tmp_path / "pairs.jsonl", lines)
    result = run("verify", *["--jsonl", str(path), "--compare", "--workers", "1", "--timeout", "20"])
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output
    assert "disagreements" in result.output
    assert "tiny" in result.output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: the line is not valid JSON"),
        ("[1]", "line 2: expected a JSON object, got list"),
        ({"pred": "1"}, "line 2: the field 'gold' must be a string or a number, got nothing"),
        ({"gold": "1"}, "line 2: the field 'pred' must be a string, a number or null, got nothing"),
        ({"gold": "1", "pred": [1]}, "line 2: the field 'pred'"),
        ({"gold": "1", "pred": "1", "expected": "yes"}, "line 2: the field 'expected' must be true or false, got yes"),
        ({"gold": "1", "pred": "1", "categories": 3}, "line 2: the field 'categories'"),
    ],
)
def test_a_bad_line_is_named_by_file_number_and_field(tmp_path: Path, line: Any, message: str) -> None:
    path = write(tmp_path / "pairs.jsonl", [LINES[0], line])
    with pytest.raises(ProblemFormatError) as caught:
        read_pairs(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    result = run("verify", *["--jsonl", str(path)])
    assert result.exit_code == 2


def test_a_line_may_hold_any_unicode(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    line = json.dumps({"gold": "a\u2028b", "pred": "a\u2028b"}, ensure_ascii=False)
    path.write_text(f"\ufeff{line}\n", encoding="utf-8")  # with a byte order mark, as some editors write it
    [pair] = read_pairs(path)
    assert pair.gold == "a\u2028b"


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_pairs_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(text)
    done = run("verify", "--jsonl", path)
    assert done.exit_code == 2
    assert "does not contain any pairs" in done.stderr


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([1, 2, 3, 4], 0.5) == 2
    assert percentile([1, 2, 3, 4], 0.99) == 4
    assert percentile([], 0.5) == 0.0


@pytest.mark.parametrize(
    ("pair", "code", "said"),
    [
        (("1/2", "0.5"), 0, "correct: the answer equals the gold answer (number)"),
        (("x+1", "x+2"), 1, "wrong: the answer differs from the gold answer"),
        (("7", r"So it is $\boxed{7}$."), 0, "correct: "),
        (("7", ""), 1, "wrong: there is no answer"),
        (("--", "-3", "-3.0"), 0, "correct: "),
    ],
)
def test_a_pair_is_graded_with_the_reason(pair: tuple[str, ...], code: int, said: str) -> None:
    done = run("verify", *pair) if pair[0] == "--" else run("verify", *pair, "--timeout", "20")
    assert done.exit_code == code
    assert done.output.startswith(said)


def test_a_pair_as_json() -> None:
    figures = json.loads(run("verify", "1/2", "0.6", "--json").stdout)
    assert (figures["correct"], figures["reason"], figures["method"]) == (False, "different", "number")


@pytest.mark.parametrize("arguments", [(), ("1",), ("1", "2", "--jsonl", __file__)])
def test_a_pair_or_a_file_must_be_given(arguments: tuple[str, ...]) -> None:
    done = run("verify", *arguments)
    assert done.exit_code == 2
    assert "Give either GOLD and PRED, or --jsonl FILE" in done.output


def test_every_bad_line_of_a_file_is_told(tmp_path: Path) -> None:
    done = run("verify", "--jsonl", write(tmp_path / "pairs.jsonl", [LINES[0], "{", LINES[1], {"gold": "1"}]))
    assert done.exit_code == 2
    assert "line 2: the line is not valid JSON" in done.output
    assert "line 4: the field 'pred'" in done.output


def test_the_tables_fit_a_terminal_of_80_columns(tmp_path: Path) -> None:
    shown = run("verify", "--jsonl", write(tmp_path / "pairs.jsonl", LINES), "--timeout", "20").output
    assert max(map(len, shown.splitlines())) <= 80
