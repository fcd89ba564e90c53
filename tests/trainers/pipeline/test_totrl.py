"""The pipeline ``totrl`` in miniature: two stages with the same instruction, the second with thinking switched on."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.run import run_pipeline

AutoTokenizer = pytest.importorskip("transformers").AutoTokenizer

pytestmark = pytest.mark.train

TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant{% if enable_thinking %} thinks{% endif %}: {% endif %}"
)
SHORT = {"max_episode_tokens": 8, "max_turn_tokens": 8}


def settings(model: str) -> dict[str, Any]:
    options = {
        "rollout": {"problems_per_step": 8, "group_size": 2, **SHORT},
        "threads": 1,
        "run": {"keep_tokens": True},
        "tokens_per_device": 4096,
        "chat_template": TEMPLATE,
        "eval": {"every": 0, "episodes": 2},
    }
    return {
        "no_think": {"model": model, "steps": 1, "options": options},
        "think": {"steps": 1, "options": options},
        "after": {"episodes": 2, "n": 1, "model_options": {**SHORT, "chat_template": TEMPLATE}},
    }


def test_both_stages_ask_for_a_tree_of_thoughts_and_only_the_second_thinks(tiny_model, tmp_path):
    folder = tmp_path / "run"
    pipeline = read_pipeline(find_pipeline("totrl"), settings(str(tiny_model)))
    run_pipeline(pipeline, folder, progress=False)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    thinks, tasks = {}, set()
    for stage in ("no_think", "think"):
        run = read_run(folder / "stages" / stage)
        entries = run.episodes(1)
        assert entries
        first = [next(one.content for one in entry.episode.messages if one.role == "user") for entry in entries]
        assert all("Search a tree of thoughts." in text for text in first)
        tasks |= {entry.episode.problem_id.partition(":")[0] for entry in entries}
        texts = [tokenizer.decode(one.prompt_ids) for one in run.tokens(1)]
        thinks[stage] = {text.rstrip().endswith("thinks:") for text in texts}
    assert thinks == {"no_think": {False}, "think": {True}}
    assert tasks == {"sudoku", "alphametic"}
