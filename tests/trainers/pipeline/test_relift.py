"""The pipeline ``relift`` in miniature: fine-tuning between the steps teaches what RL alone cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.plan import PipelinePlan
from rstar2_env.trainers.pipeline.run import run_pipeline
from rstar2_env.trainers.pipeline.stages.relift import Relift
from rstar2_env.trainers.pipeline.state import states_of

pytestmark = pytest.mark.train

ENV = {"dialect_options": {"system": "", "instruction": ""}, "max_turns": 1}
ANSWER = "<answer>\\boxed{7}</answer>"
STEPS, SIZE, SHOWN = 24, 3, 6
"""Steps of the run, problems of one step of fine-tuning, and problems that have a demonstration, of eight."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    problems = [{"id": f"p{n}", "question": f"Say it {n}", "answer": "7"} for n in range(8)]
    shown = [
        {
            "problem_id": f"p{n}",
            "messages": [{"role": "user", "content": f"Say it {n}"}, {"role": "assistant", "content": ANSWER}],
        }
        for n in range(SHOWN)
    ]
    for name, records in (("problems", problems), ("shown", shown)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return str(tmp_path / "problems.jsonl"), str(tmp_path / "shown.jsonl")


def settings(model: str, problems: str, shown: str, **rl: Any) -> dict[str, Any]:
    short = {"max_episode_tokens": 8, "max_turn_tokens": 8}
    options = {
        "problems_per_step": 4,
        "group_size": 4,
        "oversample": 1,
        "learning_rate": 1e-3,
        "tokens_per_device": 1024,
        "threads": 1,
        "eval": {"every": STEPS, "episodes": 8, "temperature": 1.0, "env": ENV},
        "env": ENV,
        **short,
    }
    return {
        "data": {"problems": problems, "held_out": problems, "count": 8, "held_out_count": 1},
        "demonstrations": {"problems": "arithmetic:level=1", "episodes": 2},
        "rl": {
            "model": model,
            "problems": problems,
            "held_out": problems,
            "demonstrations": shown,
            "steps": STEPS,
            "size": SIZE,
            "sft_learning_rate": 0.025,
            "options": options,
            **rl,
        },
        "after": {"problems": problems, "n": 8, "env_options": ENV, "model_options": short},
    }


def test_it_learns_what_nobody_solved_and_only_that(tiny_model, tmp_path, files):
    folder = tmp_path / "run"
    pipeline = read_pipeline(find_pipeline("relift"), settings(str(tiny_model), *files))
    run_pipeline(pipeline, folder, progress=False)
    found = {name: state.figures for name, state in states_of(read_run(folder).events).items()}
    assert found["rl"]["pass_rate_before"] == 0
    assert found["after"]["pass_rate"] > 0, found

    rl = read_run(folder / "stages" / "rl")
    assert rl.recipe["advantage"]["name"] == "group_mean"
    noted = [note["step"] for note in rl.notes if "SFT step" in note["text"]]
    assert found["rl"]["sft_steps"] == len(noted) > 0
    waiting: list[str] = []
    for step in range(1, STEPS + 1):
        unsolved = [
            group[0].episode.problem_id for group in rl.groups(step) if not any(one.episode.correct for one in group)
        ]
        shown = [name for name in dict.fromkeys(unsolved) if int(name[1:]) < SHOWN]
        waiting[:0] = [name for name in shown if name not in waiting]
        assert (step in noted) == (len(waiting) >= SIZE), step
        if len(waiting) >= SIZE:
            del waiting[:SIZE]


def test_it_takes_the_demonstrations_of_the_stage_before(tmp_path):
    plan = PipelinePlan(read_pipeline(find_pipeline("relift")), tmp_path)
    plan.check()
    (given,) = plan.made["rl"].given["demonstrations"]
    assert (given.step, given.output, given.kind) == ("demonstrations", "traces", "traces")


def test_without_demonstrations_it_is_refused_and_where_they_lie_does_not_count(tiny_model, files):
    shown = files[1]
    with pytest.raises(ConfigurationError, match="`demonstrations` is required"):
        Relift(model=str(tiny_model)).resolved()
    other = Path(shown).with_name("other.jsonl")
    other.write_text(Path(shown).read_text())
    one, two = (Relift(model=str(tiny_model), demonstrations=str(path)).resolved() for path in (shown, other))
    assert one == two
    assert one != Relift(model=str(tiny_model), demonstrations=shown, size=2).resolved()
