"""The trainer's step on two processes: the step of one process on all rows, also where one of them has none."""

from pathlib import Path

import pytest
import torch
from row_trainer import row_trainer
from training_rows import few_rows, row
from two_launched import launch_two

from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import os, sys
import torch
from row_trainer import row_trainer
from test_two_processes import share, OPTIONS, shape, cases

torch.set_num_threads(1)
RANK, model, folder = int(os.environ["RANK"]), sys.argv[1], sys.argv[2]
for name, rollouts in cases().items():
    rows = share(rollouts, RANK)
    trainer, followed = row_trainer(model, f"{folder}/{name}", rows, shape=shape(name), **OPTIONS[name])
    trainer.train(resume_from_checkpoint=(name == "resumed" or None) and f"{folder}/several/checkpoint-3")
    torch.save([followed.lines, followed.weights], f"{folder}/{name}-{RANK}.pt")
"""
PLAIN = {"optim": "sgd", "optim_args": "momentum=0.9", "weight_decay": 0.1, "save_strategy": "no"}
SAVED = {**PLAIN, "max_steps": 6, "save_strategy": "steps", "save_steps": 3}
OPTIONS = {
    "uneven": PLAIN,
    "checkpointed": {**PLAIN, "gradient_checkpointing": True},
    "several": SAVED,
    "resumed": SAVED,
}
TIMED = ("seconds/", "speed/", "tokens/computed", "tokens/share_trained")


def cases():
    """Rollouts, each the rows of both processes: group 0, 1, ... is the first one's, from 3 on it is the second's."""
    second = [row(1, 4, 20, 1.0), row(2, 4, 10, -1.0), row(2, 3, 14, 0.5, version=1)]
    uneven = [few_rows(), second, [row(5, 4, 9, 0.0)], few_rows()]
    several = [few_rows(), [*second, row(4, 5, 8, 0.25)]]
    return {"uneven": uneven, "checkpointed": uneven, "several": several, "resumed": several}


def share(rollouts, rank):
    return [[one for one in rows if (one.episode.group >= 3) == bool(rank)] for rows in rollouts]


def shape(name):
    return BatchLayout(45, passes=2, minibatches=2) if name in ("several", "resumed") else BatchLayout(45)


@pytest.fixture(scope="module")
def told(tmp_path_factory, tiny_model):
    """What each of two processes logged in each case, and the weights that it had after each step."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "script.py").write_text(SCRIPT)
    launch_two(folder / "script.py", str(tiny_model), str(folder), beside=Path(__file__).parent)
    return {(name, rank): torch.load(folder / f"{name}-{rank}.pt") for name in OPTIONS for rank in (0, 1)}


@pytest.mark.parametrize("name", ["uneven", "checkpointed"])
def test_two_processes_take_the_steps_of_one(told, name, tiny_model, tmp_path):
    trainer, followed = row_trainer(tiny_model, tmp_path, cases()[name], shape=BatchLayout(45), **OPTIONS[name])
    trainer.train()
    (lines, weights), (_, other) = told[name, 0], told[name, 1]
    for step, expected in enumerate(followed.weights):
        for key, value in expected.items():
            torch.testing.assert_close(weights[step][key], value, rtol=1e-5, atol=1e-7)
            assert torch.equal(weights[step][key], other[step][key])
    assert all(torch.equal(weights[2][key], weights[1][key]) for key in weights[1]), "nothing was learned in step 3"
    for line, expected in zip(lines, followed.lines, strict=True):
        names = [key for key in expected if not key.startswith(TIMED)]
        assert {key: line[key] for key in names} == pytest.approx({key: expected[key] for key in names}, rel=1e-4)


def test_only_rows_that_keep_processes_in_step_are_computed_beside_those_of_one(told):
    first, second, third, _ = told["uneven", 0][0]
    # Lengths under a budget of 45: 27 and 13 on one process; 18 + 12 on the other, split so as to be two as well.
    assert first["tokens/computed"] == 27 + 13 + 18 + 12
    assert second["tokens/computed"] == 24 + 2 * 17 + 2 * 2, "two fillers, on the process that has no row"
    assert third["tokens/computed"] == 0


def test_a_run_of_two_processes_goes_on_from_the_middle_of_a_rollout(told):
    for rank in (0, 1):
        (lines, weights), (again, resumed) = told["several", rank], told["resumed", rank]
        for one, other in zip(resumed, weights[3:], strict=True):
            assert all(torch.equal(one[key], other[key]) for key in other)
        for one, other in zip(again, lines[3:], strict=True):
            names = [key for key in other if not key.startswith(("seconds/", "speed/"))]
            assert {key: one[key] for key in names} == {key: other[key] for key in names}
