"""What is known of an episode's problem, and why its answer was graded so, is there of training as of an evaluation."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_runs import write_training
from printed_view import text_view
from rich.console import Console

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import EpisodeEntry, RunWriter, read_run
from rstar2_env.core.turn import Turn
from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import find_episode, list_episodes
from rstar2_env.view.queries.figures import columns_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps, with held-out episodes."""
    made = tmp_path_factory.mktemp("runs") / "run"
    write_training(made, steps=2, eval_every=2)
    return made


@pytest.fixture(scope="module")
def index(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunIndex]:
    """Its index."""
    with RunIndex(folder, tmp_path_factory.mktemp("cache")) as opened:
        assert opened.refresh()
        yield opened


def entries(folder: Path) -> list[EpisodeEntry]:
    run = read_run(folder)
    of_training = [entry for step in run.steps for entry in run.episodes(step)]
    return of_training + [entry for step in run.evaluated_steps for entry in run.held_out(step)]


@pytest.mark.parametrize("split", ["train", "eval"])
def test_an_episode_has_its_gold_answer_and_the_reason_of_its_grade(index: RunIndex, split: str) -> None:
    rows = list_episodes(index, {"split": split, "limit": "1000"})["rows"]
    reasons = Counter[Any]()
    for row in rows:
        line = find_episode(index, row["key"])
        assert line["gold"]
        verdict = line["verdict"]
        assert (verdict is None) is (line["answer"] is None), "nothing was graded without an answer"
        if verdict is not None:
            assert verdict["reason"] == ("equal" if line["answer"] == line["gold"] else "different")
            reasons[verdict["reason"]] += 1
    assert set(reasons) == {"equal", "different"}


@pytest.mark.parametrize("name", ["problem_source", "difficulty"])
def test_episodes_are_chosen_by_source_and_difficulty_of_their_problem(
    folder: Path, index: RunIndex, name: str
) -> None:
    counts = Counter(entry.more[name] for entry in entries(folder))
    assert len(counts) > 1
    (column,) = (one for one in columns_of(index) if one["name"] == name)
    assert {one["value"]: one["count"] for one in column["values"]} == counts
    for value, count in counts.items():
        assert list_episodes(index, {name: value})["total"] == count


def one_episode(folder: Path, steps: list[Turn]) -> dict[str, Any]:
    """The line of an episode with such turns, in a run that says nothing of problems, as the page gets it."""
    writer = RunWriter(folder / "run")
    writer.begin({})
    said = [Message("user", "?"), Message("assistant", "1")]
    writer.train(1, [[Episode(problem_id="p", messages=said, steps=steps, turns=len(steps), end="answered")]])
    with RunIndex(folder / "run", folder / "cache") as opened:
        assert opened.refresh()
        return find_episode(opened, "train-1-0")


@pytest.mark.parametrize(
    "infos",
    [
        [],
        [{}],
        [{"end": "answered", "correct": True}],
        [{"verdict": {"reason": "different", "method": "number"}}, {"end": "turns"}],
        [{"verdict": "fine"}],
        [{"verdict": {"reason": ["x"]}}],
    ],
    ids=["no turn", "no info", "an earlier version", "an earlier answer", "another form", "another reason"],
)
def test_where_no_verdict_was_kept_there_is_none(tmp_path: Path, infos: list[dict[str, Any]]) -> None:
    line = one_episode(tmp_path, [Turn(info=info) for info in infos])
    assert line["verdict"] is None
    assert line["gold"] is None


def test_a_verdict_without_a_method_is_shown_with_its_reason(tmp_path: Path) -> None:
    line = one_episode(tmp_path, [Turn(info={"verdict": {"reason": "over budget"}})])
    assert line["verdict"] == {"reason": "over budget", "method": ""}


def test_the_terminal_shows_both(folder: Path, tmp_path: Path) -> None:
    right = next(f"train-1-{number}" for number, one in enumerate(read_run(folder).episodes(1)) if one.episode.correct)
    out = io.StringIO()
    Console(file=out, width=100).print(*text_view([folder], key=right, cache=tmp_path / "cache"))
    assert "the answer is correct (number)" in out.getvalue()
    assert "Gold answer" in out.getvalue()
