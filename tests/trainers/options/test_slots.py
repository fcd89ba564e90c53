"""The description of a part, as lists show it in a terminal."""

from __future__ import annotations

from rstar2_env.trainers.options.slots import SLOTS, parts_of


def test_the_formulas_of_a_summary_are_plain_text() -> None:
    summaries = {part.name: part.summary for part in parts_of("loss")}
    assert summaries["ppo_clip"] == "-min(ratio A, clip(ratio, 1 - low, 1 + high) A): PPO."
    assert summaries["seq_mean"].startswith("Every row has the same weight")
    every = [part.summary for slot in SLOTS for part in parts_of(slot)]
    assert [summary for summary in every if "$" in summary or "\\" in summary] == []
