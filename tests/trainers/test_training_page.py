"""The examples of docs/training.md and docs/options.md that make a trainer run, with a tiny model and few steps."""

from __future__ import annotations

import functools

import pytest
from page_blocks import fenced
from places import DOCS

from rstar2_env import trainers
from rstar2_env.trainers.advantages.group import GroupMean
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

SMALL = {
    "steps": 1,
    "problems_per_step": 2,
    "group_size": 2,
    "max_episode_tokens": 320,
    "max_turn_tokens": 8,
    "progress": False,
}


def block(text: str) -> str:
    """The block of Python on the pages that has a text."""
    blocks = [one for page in ("training.md", "options.md") for one in fenced(DOCS / page)]
    (found,) = [one.text for one in blocks if one.language == "python" and text in one.text]
    return found


@pytest.fixture
def model(tmp_path, monkeypatch) -> str:
    """A model and problems in the current folder; trainers are small unless they say otherwise."""
    monkeypatch.chdir(tmp_path)
    lines = [f'{{"question": "What is {n} + 1?", "answer": "{n + 1}"}}\n' for n in range(8)]
    (tmp_path / "FILE.jsonl").write_text("".join(lines))
    monkeypatch.setattr(trainers, "make", functools.partial(trainers.make, **SMALL))
    return str(make_tiny_model("PATH", hidden=32, layers=1))


@pytest.mark.train
def test_the_first_example_trains(model):
    scope = {}
    exec(block("trainer = trainers.make("), scope)
    result = scope["result"]
    assert (result.model_dir / "config.json").is_file()
    assert len(result.history) == 1
    assert {"before", "after"} <= set(dir(result))


def test_a_part_may_be_a_class_or_a_function(model):
    from transformers import TrainerCallback

    def my_selector(group, keep, rng):
        return list(range(keep))

    scope = {"trainers": trainers, "my_selector": my_selector, "MyAdvantage": GroupMean, "MyCallback": TrainerCallback}
    code = block("selector=my_selector")
    exec(f"trainer = {code}", scope)
    parts = scope["trainer"].config.parts
    scope["trainer"].close()
    assert "my_selector" in parts.selector.name
    assert "GroupMean" in parts.advantage.name
