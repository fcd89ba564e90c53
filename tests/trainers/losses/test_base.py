"""How the parts of a loss come together, and that they are listed without torch."""

import subprocess
import sys

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import (
    CORRECTIONS,
    LOSSES,
    Measures,
    environment_losses,
    is_corrected,
    needs_of,
    token_losses,
)
from rstar2_env.trainers.losses.corrections import NoCorrection, Truncate
from rstar2_env.trainers.losses.echo import Echo
from rstar2_env.trainers.losses.entropy import Entropy
from rstar2_env.trainers.losses.kl import Kl
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.losses.reinforce import ReinforceLoss


def test_terms_add_up_and_only_policy_gradients_are_corrected():
    batch = tokens([[-1.0, -2.0, -5.0]], advantage=[[3.0, 1.0, 9.0]], entropy=[[0.5, 0.25, 9.0]], mask=[[1, 1, 0]])
    weights = torch.tensor([[2.0, 0.0, 4.0]], dtype=torch.float64)
    loss = token_losses(batch, [ReinforceLoss(), Entropy(2.0)], weights)
    assert loss.tolist() == [[3 * 2 - 1, -0.5, 0]]


def test_a_step_needs_what_any_of_its_parts_needs():
    assert needs_of([ReinforceLoss()], NoCorrection()) == set()
    assert needs_of([ReinforceLoss(), Kl(), Entropy()], Truncate()) == {"reference", "entropy", "old"}
    assert needs_of([PpoClip()], NoCorrection()) == {"old"}


def test_reinforce_is_the_log_probability_times_the_advantage():
    batch = tokens([[-1.0, -2.0]], advantage=[[3.0, -1.0]])
    loss = ReinforceLoss()(batch)
    assert loss.tolist() == [[3.0, -2.0]]
    loss.sum().backward()
    assert batch.logp.grad.tolist() == [[-3.0, 1.0]]


def test_a_users_file_is_recognized_by_what_it_holds(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "class Half:\n    needs = frozenset()\n    policy_gradient = True\n"
        "    def __call__(self, tokens):\n        return -tokens.logp / 2\n"
        "class Same:\n    needs = frozenset()\n    def __call__(self, tokens):\n        return tokens.sampled * 0 + 1\n"
    )
    assert LOSSES.get(str(path)).__name__ == "Half"
    assert CORRECTIONS.get(str(path)).__name__ == "Same"


def test_listing_the_parts_loads_no_torch():
    code = (
        "import sys\nfrom rstar2_env.trainers.losses import base\n"
        "print(base.LOSSES.names(), base.AGGREGATIONS.names(), base.CORRECTIONS.names())\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "ppo_clip" in done.stdout


def test_terms_about_the_environments_tokens_add_up_there_alone():
    batch = tokens([[-1.0, -2.0, -4.0]], mask=[[1, 0, 0]])
    batch.answered = torch.tensor([[-1, 0, 1]])
    terms = [ReinforceLoss(), Echo(coef=1.0), Echo(coef=0.5, tools=False)]
    assert environment_losses(batch, terms).tolist() == [[0, 1, 6]]
    assert token_losses(batch, terms, torch.ones_like(batch.logp)).tolist() == [[1, 0, 0]]


def test_the_correction_multiplies_policy_gradients_unless_they_contain_it():
    assert is_corrected(ReinforceLoss())
    assert is_corrected(PpoClip())
    assert not is_corrected(PpoClip(anchor="sampled"))
    assert not is_corrected(Kl())
    assert PpoClip(anchor="sampled").needs == set()


@pytest.mark.parametrize("name", LOSSES.names())
def test_the_metrics_of_a_term_have_no_gradient(name):
    made = tokens([[-1.0, -2.0, -4.0]], advantage=[[1.0, -1.0, 2.0]], old=[[-2.0, -1.0, -3.0]])
    made.entropy = torch.ones_like(made.logp).requires_grad_()
    made.reference = made.teacher = made.logp.detach() - 1
    made.answered = torch.tensor([[0, 1, 1]])
    made.columns = {
        column: torch.ones_like(made.logp.detach())
        for column in ("off_policy", "correct", "accuracy", "clip_cov", "kl_cov", "m2po", "gvpo/distance")
    }
    term = make_part(LOSSES, name)
    figures = term.figures(made) if isinstance(term, Measures) else {}
    assert not any(one.requires_grad for pair in figures.values() for one in pair)
