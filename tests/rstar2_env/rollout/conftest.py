"""What the tests of rollouts share."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="rollouts need the extra 'train'")
pytest.importorskip("trl", reason="the chat templates come from TRL, in the extra 'train'")


from scripted_engine import EchoEnv
from tiny_models import tiny_qwen3
from transformers import PreTrainedModel

from rstar2_env.rollout import TransformersEngine


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return tiny_qwen3()


@pytest.fixture
def engine(model: PreTrainedModel) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(model)
    yield engine
    engine.close()


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    EchoEnv.made.clear()
    EchoEnv.gate.clear()
    yield
    EchoEnv.gate.set()
    assert not [t for t in threading.enumerate() if t.name.startswith("rstar2-env")], "a thread of a player is left"
