"""What hooks do on two processes is what they do on one, and both processes go on with the same weights."""

from pathlib import Path

import pytest
import torch
from hooked_run import SAYS, hooked_run
from torch_launcher import launch
from training_rows import few_rows, row

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import os, sys
import torch
from hooked_run import hooked_run
from test_hooks_processes import Teaches, rows

torch.set_num_threads(1)
RANK, model, folder = int(os.environ["RANK"]), sys.argv[1], sys.argv[2]
hook = Teaches()
run = hooked_run(model, f"{folder}/run", hook, rows=[one for one in rows() if (one.episode.group >= 3) == bool(RANK)])
run.trainer.train()
run.player.close()
torch.save([hook.losses, run.followed.weights], f"{folder}/{RANK}.pt")
"""
TAUGHT = [
    SAYS,
    [{"role": "user", "content": "Say a longer word."}, {"role": "assistant", "content": "word and more words"}],
    [*SAYS, {"role": "user", "content": "Another."}, {"role": "assistant", "content": "w"}],
]


class Teaches:
    """Resets reference and optimizer and teaches, after the first step: three conversations, then one."""

    def __init__(self):
        self.losses = []

    def bind(self, run):
        self.run = run

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 1:
            self.run.reset_reference()
            self.losses += [self.run.sft_step(TAUGHT), self.run.sft_step(TAUGHT[:1])]
            self.run.reset_optimizer()


def rows():
    return [*few_rows(), row(1, 4, 20, 1.0), row(4, 3, 14, 0.5)]


def test_two_processes_do_what_one_does(tmp_path, tiny_model):
    (tmp_path / "script.py").write_text(SCRIPT)
    launch(tmp_path / "script.py", str(tiny_model), str(tmp_path), beside=Path(__file__).parent)
    (losses, weights), (same, others) = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    hook = Teaches()
    alone = hooked_run(tiny_model, tmp_path / "alone", hook, rows=rows())
    alone.trainer.train()
    alone.player.close()
    assert losses == same == pytest.approx(hook.losses, rel=1e-5)
    assert losses[0] != losses[1]
    for one, other, expected in zip(weights, others, alone.followed.weights, strict=True):
        for name, value in expected.items():
            assert torch.equal(one[name], other[name])
            torch.testing.assert_close(one[name], value, rtol=1e-4, atol=1e-6)
