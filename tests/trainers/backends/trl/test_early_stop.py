"""Groups that are stopped early: which selectors allow it, and what a run counts of the episodes that it cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.base import TRAINERS, Recipe


def test_a_trainer_refuses_early_stop_with_a_selector_that_cannot_say_when() -> None:
    class Blunt:
        def __call__(self, group: Any, keep: int, rng: Any) -> list[int]:
            return []

    recipe = Recipe(name="x", selector=Blunt)
    recipe.configure({"model": "m"})
    with pytest.raises(ConfigurationError, match=r"early_stop.*Blunt.*settled"):
        recipe.configure({"model": "m", "early_stop": True})
    for name in ("grpo_clip_higher", "grpo_roc"):
        TRAINERS.get(name).configure({"model": "m", "early_stop": True})


def test_a_run_that_stops_early_counts_what_it_cancelled_nowhere(letter_options: dict[str, Any]) -> None:
    pytest.importorskip("trl")
    from rstar2_env.trainers import make

    trainer = make(
        "grpo_clip_higher", **letter_options, oversample=3, early_stop=True, max_in_flight=4, max_episode_seconds=60
    )
    result = trainer.train()
    trainer.close()
    for figures in result.history:
        if "rollout/cancelled" in figures:
            assert figures["rollout/cancelled"] >= 0.5
            assert figures["rollout/unavailable"] == 0
            assert figures["rollout/episodes"] <= 24
            assert figures["kept/episodes"] % 4 == 0, "groups train whole"
            break
    else:
        raise AssertionError("no step was logged")
