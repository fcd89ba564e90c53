"""What a run that resumes says of the weights in its checkpoint."""

from __future__ import annotations

import logging

import pytest
from safetensors.torch import load_file, save_file

from rstar2_env import trainers

pytestmark = pytest.mark.train


def train(options, **changes):
    trainer = trainers.make("grpo_clip_higher", **{**options, **changes})
    try:
        return trainer.train()
    finally:
        trainer.close()


class Heard(logging.Handler):
    """Keeps what transformers' trainer warns about."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


@pytest.mark.parametrize("lost", [False, True])
def test_a_resumed_run_warns_of_weights_that_are_lost_and_not_of_those_that_are_shared(lost, letter_options):
    folder = train(letter_options, steps=2, save_every=1).output_dir
    weights_file = folder / "checkpoint-2" / "model.safetensors"
    kept = load_file(weights_file)
    assert "lm_head.weight" not in kept, "it is the embedding's"
    if lost:
        del kept["model.norm.weight"]
        save_file(kept, weights_file, {"format": "pt"})
    heard, logger = Heard(), logging.getLogger("transformers.trainer")
    logger.addHandler(heard)
    try:
        train(letter_options, steps=3, resume=True)
    finally:
        logger.removeHandler(heard)
    told = [message for message in heard.said if "missing keys" in message]
    assert told == (["There were missing keys in the checkpoint model loaded: ['model.norm.weight']."] if lost else [])
