"""Engines that do nothing else: more of them are faster, and a model that has no room on one needs several devices."""

from __future__ import annotations

import pytest

from rstar2_env.trainers.plan.architecture import MODELS
from rstar2_env.trainers.plan.assumptions import Assumptions
from rstar2_env.trainers.plan.device import DEVICES
from rstar2_env.trainers.plan.serving import serving_seconds

DEVICE = DEVICES["mi300x"]


def seconds(model: str, engines: int, episodes: int, **more: int) -> float | None:
    return serving_seconds(MODELS[model], DEVICE, engines, episodes, 8192, 4096, Assumptions(), **more)


def test_four_engines_take_a_quarter() -> None:
    one, four = seconds("qwen3-14b", 1, 40_000), seconds("qwen3-14b", 4, 40_000)
    assert one is not None
    assert four == pytest.approx(one / 4, rel=0.02)


def test_fewer_episodes_at_once_take_longer() -> None:
    one, all_ = seconds("qwen3-14b", 1, 500, in_flight=1), seconds("qwen3-14b", 1, 500)
    assert one is not None
    assert all_ is not None
    assert one > 10 * all_


def test_a_model_without_room_on_a_device_plays_on_several() -> None:
    huge = max(MODELS, key=lambda name: MODELS[name].parameters)
    assert 2 * MODELS[huge].parameters > DEVICE.memory
    assert seconds(huge, 1, 10) is None
    assert seconds(huge, 1, 10, tensor_parallel=8) is not None
