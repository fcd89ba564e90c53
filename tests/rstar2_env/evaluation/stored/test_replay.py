"""An episode that was kept is played again: the same where nothing changed, and what differs where something did."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.run import evaluate
from rstar2_env.evaluation.stored.replay import replay
from rstar2_env.evaluation.stored.runs import Setting, find_episode, find_stored, setting_of

MATH = "rstar2/MathTool-v0"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of three problems, with a program in each, one after the other."""
    folder = tmp_path_factory.mktemp("evaluations") / "played"
    evaluate(MATH, "oracle", problems="arithmetic:level=3", episodes=3, out=folder, workers=1)
    return folder


@pytest.fixture
def changed(played: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], None]], Path]:
    """Copies the evaluation, with something else in the line of each episode."""

    def make(change: Callable[[dict[str, Any]], None]) -> Path:
        copy = tmp_path / "changed"
        shutil.copytree(played, copy)
        (file,) = (copy / "episodes").glob("eval-*")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            change(line)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return copy

    return make


def test_what_nothing_changed_in_is_answered_the_same(played: Path) -> None:
    assert any(entry.episode.statuses for entry in find_stored(str(played)))
    for episode in ("0", "1", "2"):
        done = run("verify", "--run", played, "--episode", episode)
        assert done.exit_code == 0, done.output
        assert "identical responses" in " ".join(done.output.split())


def test_a_run_of_a_version_whose_environments_gave_no_verdict_is_answered_the_same(
    changed: Callable[[Callable[[dict[str, Any]], None]], Path],
) -> None:
    old = changed(lambda line: line["steps"][-1]["info"].pop("verdict"))
    done = run("verify", "--run", old, "--episode", "0")
    assert done.exit_code == 0, done.output


def _text(line: dict[str, Any]) -> None:
    line["messages"][3]["content"] = "<tool_response>\n999\n</tool_response>"


def _reward(line: dict[str, Any]) -> None:
    line["steps"][-1]["reward"] = 0.25


def _status(line: dict[str, Any]) -> None:
    line["steps"][0]["info"]["tool_calls"][0]["status"] = "timeout"


def _end(line: dict[str, Any]) -> None:
    line["steps"][-1]["info"]["end"] = "no_answer"


def _verdict(line: dict[str, Any]) -> None:
    line["steps"][-1]["info"]["verdict"] = {"reason": "timeout", "method": "deadline"}


def _question(line: dict[str, Any]) -> None:
    line["messages"][1]["content"] = "What?"


def _cut_off(line: dict[str, Any]) -> None:
    line["messages"], line["steps"] = line["messages"][:3], line["steps"][:1]


@pytest.mark.parametrize(
    ("change", "what", "turn"),
    [
        (_text, "text", 1),
        (_reward, "reward", -1),
        (_status, "info.tool_calls", 1),
        (_end, "info.end", -1),
        (_verdict, "info.verdict", -1),
        (_question, "text", 0),
        (_cut_off, "over", 1),
    ],
)
def test_where_the_environment_answers_otherwise_is_told(
    change: Callable[[dict[str, Any]], None], what: str, turn: int, changed: Callable[..., Path]
) -> None:
    done = run("verify", "--run", changed(change), "--episode", "1", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert not told["same"]
    found = [(one["what"], one["turn"]) for one in told["differences"]]
    assert found[-1] == (what, told["turns_stored"] if turn < 0 else turn)


def test_problems_of_a_file_are_asked_for_before_another_problem_is_replayed(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text('{"question": "1+1?", "answer": "2"}\n')
    evaluate(MATH, "oracle", problems=str(file), out=tmp_path / "run", workers=1)
    done = run("verify", "--run", tmp_path / "run", "--episode", "0")
    assert done.exit_code == 2
    assert "'own-1' of the episode cannot be found" in done.stderr
    assert "(--problems)" in done.stderr
    assert run("verify", "--run", tmp_path / "run", "--episode", "0", "--problems", file).exit_code == 0


def test_an_action_that_the_environment_refuses_ends_the_replay(played: Path) -> None:
    stored = find_episode(str(played), "0")
    episode = stored.entry.episode
    found = replay(episode, Setting(MATH, {"problems": "arithmetic:level=3", "max_turns": 1}))
    assert not found.same
    assert found.turns <= found.turns_stored


def test_an_episode_of_training_is_found_by_step_group_and_member(tmp_path: Path) -> None:
    from rstar2_env.core.run_folder import RunWriter

    with_tools = Setting(MATH, {"problems": "arithmetic:level=1", "dialect_options": {"system": ""}})
    config = {"trainer": "grpo", "rollout": {"env": with_tools.env, "env_options": dict(with_tools.env_options)}}
    writer = RunWriter(tmp_path / "run")
    writer.begin(config)
    writer.train(2, [[_played(with_tools, seed) for seed in (7, 7)]])
    stored = find_episode(str(tmp_path / "run"), "2/0/1")
    assert stored.trained
    assert setting_of(stored.run, trained=True).env_options == with_tools.env_options
    done = run("verify", "--run", tmp_path / "run", "--episode", "2/0/1")
    assert done.exit_code == 0, done.output


def _played(setting: Setting, seed: int) -> Episode:
    from rstar2_env.evaluation.play.episode import play_episode
    from rstar2_env.wrappers.make import make_env

    class Answers:
        def reset(self, observation: str, info: Any, *, seed: int) -> None:
            pass

        def act(self, observation: str, info: Any) -> str:
            return "<answer>\\boxed{1}</answer>"

    env = make_env(setting.env, **setting.env_options)
    try:
        return play_episode(env, Answers(), seed=seed)
    finally:
        env.close()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("9", "not contain the episode 9"),
        ("one", "STEP/GROUP/MEMBER"),
        ("1/0/0", "not contain the episode 1/0/0"),
    ],
)
def test_an_episode_that_is_not_there_is_told(played: Path, place: str, words: str) -> None:
    done = run("verify", "--run", played, "--episode", place)
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


def test_a_step_that_was_not_evaluated_is_told_with_those_that_were(played: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"no held-out episodes of step 5; it has held-out episodes of the steps 0"
    ):
        find_stored(f"{played}@5")


def test_an_episode_without_a_turn_cannot_be_replayed() -> None:
    with pytest.raises(ConfigurationError, match="end: unavailable\\) before its first turn"):
        replay(Episode(end="unavailable"), Setting(MATH))
