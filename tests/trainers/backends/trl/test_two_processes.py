"""The trainer's steps on several processes: those of one process on all rows, also if a process has no row."""

from pathlib import Path

import pytest
import torch
from row_trainer import row_trainer
from torch_launcher import launch
from training_rows import alike, few_rows, row

from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import os, sys
import torch
from row_trainer import row_trainer
from test_two_processes import share, OPTIONS, shape, cases

torch.set_num_threads(1)
RANK, SIZE, model, folder = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1], sys.argv[2]
for name in sys.argv[3:]:
    rows = share(cases()[name], RANK, SIZE)
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
    "shared": PLAIN,
}
TIMED = ("seconds/", "speed/", "tokens/computed", "tokens/share_trained", "tokens/no_grad")


def cases():
    """Rollouts, each the rows of all processes."""
    second = [row(1, 4, 20, 1.0), row(2, 4, 10, -1.0), row(2, 3, 14, 0.5, version=1)]
    alone = [row(1, 4, 20, 1.0), row(1, 4, 26, -1.0)]
    uneven = [few_rows(), second, [row(5, 4, 9, 0.0)], few_rows(), alone]
    several = [few_rows(), [*second, row(4, 5, 8, 0.25), row(6, 5, 9, 0.5), row(7, 5, 6, -0.75)]]
    shared = [[*alike(0, 24, 9), *alike(3, 30, 6), *few_rows()], alike(4, 24, 12)]
    return {"uneven": uneven, "checkpointed": uneven, "several": several, "resumed": several, "shared": shared}


def share(rollouts, rank, size):
    """The rows that a process played, as whole groups."""
    return [[one for one in rows if one.episode.group // 3 % size == rank] for rows in rollouts]


def shape(name):
    if name == "shared":
        return BatchLayout(200)
    return BatchLayout(45, passes=2, minibatches=2) if name in ("several", "resumed") else BatchLayout(45)


@pytest.fixture(scope="module")
def told(tmp_path_factory, tiny_model):
    """What each of two processes logged in each case, and the weights that it had after each step."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "script.py").write_text(SCRIPT)
    launch(folder / "script.py", str(tiny_model), str(folder), *OPTIONS, beside=Path(__file__).parent)
    return {(name, rank): torch.load(folder / f"{name}-{rank}.pt") for name in OPTIONS for rank in (0, 1)}


def equal_steps(steps, others, lines, expected):
    """Check that the weights after each step and the metrics are those of one process."""
    assert len(steps) == len(others)
    for weights, other in zip(steps, others, strict=True):
        for key, value in other.items():
            torch.testing.assert_close(weights[key], value, rtol=1e-5, atol=1e-7)
    for line, of_one in zip(lines, expected, strict=True):
        names = [key for key in of_one if not key.startswith(TIMED)]
        assert {key: line[key] for key in names} == pytest.approx({key: of_one[key] for key in names}, rel=1e-4)


@pytest.mark.parametrize("name", ["uneven", "checkpointed", "several", "shared"])
def test_two_processes_take_the_steps_of_one(told, name, tiny_model, tmp_path):
    trainer, followed = row_trainer(tiny_model, tmp_path, cases()[name], shape=shape(name), **OPTIONS[name])
    trainer.train()
    (lines, weights), (_, other) = told[name, 0], told[name, 1]
    equal_steps(weights, followed.weights, lines, followed.lines)
    for step, own in enumerate(weights):
        assert all(torch.equal(own[key], other[step][key]) for key in own)
    if name == "uneven":
        assert all(torch.equal(weights[2][key], weights[1][key]) for key in weights[1]), "nothing was learned in step 3"


def test_four_processes_take_the_steps_of_one(tiny_model, tmp_path):
    trainer, followed = row_trainer(
        tiny_model, tmp_path, cases()["several"], shape=shape("several"), **OPTIONS["several"]
    )
    trainer.train()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch(script, str(tiny_model), str(tmp_path), "several", beside=Path(__file__).parent, processes=4)
    lines, weights = torch.load(tmp_path / "several-0.pt")
    equal_steps(weights, followed.weights, lines, followed.lines)


def test_no_optimizer_step_is_empty_though_each_process_played_few_groups(told):
    for lines, _ in (told["several", 0], told["several", 1]):
        assert all(line["tokens/trained"] > 0 for line in lines)


def test_rows_are_balanced_and_only_fillers_are_computed_in_addition(told):
    first, second, third, _, last = told["uneven", 0][0]
    # Lengths under a budget of 45: 27 and 13 on one process; 18 + 12 on the other, split so as to be two as well.
    assert first["tokens/computed"] == 27 + 13 + 18 + 12
    assert second["tokens/computed"] == 24 + 2 * 17, "a group on each process, though one played both"
    assert third["tokens/computed"] == 0
    assert last["tokens/computed"] == 30 + 24 + 2 * 2, "two fillers, on the process that has no row"


def test_processes_balance_the_tokens_that_they_compute_if_rows_share_prefixes(told):
    """A group of 4 rows counts its prompt once; its rows are in one micro-batch of one process."""
    first, second = told["shared", 0][0]
    assert first["tokens/computed"] < 0.7 * first["tokens/trained"]
    assert second["tokens/computed"] < 0.6 * second["tokens/trained"]


def test_a_run_of_two_processes_goes_on_from_the_middle_of_a_rollout(told):
    for rank in (0, 1):
        (lines, weights), (again, resumed) = told["several", rank], told["resumed", rank]
        for one, other in zip(resumed, weights[3:], strict=True):
            assert all(torch.equal(one[key], other[key]) for key in other)
        for one, other in zip(again, lines[3:], strict=True):
            names = [key for key in other if not key.startswith(("seconds/", "speed/"))]
            assert {key: one[key] for key in names} == {key: other[key] for key in names}
