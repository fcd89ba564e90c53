"""The filter keeps problems by how they were played: those very ones, of one split."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scripted_engine import call

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.run import evaluate
from rstar2_env.problems import load_problems
from rstar2_env.testing import StubSandbox
from rstar2_env.trainers.pipeline import playing
from rstar2_env.trainers.pipeline.base import Work
from rstar2_env.trainers.pipeline.stages.filter import Filter


class Seven:
    """Answers 7, whatever is asked."""

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Nothing to remember."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The answer."""
        return "<answer>\\boxed{7}</answer>"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the problems that are played; an agent plays in the model's place."""
    ids: list[str] = []

    def agent_plays(env: str, *, model: str, **options: Any) -> Any:
        for name in ("engine", "engine_options", "model_options"):
            del options[name]
        result = evaluate(env, Seven, **options)
        ids.extend(result.tally.problems)
        return result

    monkeypatch.setattr(playing, "evaluate", agent_plays)
    return ids


def sevens(file: Path) -> Path:
    """Forty problems, of which every second one has the answer 7."""
    problems = ({"id": f"p{n}", "question": f"Say {n}.", "answer": "8" if n % 2 else "7"} for n in range(40))
    file.write_text("".join(json.dumps(one) + "\n" for one in problems), "utf-8")
    return file


def test_the_problems_that_were_played_are_those_that_are_kept_or_dropped(asked: list[str], tmp_path: Path) -> None:
    spec = f"{sevens(tmp_path / 'x.jsonl')}:holdout=0.4"
    train = [problem.id for problem in load_problems(spec, split="train")]
    figures = Filter(model="m", problems=spec, n=1).run(Work(tmp_path / "stage"))
    assert sorted(asked) == sorted(train)
    kept = [problem.id for problem in load_problems(tmp_path / "stage" / "problems.jsonl")]
    assert kept == [id for id in train if int(id[1:]) % 2]
    assert figures == {"kept": len(kept), "dropped": len(train) - len(kept)}
    assert 0 < len(kept) < len(train) < 40


def test_another_split_is_asked_for_with_the_problems(asked: list[str], tmp_path: Path) -> None:
    spec = f"{sevens(tmp_path / 'x.jsonl')}:holdout=0.4,split=test"
    Filter(model="m", problems=spec, n=1).run(Work(tmp_path / "stage"))
    assert sorted(asked) == sorted(problem.id for problem in load_problems(spec))


def test_problems_that_were_not_chosen_to_be_played_are_not_kept(asked: list[str], tmp_path: Path) -> None:
    Filter(model="m", problems=str(sevens(tmp_path / "x.jsonl")), n=1, episodes=10).run(Work(tmp_path / "stage"))
    assert {problem.id for problem in load_problems(tmp_path / "stage" / "problems.jsonl")} < set(asked)
    assert len(asked) == 10


def test_a_problem_of_which_no_episode_counts_is_kept(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Seven().act("", {})
    monkeypatch.setattr(Seven, "act", lambda self, said, info: call("7") if "Say 0." in said else answer)
    sandbox = StubSandbox(lambda job: ToolStatus.UNAVAILABLE)
    spec = str(sevens(tmp_path / "x.jsonl"))
    Filter(model="m", problems=spec, n=1, env_options={"sandbox": sandbox}).run(Work(tmp_path / "stage"))
    kept = [problem.id for problem in load_problems(tmp_path / "stage" / "problems.jsonl")]
    assert kept == ["p0", *(f"p{n}" for n in range(1, 40, 2))]


def test_problems_that_are_never_solved_are_dropped_below_a_bound(asked: list[str], tmp_path: Path) -> None:
    options = {"model": "m", "problems": str(sevens(tmp_path / "x.jsonl")), "n": 1}
    assert Filter(**options, drop_below=0.5, drop_from=2).run(Work(tmp_path / "stage")) == {"kept": 20, "dropped": 20}
    assert all(int(problem.id[1:]) % 2 == 0 for problem in load_problems(tmp_path / "stage" / "problems.jsonl"))
    with pytest.raises(ConfigurationError, match=r"removed all 40 problems.*Use other problems"):
        Filter(**options, drop_below=0.5).run(Work(tmp_path / "stage"))


def test_what_is_expected_to_be_left_is_no_reason_to_play_again() -> None:
    stages = [Filter(model="m", problems="x.jsonl", expect=expect) for expect in (None, 10)]
    assert stages[0].resolved() == stages[1].resolved()


def test_a_source_without_an_end_is_refused_before_anything_is_played(asked: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"arithmetic.* without end.* stage of the kind data.*\(problems="):
        Filter(model="m", problems="arithmetic", n=1, episodes=3).run(Work(tmp_path / "stage"))
    assert asked == []


def test_a_set_without_problems_to_train_on_is_refused_before_anything_is_played(
    asked: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"aime24 has only the split test, not 'train'"):
        Filter(model="m", problems="aime24", n=1).run(Work(tmp_path / "stage"))
    assert asked == []
