"""The pipeline ``ra3`` in miniature: thoughts that cost too much go away, and the expert's lines are learned."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.rewards.latent_action import ACT, log_likelihood
from rstar2_env.trainers.pipeline import likelihood
from rstar2_env.trainers.pipeline.base import Work
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.likelihood import Likelihood
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.run import run_pipeline
from rstar2_env.trainers.pipeline.stages.annotate import Annotate
from rstar2_env.trainers.pipeline.state import states_of

pytestmark = pytest.mark.train

LINES = ("aaaa", "bbbb")


def write(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return str(path)


def solutions(folder: Path, lines: int = 1) -> str:
    """Problems whose solutions are one or two of two lines, as their questions say."""
    made = ["\n".join((LINES[n % 2], LINES[n // 2 % 2])[:lines]) for n in range(8)]
    records = [{"id": f"p{n}", "question": f"p{n}", "answer": "1", "solution": one} for n, one in enumerate(made)]
    return write(folder / "problems.jsonl", records)


@pytest.fixture(scope="module")
def thinker(tiny_model, tmp_path_factory) -> str:
    """A model that thinks every second time, and then writes what it thought of; else either line."""
    folder = tmp_path_factory.mktemp("thinker")
    turns = [f"{latent}\n{line}" for line in LINES for latent in (f"<think> {line[0]}", ACT)] * 8
    traces = [
        {"messages": [{"role": "user", "content": f"p{n // 4}"}, {"role": "assistant", "content": turn}]}
        for n, turn in enumerate(turns)
    ]
    options = {"model": str(tiny_model), "output_dir": str(folder / "model"), "batch_size": 16, "threads": 1}
    found = trainers.sft(traces, **options, steps=80, learning_rate=0.02, save_every=0, progress=False)
    return str(found)


def test_every_line_is_a_problem_whose_state_holds_those_before(tmp_path):
    stage = Annotate(problems=solutions(tmp_path, lines=2), count=3, instruction="Go on.\n")
    out = tmp_path / "out"
    out.mkdir()
    figures = stage.run(Work(out))
    assert figures == {"lines": 6.0, "thoughts": 0.0}
    problems = [json.loads(line) for line in (out / "problems.jsonl").read_text().splitlines()]
    assert [one["id"] for one in problems] == ["p0/0", "p0/1", "p1/0", "p1/1", "p2/0", "p2/1"]
    assert (problems[3]["question"], problems[3]["answer"]) == ("Go on.\np1\nbbbb", "aaaa")
    traces = [json.loads(line) for line in (out / "traces.jsonl").read_text().splitlines()]
    assert traces[3]["messages"][1]["content"] == "<act>\naaaa"
    with pytest.raises(ConfigurationError, match="the field 'solution'"):
        Annotate(problems=str(out / "problems.jsonl")).run(Work(out))


def test_what_was_drawn_before_a_kill_is_not_drawn_again(tmp_path):
    stage, out = Annotate(problems=solutions(tmp_path), count=2), tmp_path / "out"
    out.mkdir()
    drawn = {"number": 1, "lines": [{"state": "before", "line": "aaaa", "latent": "<think> a"}]}
    for resumed, expected in ((True, "before"), (False, "p1")):
        write(out / "drawn.jsonl", [drawn])
        with (out / "drawn.jsonl").open("a") as file:
            file.write('{"number": 0, "li')  # a kill in the middle of a line
        figures = stage.run(Work(out, resumed=resumed))
        assert figures == {"lines": 2.0, "thoughts": 0.5 if resumed else 0.0}
        made = [json.loads(line) for line in (out / "traces.jsonl").read_text().splitlines()]
        assert [one["problem_id"] for one in made] == ["p0", "p1"]
        assert made[1]["messages"][0]["content"].endswith(expected)
        assert len((out / "drawn.jsonl").read_text().splitlines()) == 2  # a kill from here on draws nothing again


class Drawer:
    """A model that thinks before every second line, and finds lines likelier after a thought."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.seeds: list[int] = []
        self.chat = self

    def prompt(self, system: str, text: str) -> list[int]:
        self.prompts.append(text)
        return self.encode(text)

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    async def line(self, prompt_ids: Any, *, temperature: float, max_tokens: int, seed: int) -> str:
        self.seeds.append(seed)
        return "<think> so" if len(self.seeds) % 2 else "<act>"

    async def score(self, prompt_ids: Any, ids: Any) -> list[float]:
        return [-1.0 if bytes(prompt_ids).endswith(b"<think> so\n") else -2.0] * len(ids)


