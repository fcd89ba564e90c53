"""Claims about sources that a lock file pins: filled at the first load, compared at every later one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import FixedSource, Problem
from rstar2_env.problems.prepare import UNKNOWN, Lock, Pin, Shelf, checksum_of, pinned

pytest.importorskip("datasets", reason="reads data sets: the extra 'train'")
NAME = "dapo-math-17k"
HUB = "open-r1/DAPO-Math-17k-Processed"
COMMIT = "c" * 40
ROWS = [{"prompt": f"How many are {n} and 1?", "solution": str(n + 1), "data_source": "d"} for n in range(4)]
CARD = "---\nconfigs:\n- config_name: en\n  data_files:\n  - split: train\n    path: en/train-*.jsonl\n---\n"


@pytest.fixture(autouse=True)
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets
    from huggingface_hub import constants

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def a_copy(folder: Path, rows: list[dict[str, str]] | None = None) -> Path:
    """A data set's repository, as the hub's commands write it."""
    (folder / "en").mkdir(parents=True)
    (folder / "README.md").write_text(CARD, "utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in rows or ROWS)
    (folder / "en" / "train-00000.jsonl").write_text(lines, "utf-8")
    return folder


def a_shelf(lock: Path, hub_folder: Path | None = None, said: list[str] | None = None) -> Shelf:
    say = (lambda text: None) if said is None else said.append
    return Shelf(Lock(lock), str(hub_folder) if hub_folder else None, say=say)


def load(shelf: Shelf) -> list[Problem]:
    return shelf.problems("dapo", NAME, split="train", count=None)


def test_the_first_load_fills_and_says_what_was_unknown_and_the_second_compares(tmp_path: Path) -> None:
    a_copy(tmp_path / "copies" / HUB)
    said: list[str] = []
    shelf = a_shelf(tmp_path / "x.lock", tmp_path / "copies", said)
    shelf.lock.pins["dapo"] = Pin(f"{NAME} (train)", licence="apache-2.0")
    problems = load(shelf)
    assert [problem.answer for problem in problems] == ["1", "2", "3", "4"]
    assert said == [f"dapo: checksum is {checksum_of(problems)}"]
    assert shelf.lock.write()
    written = json.loads((tmp_path / "x.lock").read_text("utf-8"))["sources"]["dapo"]
    assert written == {
        "source": f"{NAME} (train)",
        "revision": UNKNOWN,
        "checksum": checksum_of(problems),
        "records": 4,
        "licence": "apache-2.0",
    }
    again: list[str] = []
    assert load(a_shelf(tmp_path / "x.lock", tmp_path / "copies", again)) == problems
    assert again == []


def test_another_content_than_the_lock_expects_is_refused(tmp_path: Path) -> None:
    a_copy(tmp_path / "copies" / HUB)
    shelf = a_shelf(tmp_path / "x.lock", tmp_path / "copies")
    load(shelf)
    shelf.lock.write()
    a_copy(tmp_path / "others" / HUB, [*ROWS[:3], {**ROWS[3], "solution": "5"}])
    with pytest.raises(
        ConfigurationError, match=r"'dapo' .* differs from the content that the lock file .*sha256:"
    ) as caught:
        load(a_shelf(tmp_path / "x.lock", tmp_path / "others"))
    assert shelf.lock.pins["dapo"].checksum in str(caught.value)


def test_a_snapshot_of_the_cache_tells_its_revision_and_only_the_pinned_one_is_used(tmp_path: Path) -> None:
    cache = tmp_path / "hub" / f"datasets--{HUB.replace('/', '--')}"
    a_copy(cache / "snapshots" / COMMIT)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT, "utf-8")
    said: list[str] = []
    shelf = a_shelf(tmp_path / "x.lock", None, said)
    assert len(load(shelf)) == 4
    assert said[0] == f"dapo: revision is {COMMIT}"
    shelf.lock.pins["dapo"] = Pin(f"{NAME} (train)", revision="d" * 40)
    with pytest.raises(ConfigurationError, match=r"Expected revision: d{40}"):
        load(shelf)
    shelf.lock.pins["dapo"] = Pin("another (train)", revision="d" * 40)
    load(shelf)
    assert shelf.lock.pins["dapo"].revision == COMMIT, "another source's revision is none of its own"


def test_without_a_copy_nothing_is_downloaded_and_the_error_says_how_to_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from small_hub import small_hub

    with small_hub(monkeypatch, f"/api/datasets/{HUB}") as asked:
        shelf = a_shelf(tmp_path / "x.lock")
        shelf.lock.pins["dapo"] = Pin(f"{NAME} (train)", checksum="sha256:abc", revision="e" * 40)
        with pytest.raises(ConfigurationError) as caught:
            load(shelf)
    assert asked == []
    for told in (NAME, HUB, "download=true", f"--revision {'e' * 40}", "hub_folder=FOLDER", "sha256:abc"):
        assert told in str(caught.value)


def test_a_download_that_was_asked_for_asks_the_hub_for_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from small_hub import small_hub

    with small_hub(monkeypatch) as asked:
        shelf = Shelf(Lock(tmp_path / "x.lock"), download=True, say=lambda text: None)
        with pytest.raises(ConfigurationError, match="has no dataset of that name"):
            load(shelf)
    assert asked[0] == f"/api/datasets/{HUB}/revision/main"


def test_a_tag_in_the_lock_is_asked_for_and_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from small_hub import small_hub

    shelf = Shelf(Lock(tmp_path / "x.lock"), download=True, say=lambda text: None)
    shelf.lock.pins["dapo"] = Pin(f"{NAME} (train)", revision="v1.0")
    with small_hub(monkeypatch) as asked, pytest.raises(ConfigurationError):
        load(shelf)
    assert asked[0] == f"/api/datasets/{HUB}/revision/v1.0"


@pytest.mark.parametrize("spec", [f"hf:{HUB}:question=prompt,answer=solution", {"hub": HUB}], ids=str)
def test_any_data_set_of_the_hub_is_looked_for_where_data_sets_are(tmp_path: Path, spec: str | dict[str, str]) -> None:
    shelf = a_shelf(tmp_path / "x.lock", tmp_path / "copies")
    with pytest.raises(ConfigurationError, match=rf"copies does not contain a copy of it.*hf download {HUB} "):
        shelf.problems("mine", spec, split="train", count=None)


def test_a_pinned_commit_is_loaded_and_the_hub_not_asked_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []

    def loaded(spec: str, **options: object) -> FixedSource:
        asked.append(options)
        return FixedSource([Problem("1", "q", "1")])

    monkeypatch.setattr(pinned, "load_problems", loaded)
    monkeypatch.setattr(pinned, "hub_commit", lambda *words: pytest.fail("the hub was asked"))
    shelf = Shelf(Lock(tmp_path / "x.lock"), download=True, say=lambda text: None)
    shelf.lock.pins["dapo"] = Pin(f"{NAME} (train)", revision=COMMIT)
    load(shelf)
    assert [options["revision"] for options in asked] == [COMMIT]


def test_rows_are_of_the_pinned_commit_and_have_the_columns_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    asked: list[object] = []
    table = datasets.Dataset.from_list([{"read": 1, "not_read": 2}])
    monkeypatch.setattr(pinned, "hub_rows", lambda *words, **where: asked.append(where["revision"]) or table)
    shelf = a_shelf(tmp_path / "x.lock")
    shelf.lock.pins["talks"] = Pin(f"{HUB} (default, train)", revision=COMMIT)
    rows = shelf.rows("talks", HUB, config=None, split="train", columns=("read", "more"), licence="mit")
    assert (rows, asked) == ([{"read": 1}], [COMMIT])


def test_a_folder_without_the_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="empty does not contain a copy of it"):
        load(a_shelf(tmp_path / "x.lock", tmp_path / "empty"))


def test_files_and_families_are_pinned_too(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text('{"question": "q", "answer": "1"}\n', "utf-8")
    shelf = a_shelf(tmp_path / "x.lock")
    shelf.problems("own", str(file), split="train", count=None)
    shelf.problems("sums", "arithmetic:level=1", split="train", count=3)
    assert [pin.records for pin in shelf.lock.pins.values()] == [1, 3]
    file.write_text('{"question": "q", "answer": "2"}\n', "utf-8")
    with pytest.raises(ConfigurationError, match="differs from the content that the lock file"):
        shelf.problems("own", str(file), split="train", count=None)


def test_a_source_gives_the_split_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text("".join(f'{{"question": "q{n}", "answer": "1"}}\n' for n in range(20)), "utf-8")
    shelf = a_shelf(tmp_path / "x.lock")
    train, test = (
        {problem.question for problem in shelf.problems(split, f"{file}:holdout=0.5", split=split, count=None)}
        for split in ("train", "test")
    )
    assert train
    assert test
    assert not train & test


def test_a_source_without_an_end_must_say_how_many(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="generates problems without end"):
        a_shelf(tmp_path / "x.lock").problems("sums", "arithmetic", split="train", count=None)


def test_another_source_under_the_same_name_begins_anew(tmp_path: Path) -> None:
    shelf = a_shelf(tmp_path / "x.lock")
    shelf.problems("sums", "arithmetic:level=1", split="train", count=3)
    shelf.problems("sums", "arithmetic:level=2", split="train", count=3)
    assert shelf.lock.pins["sums"].source == "arithmetic:level=2 (train), the first 3"


def test_another_number_of_problems_has_a_checksum_of_its_own_and_the_same_revision(tmp_path: Path) -> None:
    cache = tmp_path / "hub" / f"datasets--{HUB.replace('/', '--')}"
    a_copy(cache / "snapshots" / COMMIT)
    a_copy(cache / "snapshots" / ("d" * 40), ROWS[1:])
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT, "utf-8")
    shelf = a_shelf(tmp_path / "x.lock")
    pins = []
    for count in (2, 3, None):
        shelf.problems("dapo", NAME, split="train", count=count)
        pins.append(shelf.lock.pins["dapo"])
        (cache / "refs" / "main").write_text("d" * 40, "utf-8")  # the data set has a newer one by now
    assert [pin.records for pin in pins] == [2, 3, 4]
    assert {pin.revision for pin in pins} == {COMMIT}
    assert len({pin.checksum for pin in pins}) == 3
    assert pins[1].source == f"{NAME} (train), the first 3"


def test_a_lock_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not Lock(tmp_path / "file" / "x.lock").write()
    assert not Lock().write()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 2, "sources": {}}',
        '{"version": 1, "sources": {"a": {}}}',
        '{"version": 1, "sources": {"a": {"source": "b", "commit": "c"}}}',
    ],
)
def test_what_is_no_lock_file_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.lock").write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=r"x\.lock"):
        Lock(tmp_path / "x.lock")


def test_the_checksum_is_of_content_and_order() -> None:
    one, other = Problem("1", "a", "1", meta={"x": 1}), Problem("2", "b", "2")
    assert checksum_of([one, other]) == checksum_of([Problem("9", "a", "1"), other])
    assert checksum_of([one, other]) != checksum_of([other, one])
    assert checksum_of([]).startswith("sha256:e3b0c442")
    assert checksum_of([{"a": 1, "b": 2}]) == checksum_of([{"b": 2, "a": 1}]) != checksum_of([{"a": 2, "b": 1}])
