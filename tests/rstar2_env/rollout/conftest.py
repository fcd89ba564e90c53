"""What the tests of rollouts share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="rollouts need the extra 'train'")
pytest.importorskip("trl", reason="the chat templates come from TRL, in the extra 'train'")


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