def test_a_state_holds_the_thoughts_before_it_and_figures_are_of_the_lines_after_their_latents(tmp_path, monkeypatch):
    drawer = Drawer()
    monkeypatch.setattr(likelihood, "Likelihood", lambda *args, **more: contextlib.nullcontext(drawer))
    monkeypatch.setattr(drawer, "each", lambda work, done: [asyncio.run(make()) for make in work], raising=False)
    problems = write(tmp_path / "p.jsonl", [{"id": "p", "question": "Q", "answer": "1", "solution": "a\n\n b\nc"}])
    figures = Annotate(problems=problems, model="m", instruction="Go on.\n").run(Work(tmp_path, seed=3))
    states = ["Go on.\nQ", "Go on.\nQ\n<think> so\na", "Go on.\nQ\n<think> so\na\nb"]
    assert drawer.prompts == states
    made = [json.loads(line) for line in (tmp_path / "problems.jsonl").read_text().splitlines()]
    assert [(one["question"], one["answer"]) for one in made] == list(zip(states, "abc", strict=True))
    turns = [json.loads(line)["messages"] for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    assert [one[0]["content"] for one in turns] == states
    assert [one[1]["content"] for one in turns] == ["<think> so\na", "<act>\nb", "<think> so\nc"]
    assert figures["thoughts"] == pytest.approx(2 / 3)
    assert (figures["nll"], figures["nll_act"]) == (4 / 3, 2.0)
    assert len(set(drawer.seeds)) == 3


def test_of_a_real_model_a_thought_that_says_the_line_raises_its_likelihood(thinker):
    async def raised(model: Likelihood, thought: str, line: str) -> float:
        prompt = model.chat.prompt("", "p0")
        after = await log_likelihood(model, prompt, thought, line)
        return after - await log_likelihood(model, prompt, ACT, line)

    with Likelihood(thinker, engine="transformers", engine_options={}, model_options={}) as model:
        right, wrong = asyncio.run(_both(raised(model, "<think> a", "aaaa"), raised(model, "<think> b", "aaaa")))
    assert wrong < -0.5
    assert right > 0.2  # it is at most log 2, as there are two lines
    assert right < math.log(2) + 0.5


async def _both(one: Any, other: Any) -> tuple[float, float]:
    return await one, await other


def test_a_thought_that_costs_too_much_is_given_up_and_the_lines_are_learned(thinker, tmp_path):
    short = {"threads": 1, "batch_size": 16, "learning_rate": 0.01, "warmup_ratio": 0.0, "save_every": 0}
    options = {
        "reward": "latent_action:cost=5",
        "problems_per_step": 8,
        "group_size": 8,
        "max_episode_tokens": 12,
        "max_turn_tokens": 12,
        "learning_rate": 5e-3,
        "tokens_per_device": 4096,
        "threads": 1,
    }
    settings: dict[str, Any] = {
        "data": {"problems": solutions(tmp_path), "held_out": solutions(tmp_path), "held_out_count": 2},
        "lines": {"instruction": ""},
        "em": {"rounds": 1},
        "explore": {"model": thinker, "steps": 8, "options": options},
        "thoughts": {"instruction": "", "max_thought_tokens": 12},
        "learn": {"steps": 12, "options": short},
        "after": {"instruction": "", "max_thought_tokens": 12, "problems": "data.train"},
    }
    before = Annotate(problems=solutions(tmp_path), model=thinker, instruction="", max_thought_tokens=12)
    (tmp_path / "before").mkdir()
    thought = before.run(Work(tmp_path / "before"))
    assert thought["thoughts"] > 0, thought

    folder = tmp_path / "run"
    run_pipeline(read_pipeline(find_pipeline("ra3"), settings), folder, progress=False)
    found = {name: state.figures for name, state in states_of(read_run(folder).events).items()}
    assert found["lines"] == {"lines": 6.0, "thoughts": 0.0}
    played = {entry.episode.messages[0].content for entry in read_run(folder / "stages/explore-1").episodes(1)}
    traces = (folder / "stages/lines/traces.jsonl").read_text("utf-8").splitlines()
    assert played <= {json.loads(line)["messages"][0]["content"] for line in traces}  # the states, to the letter
    # E-step: at a cost that no thought is worth, the policy stops thinking.
    assert found["thoughts-1"]["thoughts"] < thought["thoughts"] / 2, found
    # M-step: the expert's lines become likelier; where nothing is thought, latents make no difference.
    assert found["after"]["nll"] < found["thoughts-1"]["nll"] - 0.1, found
    rewards = [line["rollout/reward"] for line in read_run(folder / "stages/explore-1").metrics()]
    assert rewards[-1] > rewards[0]
