"""Claims about preparing problems as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem
from rstar2_env.problems.prepare import Lock, Prepared, PrepareOptions, Shelf, prepare

FIRST = [
    ("one", "How many legs have three cats, all of them together?", "12"),
    ("two", "What part of four is one?", "1/4"),
    ("three", "Let the sum of the digits of n be four. Find n.", "13"),
    ("four", "Count the primes below ten.", "4"),
]
SECOND = [("one", "count the primes below $10$", "4"), ("two", "Count the PRIMES below ten!", "4"), ("three", "?", "7")]
BENCHMARK = [("b", "Now let the sum of the digits of n be 7.", "5")]


def write(file: Path, rows: list[tuple[str, str, str]]) -> str:
    lines = (json.dumps({"id": id, "question": question, "answer": answer}) + "\n" for id, question, answer in rows)
    file.write_text("".join(lines), "utf-8")
    return str(file)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rows = {"first": FIRST, "second": SECOND, "benchmark": BENCHMARK}
    return {name: write(tmp_path / f"{name}.jsonl", of) for name, of in rows.items()}


def prepared(files: dict[str, str], **options: Any) -> Prepared:
    sources = options.pop("sources", {name: {"problems": files[name]} for name in ("first", "second")})
    made = PrepareOptions(sources=sources, against=[files["benchmark"]], least_length=2, **options)
    return prepare(made, Shelf(Lock(), say=lambda text: None))


def test_every_problem_is_kept_or_left_out_by_the_first_filter_that_finds_a_reason(files: dict[str, str]) -> None:
    found = prepared(files)
    assert sorted(problem.id for problem in found.splits["train"]) == ["first/four", "first/one", "second/one"]
    assert {one.problem_id: one.filter for one in found.removed} == {
        "first/two": "integers",
        "second/three": "length",
        "second/two": "duplicates",
        "first/three": "benchmarks",
    }
    assert found.loaded == {"first": 4, "second": 3}
    assert found.kept == {"first": 2, "second": 1}


def test_the_report_counts_by_filter_and_source_and_shows_what_a_benchmark_has_in_common(files: dict[str, str]) -> None:
    report = prepared(files).report()
    overlap = report["removed"]["benchmarks"]
    assert overlap["problems"] == 1
    assert overlap["by_source"] == {"first": 1}
    assert overlap["examples"][0]["why"].endswith("“let the sum of the digits of n”")
    assert report["splits"] == {"train": 3}
    assert json.loads(json.dumps(report)) == report


def test_a_report_shows_a_few_examples(files: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "many.jsonl", [*FIRST, *((f"h{n}", f"A half of {n}?", f"{n}/2") for n in range(9))])
    removed = prepared(files, sources={"many": {"problems": file}}).report()["removed"]["integers"]
    assert (removed["problems"], len(removed["examples"])) == (10, 5)


def test_the_length_of_an_overlap_is_an_option(files: dict[str, str]) -> None:
    assert "benchmarks" not in prepared(files, ngram=10).report()["removed"]


def test_weights_choose_from_what_the_filters_left(files: dict[str, str]) -> None:
    sources = {"first": {"problems": files["first"], "weight": 1}, "second": {"problems": files["second"], "weight": 1}}
    found = prepared(files, sources=sources)
    assert found.kept == {"first": 1, "second": 1}
    assert found.not_drawn == 1
    assert prepared(files, total=2).not_drawn == 1
    assert prepared(files, total=100).kept == {"first": 2, "second": 1}


def test_a_source_of_which_nothing_is_left_has_no_part_in_the_mixture(files: dict[str, str], tmp_path: Path) -> None:
    halves = {"problems": write(tmp_path / "halves.jsonl", [("a", "What part of four is two?", "1/2")])}
    assert prepared(files, sources={"first": {"problems": files["first"]}, "halves": halves}).kept == {
        "first": 2,
        "halves": 0,
    }


class AskedShelf(Shelf):
    """A shelf that notes which split and how many problems it is asked for."""

    asked: ClassVar[list[tuple[str, str, int | None]]]

    def problems(self, name: str, spec: Any, *, split: str, count: int | None) -> list[Problem]:
        """See ``Shelf``."""
        self.asked.append((name, split, count))
        return super().problems(name, spec, split=split, count=count)


def test_a_source_gives_its_split_and_benchmarks_their_test_problems(files: dict[str, str]) -> None:
    AskedShelf.asked = []
    source = {"problems": files["first"], "split": "validation", "take": 3}
    options = PrepareOptions(sources={"first": source}, against=[files["benchmark"]])
    assert prepare(options, AskedShelf(Lock(), say=lambda text: None)).loaded == {"first": 3}
    assert AskedShelf.asked == [("first", "validation", 3), (f"against {files['benchmark']}", "test", None)]


def test_filters_can_be_turned_off(files: dict[str, str], tmp_path: Path) -> None:
    found = prepared(files, integers=False, unique=False, verifiable=False)
    assert {one.filter for one in found.removed} == {"length", "benchmarks"}
    unread = {"mine": {"problems": write(tmp_path / "mine.jsonl", [*FIRST, ("five", "What is left out?", "3 +")])}}
    assert [
        sum(
            one.filter == "verifiable" for one in prepared(files, integers=False, sources=unread, verifiable=on).removed
        )
        for on in (True, False)
    ] == [1, 0]


def test_where_nothing_is_left_the_last_filter_is_named(files: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"None of the 7 .* filter 'length' removed .*, such as first/"):
        prepared(files, most_length=3)


def test_weights_are_for_all_sources_or_for_none(files: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="these sources have no weight: second"):
        prepared(files, sources={"first": {"problems": "x", "weight": 1}, "second": {"problems": "x"}})


def test_two_runs_make_the_same(files: dict[str, str]) -> None:
    assert prepared(files, seed=3).splits == prepared(files, seed=3).splits
    orders = {tuple(one.id for one in prepared(files, seed=seed).splits["train"]) for seed in range(6)}
    assert len(orders) > 1


def test_a_name_that_would_end_in_the_middle_of_a_problems_id_is_refused(files: dict[str, str]) -> None:
    sources = {"org/set": {"problems": files["first"]}, "second": {"problems": files["second"]}}
    with pytest.raises(ConfigurationError, match=r"The name of the source 'org/set' contains '/'.*without it"):
        prepared(files, sources=sources)
