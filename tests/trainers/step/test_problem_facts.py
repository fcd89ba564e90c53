"""The folder of a training run says of each episode's problem what an evaluation says, and its answer's verdict."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_reader import check_page_reader

from rstar2_env import trainers
from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import EpisodeEntry, read_run
from rstar2_env.dialects.rstar2 import Rstar2Dialect
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.evaluation.run import evaluate
from rstar2_env.problems import Problem, load_problems
from rstar2_env.trainers.step.problem_facts import MOST_GOLD, about_problems
from rstar2_env.verification import Reason

LETTERS = [
    {"id": f"{source}{n}", "question": f"Say {n}.", "answer": answer, "source": source, "level": n}
    for source, answer in (("front", "ab"), ("back", "yz"))
    for n in range(4)
]


class WholeTurn(Rstar2Dialect):
    """What the policy writes is its answer, so that a model that knows nothing gives some."""

    def answer(self, turns: Any) -> str | None:
        return turns[-1].strip() or None


class Letters(ToolEnv):
    """One turn, graded against the gold answer by the rules."""

    def __init__(self, *, split: str = "train") -> None:
        dialect = WholeTurn(system="", instruction="")
        super().__init__(problems=LETTERS, tools=[], grader=GoldGrader(), dialect=dialect)


def test_the_keys_and_values_are_those_of_an_evaluation(tmp_path: Path) -> None:
    written = list(read_run(evaluate_letters(tmp_path / "eval")).held_out())
    about = about_problems(load_problems(LETTERS))
    assert len(written) == len(LETTERS)
    for entry in written:
        said = about(entry.episode)
        assert said["gold"]
        assert {name: entry.more[name] for name in said} == said


def evaluate_letters(folder: Path) -> Path:
    evaluate(Letters, "random_text", out=folder, workers=1)
    return folder


def test_nothing_is_said_of_a_problem_that_the_source_does_not_have() -> None:
    about = about_problems(load_problems(LETTERS))
    assert about(Episode(problem_id="front1"))["gold"] == "ab"
    assert about(Episode(problem_id="front1+proposed")) == about(Episode()) == {}
    assert about_problems(None)(Episode(problem_id="front1")) == {}


@pytest.mark.parametrize(("length", "kept"), [(MOST_GOLD, True), (MOST_GOLD + 1, False)])
def test_a_gold_answer_is_recorded_whole_or_not_at_all(length: int, kept: bool) -> None:
    source = load_problems([{"id": "p", "question": "?", "answer": "7" * length, "difficulty": "hard"}])
    said = about_problems(source)(Episode(problem_id="p"))
    assert said["gold"] == ("7" * length if kept else None)
    assert said["difficulty"] == "hard"


@dataclasses.dataclass
class Failing:
    """A source of one's own that cannot find a problem by its id."""

    name: str = "failing"
    split: str = "train"
    asked: Counter[str] = dataclasses.field(default_factory=Counter)

    def __getitem__(self, index: int, /) -> Problem:
        raise IndexError

    def __iter__(self) -> Iterator[Problem]:
        return iter(())

    def get(self, problem_id: str) -> Problem:
        self.asked[problem_id] += 1
        raise OSError("the disk is on fire")

    def sample(self, rng: Any) -> Problem:
        raise IndexError


def test_a_source_that_fails_is_told_once_a_problem_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    source = Failing()
    about = about_problems(source)
    with caplog.at_level(logging.WARNING):
        assert [about(Episode(problem_id="p")) for _ in range(3)] == [{}] * 3
    assert source.asked == {"p": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "The source, the difficulty and the gold answer of the problem 'p' are not recorded, because the problem could "
        "not be read."
    ]


def check(entries: list[EpisodeEntry]) -> None:
    """Each entry says what its problem is, and why its answer is right or wrong."""
    problems = {str(one["id"]): one for one in LETTERS}
    verdicts = []
    for entry in entries:
        episode, problem = entry.episode, problems[entry.episode.problem_id]
        assert entry.more["gold"] == problem["answer"]
        assert entry.more["problem_source"] == problem["source"]
        assert entry.more["difficulty"] == str(problem["level"])
        info = episode.steps[-1].info
        assert ("verdict" in info) is (episode.answer is not None), "graded, or nothing to grade"
        if "verdict" in info:
            assert set(info["verdict"]) == {"reason", "method"}
            assert (info["verdict"]["reason"] == Reason.EQUAL) is episode.correct
            verdicts.append(info["verdict"]["reason"])
    assert verdicts
    assert set(verdicts) <= set(Reason)


@pytest.mark.train
def test_episodes_of_training_and_held_out_ones_say_it(letter_options: dict[str, Any]) -> None:
    trainer = trainers.make(
        "grpo_clip_higher", **{**letter_options, "env": Letters, "eval": {"every": 2, "episodes": 8}}
    )
    try:
        folder = trainer.train().output_dir
    finally:
        trainer.close()
    run = read_run(folder)
    check([entry for step in (1, 2) for entry in run.episodes(step)])
    check([entry for step in (0, 2) for entry in run.held_out(step)])
    check_page_reader(folder)


@pytest.mark.train
def test_an_environment_without_problems_says_nothing_of_them(letter_options: dict[str, Any]) -> None:
    trainer = trainers.make("grpo_clip_higher", **{**letter_options, "steps": 1, "eval": {"every": 1, "episodes": 4}})
    try:
        folder = trainer.train().output_dir
    finally:
        trainer.close()
    run = read_run(folder)
    for entry in [*run.episodes(1), *run.held_out(1)]:
        assert not {"gold", "problem_source", "difficulty"} & set(entry.more)
