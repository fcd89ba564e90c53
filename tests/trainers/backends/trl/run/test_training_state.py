"""The figures of the weights, the optimizer and the memory that are recorded at each step."""

from __future__ import annotations

import pytest
import torch

from rstar2_env.trainers.backends.trl.run.training_state import TrainingState, process_gib
from rstar2_env.trainers.step.sums import Sums


def recorded(model: torch.nn.Module, steps: int, **options: float) -> list[dict[str, float]]:
    """The figures of each step of a model that learns to be 0."""
    sums = Sums()
    state = TrainingState(sums)
    optimizer = torch.optim.AdamW(model.parameters(), **{"lr": 1e-3, "weight_decay": 0.0, **options})
    state.on_train_begin(None, None, None, model=model)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 64)).square().mean().backward()
        optimizer.step()
        state.on_step_end(None, None, None, model=model, optimizer=optimizer)
        found.append({name: total / count for name, (total, count) in sums.take().items()})
    return found


def test_the_change_is_that_of_the_weights_relative_to_their_norm() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 32, bias=False)
    before = model.weight.detach().clone()
    (figures,) = recorded(model, 1)
    after = model.weight.detach()
    assert figures["weights/change"] == pytest.approx(float((after - before).norm() / after.norm()), rel=1e-5)
    assert figures["weights/change"] > 1e-3


def test_a_step_that_changes_nothing_has_a_change_of_zero() -> None:
    assert [one["weights/change"] for one in recorded(torch.nn.Linear(64, 4), 3, lr=0.0)] == [0.0, 0.0, 0.0]


def test_weights_that_are_frozen_are_not_compared() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Linear(512, 4))
    (all_weights,) = recorded(model, 1)
    model[0].requires_grad_(False)
    (last,) = recorded(model, 1)
    assert last["weights/change"] != pytest.approx(all_weights["weights/change"], rel=0.05)


def test_the_updates_of_the_optimizer_are_counted_in_its_state() -> None:
    assert [one["optimizer/updates"] for one in recorded(torch.nn.Linear(64, 4), 3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("lost", ["half of the states", "the moments"])
def test_a_resume_that_loses_a_part_of_the_optimizers_state_lowers_a_figure(lost: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3)))
    sums = Sums()
    state, optimizer = TrainingState(sums), torch.optim.AdamW(model.parameters(), lr=1e-5)
    state.on_train_begin(None, None, None, model=model)
    found = []
    for step in range(6):
        if step == 5:
            for at, own in enumerate(list(optimizer.state)):
                if lost == "the moments":
                    optimizer.state[own]["exp_avg_sq"].zero_()
                elif at % 2:
                    del optimizer.state[own]
        optimizer.zero_grad()
        model(torch.ones(2, 64)).square().mean().backward()
        optimizer.step()
        state.on_step_end(None, None, None, model=model, optimizer=optimizer)
        found.append({name: total / count for name, (total, count) in sums.take().items()})
    before, after = found[-2:]
    assert before["optimizer/updates"] == 5
    assert after["optimizer/updates"] == (1 if lost == "half of the states" else 6)
    assert (after["optimizer/second_moment"] < before["optimizer/second_moment"] / 2) is (lost == "the moments")


def test_the_memory_of_the_process_grows_with_what_it_holds() -> None:
    before = process_gib()
    held = torch.ones(64 << 20)  # 256 MiB
    assert process_gib() - before == pytest.approx(0.25, abs=0.1)
    assert held.numel() == 64 << 20
