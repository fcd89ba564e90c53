"""What stopping a group early does to the statistics, measured where nothing else happens."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


@pytest.fixture(scope="module")
def early_stop(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("early_stop")


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
