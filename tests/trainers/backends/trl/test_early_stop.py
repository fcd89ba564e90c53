"""What stopping a group early does to the statistics, measured where nothing else happens."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest
from places import BENCHMARKS

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.base import TRAINERS, Recipe, make_selector
from rstar2_env.trainers.selectors.resample_on_correct import SELECTORS, ResampleOnCorrect


@pytest.fixture(scope="module")
def early_stop() -> ModuleType:
    folder = str(BENCHMARKS)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("early_stop")
    finally:
        sys.path.remove(folder)


def figures(module: ModuleType, spare: float, **options: Any) -> dict[str, float]:
    found: dict[str, float] = module.one_batch(module.Stopped(ResampleOnCorrect(spare=spare), **options), groups=300)
    return found


def test_it_saves_time_and_favours_episodes_that_are_short(early_stop: ModuleType) -> None:
    whole, careful, hasty = (
        figures(early_stop, 1.0, early=False),
        figures(early_stop, 2.0),
        figures(early_stop, 1.0),
    )
    assert whole["cancelled"] == 0 < careful["cancelled"] < hasty["cancelled"]
    assert 0.1 < careful["time saved"] < hasty["time saved"]
    # The price, and it is lower for who waits longer.
    assert whole["length kept"] > careful["length kept"] > hasty["length kept"]
    assert whole["pass rate seen"] < careful["pass rate seen"] < hasty["pass rate seen"]
    assert whole["errors kept"] < careful["errors kept"] < hasty["errors kept"]
    assert careful["errors kept"] < 0.06 < early_stop.START, "it still chooses the clean ones"


def test_where_length_says_nothing_about_success_hardly_any_figure_moves(early_stop: ModuleType) -> None:
    whole, careful = (figures(early_stop, 2.0, dependent=False, early=early) for early in (False, True))
    assert careful["pass rate seen"] == pytest.approx(whole["pass rate seen"], abs=0.02)
    assert careful["length kept"] < whole["length kept"], "short ones still come first"


def test_a_trainer_refuses_early_stop_with_a_selector_that_cannot_say_when() -> None:
    class Blunt:
        def __call__(self, group: Any, keep: int, rng: Any) -> list[int]:
            return []

    SELECTORS.register("blunt-for-a-test", Blunt)
    recipe = Recipe(name="x", summary="", selector="blunt-for-a-test")
    recipe.configure({"model": "m"})
    with pytest.raises(ConfigurationError, match=r"early_stop.*blunt-for-a-test.*settled"):
        recipe.configure({"model": "m", "early_stop": True})
    for name in ("grpo", "grpo_roc"):
        make_selector(TRAINERS.get(name).configure({"model": "m", "early_stop": True}))


def test_a_run_that_stops_early_counts_what_it_cancelled_nowhere(letter_options: dict[str, Any]) -> None:
    pytest.importorskip("trl")
    from rstar2_env.trainers import make

    trainer = make("grpo", **letter_options, oversample=3, early_stop=True, max_in_flight=4, max_episode_seconds=60)
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
