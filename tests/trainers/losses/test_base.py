"""How the parts of a loss come together, and that they are listed without torch."""

import subprocess
import sys

import torch
from loss_tokens import tokens

from rstar2_env.trainers.losses.base import CORRECTIONS, LOSSES, needs_of, token_losses
from rstar2_env.trainers.losses.corrections import NoCorrection, Truncate
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
