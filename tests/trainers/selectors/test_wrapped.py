"""Parts inside other parts keep what they learn: observations reach them, and the outer part saves their state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rstar2_env.rewards.base import Learns
from rstar2_env.rewards.router import Router
from rstar2_env.trainers.losses.base import CORRECTIONS, Adapts
from rstar2_env.trainers.losses.opsm import OffPolicySequenceMask
from rstar2_env.trainers.samplers.base import GroupResult, Start
from rstar2_env.trainers.selectors.base import AdaptsToResults
from rstar2_env.trainers.selectors.quality_ties import QualityTieSelector


def outcomes(task: str = "") -> list[GroupResult]:
    return [
        GroupResult(Start(seed=n), n, 4, 2, 0.5, 0.5, 2, task, deviation=float(n), lengths=(10, 20, 30, 40))
        for n in range(1, 4)
    ]


def test_a_selector_in_quality_ties_learns_and_is_saved():
    outer = QualityTieSelector(of="(deviation:begin=2,filter_from=2)")
    assert isinstance(outer, AdaptsToResults)
    before = outer.state_dict()
    outer.observe(outcomes())
    after = outer.state_dict()
    assert after != before
    resumed = QualityTieSelector(of="(deviation:begin=2,filter_from=2)")
    resumed.load_state_dict(after)
    assert resumed.state_dict() == after


def test_a_component_in_the_router_learns_from_its_source_alone_and_is_saved():
    def made() -> Router:
        return Router(routes={"math": "laser:mode=d,every=1", "code": "laser:mode=d,every=1"})

    router = made()
    assert isinstance(router, Learns)
    router.observe(outcomes("math"))
    state = router.state_dict()
    assert state["math"]["seen"]
    assert not state["code"]["seen"]
    resumed = made()
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state


class Counting:
    """A correction that adapts: it counts the steps that it observed."""

    def __init__(self) -> None:
        self.needs: frozenset[Any] = frozenset()
        self.steps = 0

    def __call__(self, tokens: Any) -> Any:
        return np.ones(1)

    def observe(self, figures: Any) -> None:
        self.steps += 1

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def load_state_dict(self, state: Any) -> None:
        self.steps = state["steps"]


def test_a_correction_in_opsm_adapts_and_is_saved(monkeypatch: pytest.MonkeyPatch):
    outer = OffPolicySequenceMask(then=Counting)
    assert isinstance(outer, Adapts)
    outer.observe({})
    assert outer.state_dict() == {"steps": 1}
    resumed = OffPolicySequenceMask(then=Counting)
    resumed.load_state_dict(outer.state_dict())
    assert resumed.state_dict() == {"steps": 1}
    assert "opsm" in CORRECTIONS


def test_opsm_has_the_metrics_of_its_correction_and_neither_these_nor_a_state_without_one():
    class Measured(Counting):
        def figures(self, tokens):
            return {"weight": tokens}

    assert OffPolicySequenceMask(then=Measured).figures("tokens") == {"weight": "tokens"}
    alone = OffPolicySequenceMask()
    assert (alone.figures("tokens"), alone.state_dict()) == ({}, {})
    alone.observe({})
    alone.load_state_dict({})
