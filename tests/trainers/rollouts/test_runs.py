"""A run of RuscaRL on TRL: rubrics help to play, a judge pays by them, and nobody trains under them."""

from __future__ import annotations

import re

import pytest
from asked_run import Sums
from scripted_policy import engine_kind
from transformers import AutoTokenizer

from rstar2_env import trainers
from rstar2_env.core.run_folder import read_run
from rstar2_env.rollout.engines.registry import ENGINES

pytestmark = pytest.mark.train


def guesses(text, rng):
    """What a policy says to a sum."""
    return f"It is {7 + int(rng.integers(9))}"


async def likes_even(prompt):
    """A judge that finds every point met by an even number."""
    return "YES" if int(re.findall(r"It is (\d+)", prompt)[-1]) % 2 == 0 else "NO"


def test_ruscarl_takes_two_steps_and_its_folder_shows_both_prompts(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES._parts, "scripted", engine_kind(guesses))
    trainer = trainers.make(
        "ruscarl",
        model=str(tiny_model),
        env=Sums,
        engine="scripted",
        judge=likes_even,
        output_dir=str(tmp_path / "run"),
        steps=2,
        problems_per_step=2,
        group_size=4,
        max_episode_tokens=40,
        learning_rate=1e-3,
        keep_tokens=True,
        save_every=0,
        progress=False,
    )
    try:
        result = trainer.train()
    finally:
        trainer.close()
    assert [line["step"] for line in result.history if "loss" in line] == [1, 2]
    assert max(line.get("grad_norm", 0.0) for line in result.history) > 0
    run, tokenizer = read_run(result.output_dir), AutoTokenizer.from_pretrained(tiny_model)
    for group in run.groups(1):
        # round(4 * (1, 2/3, 1/3, 0)) of four points at the first step of two; at the second nothing is left.
        assert [len(re.findall(r"- Point", entry.episode.shown)) for entry in group] == [4, 3, 1, 0]
        assert all("Point" not in entry.episode.messages[0].content for entry in group)
        assert {entry.episode.rewards["rubric"] for entry in group} <= {0.0, 1.0}
    assert not any(entry.episode.shown for entry in run.episodes(2))
    rows = run.tokens(1)
    assert [len(row.shown_ids) > 0 for row in rows] == [row.member < 3 for row in rows]
    assert all("Point" not in tokenizer.decode(row.prompt_ids) for row in rows)
    assert all("Point" in tokenizer.decode(row.shown_ids) for row in rows if row.shown_ids)
