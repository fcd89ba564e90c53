"""The code in the pages about rollouts and GRPO-RoC runs as it stands there."""

from __future__ import annotations

import json
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from chat_families import FAMILIES, make_tokenizer
from places import DOCS
from scripted_engine import EchoEnv, scripted
from tiny_models import tiny_qwen3

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.rollout import ChatCodec, EpisodeRequest, Player, SamplingParams


def blocks(page: str) -> list[str]:
    """The Python blocks of a page that are no mere signatures."""
    found = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return [block for block in found if not block.startswith(("async def", "def"))]


@pytest.mark.slow
def test_the_example_of_a_rollout_plays() -> None:
    code, *_ = blocks("rollout.md")
    tokenizer = make_tokenizer(FAMILIES[0])
    model = tiny_qwen3(vocab_size=len(tokenizer), max_position_embeddings=8192)
    names: dict[str, Any] = {"gym": gym, "model": model, "tokenizer": tokenizer}
    exec(code.replace("range(32)", "range(4)").replace("tokens=4096", "tokens=64"), names)
    assert [episode.group for episode in names["episodes"]] == [0] * 4
    assert all(episode.available for episode in names["episodes"])


@pytest.mark.slow
def test_the_example_of_a_scheduler_plays_on_both_engines() -> None:
    (code,) = [block for block in blocks("scheduler.md") if "Scheduler(" in block]
    engines = [scripted(lambda text: "stop", delay_s=0.001) for _ in range(2)]
    names: dict[str, Any] = {"engine": engines[0], "other_engine": engines[1], "make_env": EchoEnv}
    names |= {"ChatCodec": ChatCodec, "tokenizer": engines[0].codec.tokenizer, "Player": Player}
    names |= {"SamplingParams": SamplingParams, "EpisodeRequest": EpisodeRequest}
    exec(code, names)
    assert [episode.end for episode in names["episodes"]] == ["terminated"] * 64
    assert all(engine.calls for engine in engines)


def test_the_example_of_a_selector_chooses() -> None:
    (code,) = blocks("grpo-roc.md")
    group = [
        Episode(reward=float(i % 2), correct=bool(i % 2), answer_tags=1, turns=2, statuses=[ToolStatus.OK])
        for i in range(32)
    ]
    names: dict[str, Any] = {"np": np, "episodes": group}
    exec(code, names)
    assert len(names["kept"]) == 16
    assert sum(group[i].correct for i in names["kept"]) == 8


def test_the_ratios_of_schedules_are_those_of_their_table():
    results = json.loads((DOCS / "data" / "scheduler_sim.json").read_text("utf-8"))
    _, lock_step, static, aware, _, known, *_ = (
        [cell.strip("*").replace(",", "") for cell in row[1:]] for row in results["tables"]["makespans"]
    )
    slower, gains, longer = (
        [float(a) / float(b) for a, b in zip(one, other, strict=True)]
        for one, other in ((lock_step, aware), (aware, static), (aware, known))
    )
    gains = [1 - ratio for ratio in gains if ratio != 1]
    others, most = [*longer[:2], longer[4]], longer[2:4]
    figures = results["figures"]
    assert figures["lock_step_to_kv_aware"] == pytest.approx({"least": min(slower), "most": max(slower)}, abs=1e-6)
    assert figures["gain_over_static"] == pytest.approx({"least": min(gains), "most": max(gains)}, abs=1e-6)
    assert figures["above_hindsight"] == pytest.approx(
        {
            "least": min(others) - 1,
            "most": max(others) - 1,
            "least_at_4K_and_6K": min(most) - 1,
            "most_at_4K_and_6K": max(most) - 1,
        },
        abs=1e-6,
    )
