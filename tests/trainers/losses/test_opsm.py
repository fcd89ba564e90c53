"""``opsm``: which rows it drops, and what comes after it."""

import pytest
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import CORRECTIONS
from rstar2_env.trainers.losses.opsm import OffPolicySequenceMask

AWAY = {"old": [[-1.0] * 4], "sampled": [[-0.2, -0.6, -9.0, -1.0]], "mask": [[1, 1, 0, 1]], "turn": [[0, 0, -1, 1]]}
"""Under mu, log-probabilities of a row that all are -1 now: 0.8, 0.4 and 0 above, 0.4 in the mean."""


def weights(spec, advantage):
    batch = tokens([[-1.0] * 4], advantage=[[advantage] * 4], **AWAY)
    found = make_part(CORRECTIONS, spec)(batch)
    assert not found.requires_grad
    return found[batch.mask].tolist()


def test_a_wrong_answer_that_the_policy_left_is_dropped_and_a_right_one_is_not():
    assert weights("opsm:delta=0.39", -1.0) == [0, 0, 0]
    assert weights("opsm:delta=0.41", -1.0) == [1, 1, 1]
    assert weights("opsm:delta=0.39", 1.0) == weights("opsm:delta=0.39", 0.0) == [1, 1, 1]


def test_a_turn_can_be_dropped_alone():
    assert weights("opsm:delta=0.5,level=turn", -1.0) == [0, 0, 1]


def test_updates_since_the_rollout_count_and_those_alone_against_the_trainers_probabilities():
    batch = tokens([[-2.0]], old=[[-1.0]], sampled=[[-2.0]], advantage=[[-1.0]])
    assert OffPolicySequenceMask(anchor="old")(batch).item() == 0
    assert OffPolicySequenceMask()(batch).item() == 1
    assert OffPolicySequenceMask(anchor="old").needs == {"old"}


def test_another_correction_is_multiplied_on():
    assert weights("opsm:then=truncate:cap=2", 1.0) == pytest.approx([2.718281828**-0.8, 2.718281828**-0.4, 1])
    assert weights("opsm:delta=0.5,level=turn,then=(mask:low=0.5,high=2)", -1.0) == pytest.approx([0, 0, 1])
    assert make_part(CORRECTIONS, ["opsm", {"then": ["truncate", {"cap": 3.0}]}]).needs == {"old"}


def test_what_comes_after_it_is_checked_when_it_is_made():
    with pytest.raises(UnknownNameError, match="truncat"):
        make_part(CORRECTIONS, "opsm:then=truncat")
    with pytest.raises(ConfigurationError, match="cap"):
        make_part(CORRECTIONS, "opsm:then=(truncate:cap=0.5)")


ADAPTING = """
from dataclasses import dataclass, field

import torch


@dataclass
class Counting:
    seen: list = field(default_factory=list)
    needs = frozenset()

    def __call__(self, tokens):
        return torch.ones_like(tokens.logp)

    def figures(self, tokens):
        return {}

    def observe(self, figures):
        self.seen.append(dict(figures))

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = list(state["seen"])
"""


def test_a_correction_that_adapts_is_told_and_saved_inside_it(tmp_path):
    (tmp_path / "mine.py").write_text(ADAPTING)
    part = f"opsm:then=({tmp_path / 'mine.py'}:Counting)"
    correction = make_part(CORRECTIONS, part)
    correction.observe({"kl": 0.5})
    assert correction.state_dict() == {"seen": [{"kl": 0.5}]}
    resumed = make_part(CORRECTIONS, part)
    resumed.load_state_dict(correction.state_dict())
    assert resumed.state_dict() == correction.state_dict()
