"""Stored answers are graded again: what changed is listed, what cannot be graded is counted apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import EpisodeEntry, read_run
from rstar2_env.evaluation.stored.reverify import Regrading, regrade
from rstar2_env.evaluation.stored.runs import Setting
from rstar2_env.verification import Reason, Verdict
from rstar2_env.verification.named import make_verifier


def episode(index: int, answer: str | None, correct: bool, *, end: str = "answered") -> Episode:
    reward = float(correct)
    made = Episode(group=index, seed=index, problem_id=f"p{index}").begin(
        f"Question {index}?", {"problem_id": f"p{index}"}
    )
    made.step("so", ("", reward, True, False, {"end": end, "answer": answer, "correct": correct}))
    return made


STORED = [
    (episode(0, "2.001", False), "2"),
    (episode(1, "3", True), "3"),
    (episode(2, "5", True), "4"),
    (episode(3, None, False, end="unavailable"), "4"),
    (episode(4, "7", True), None),
]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    file = tmp_path / "eval.jsonl"
    lines = []
    for one, gold in STORED:
        record = one.record()
        lines.append({"index": record.pop("group"), **record, "gold": gold, "run": {"env": "rstar2/MathTool-v0"}})
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_what_another_verifier_grades_otherwise_is_listed(stored: Path) -> None:
    done = run("verify", "--run", stored, "--verifier", "numeric:tolerance=0.01", "--json")
    told = json.loads(done.stdout)
    changes = [(one["index"], one["before"], one["now"]) for one in told.pop("changes")]
    assert changes == [(0, False, True), (2, True, False)]
    assert told == {
        "verifier": "numeric:tolerance=0.01",
        "graded": 3,
        "correct_before": 2,
        "correct": 2,
        "no_gold": 1,
        "uncounted": 1,
        "unavailable": 0,
    }
    table = run("verify", "--run", stored, columns=200).output
    assert "correct before, wrong now" in table
    assert "p2" in table
    assert "p0" not in table


def test_the_new_grades_are_written_as_an_evaluation(stored: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.jsonl"
    assert run("verify", "--run", stored, "--verifier", "numeric:tolerance=0.01", "--out", out).exit_code == 0
    again = read_run(out).held_out()
    assert [entry.episode.correct for entry in again] == [True, True, False, False, True]
    assert [entry.episode.reward for entry in again] == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert again[0].episode.steps[-1].reward == 1.0
    assert again[0].more["gold"] == "2"
    assert "already exists" in run("verify", "--run", stored, "--out", out).output
    assert run("verify", "--run", stored, "--out", out, "--overwrite").exit_code == 0
    before = stored.read_bytes()
    assert "this command reads its input from" in run("verify", "--run", stored, "--out", stored, "--overwrite").output
    assert stored.read_bytes() == before


def test_gold_answers_may_come_from_a_file_of_problems(stored: Path, tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    problems.write_text(json.dumps({"id": "p4", "question": "Question 4?", "answer": "8"}) + "\n")
    done = run("verify", "--run", stored, "--problems", problems, "--json")
    told = json.loads(done.stdout)
    assert (told["no_gold"], told["graded"]) == (0, 4)
    assert [one["index"] for one in told["changes"]] == [2, 4]


def test_without_any_gold_answer_it_is_said_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "eval.jsonl"
    record = STORED[4][0].record()
    file.write_text(json.dumps({"index": record.pop("group"), **record, "run": {"env": "x"}}) + "\n")
    done = run("verify", "--run", file)
    assert done.exit_code == 2
    assert "are stored without gold answers" in " ".join(done.output.split())
    assert "--problems" in done.output


class Asked:
    """Keeps the questions that it is given, and is unavailable."""

    def __init__(self) -> None:
        self.questions: list[str | None] = []

    def __call__(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        self.questions.append(question)
        return Verdict(False, Reason.UNAVAILABLE, "none")

    async def acall(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        return self(gold, answer, question)


def _entry(user: str) -> EpisodeEntry:
    one = Episode(messages=[Message("user", user)], end="answered", answer="1", correct=True)
    return EpisodeEntry(one, 0, more={"gold": "1"})


@pytest.mark.parametrize(
    ("options", "user", "question"),
    [
        ({"dialect_options": {"instruction": "Q: %s\nGo."}}, "Q: 1+1?\nGo.", "1+1?"),
        ({"dialect_options": {"instruction": "Q: %s\nGo."}}, "Something else", None),
        ({"dialect": "fenced"}, "1+1?", "1+1?"),
        ({"dialect": "nobody knows"}, "1+1?", None),
    ],
)
def test_the_question_is_what_stands_within_the_instruction(options: Any, user: str, question: str | None) -> None:
    asked = Asked()
    found = Regrading()
    for one in regrade([_entry(user)], asked, setting=Setting("x", options)):
        found.add(one)
    assert asked.questions == [question]
    assert (found.unavailable, found.graded, found.changes) == (1, 0, [])


def test_episodes_come_in_their_order_however_many_are_graded_at_a_time() -> None:
    entries = [EpisodeEntry(episode(index, "1", True), 0, more={"gold": "1"}) for index in range(50)]
    graded = list(regrade(entries, make_verifier("rules"), threads=3))
    assert [one.entry.episode.group for one in graded] == list(range(50))
    assert all(one.graded and not one.changed for one in graded)
