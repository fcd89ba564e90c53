"""The optimizer's state goes to host memory and back bit by bit, and its device memory is free meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from row_trainer import row_trainer
from torch.multiprocessing.reductions import StorageWeakRef
from training_rows import few_rows

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.weight_sync.engine import PolicyEngine
from rstar2_env.trainers.backends.trl.weight_sync.offload import OffloadedState

pytestmark = pytest.mark.train


def stepped(optimizer: torch.optim.Optimizer, weights: list[torch.nn.Parameter], seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for one in weights:
        one.grad = torch.randn(one.shape, generator=draw)
    optimizer.step()


@pytest.fixture
def weights() -> list[torch.nn.Parameter]:
    draw = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=draw)) for shape in ((7, 3), (5,), ())]


def states(optimizer: torch.optim.Optimizer) -> dict[tuple[int, str], torch.Tensor]:
    found = optimizer.state_dict()["state"]
    return {(number, name): value.clone() for number, state in found.items() for name, value in state.items()}


@pytest.mark.parametrize("make", [torch.optim.AdamW, lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9)])
def test_a_round_trip_changes_no_bit_of_the_state_and_of_later_steps(weights: list[Any], make: Any) -> None:
    others = [torch.nn.Parameter(one.detach().clone()) for one in weights]
    moved, kept, state = make(weights), make(others), OffloadedState()
    for step in range(3):
        stepped(moved, weights, step)
        stepped(kept, others, step)
        before = states(moved)
        assert state.to_host(moved) == sum(value.nbytes for value in before.values())
        assert all(torch.equal(value, before[key]) for key, value in states(moved).items()), "while it is away"
        assert state.to_device() == sum(value.nbytes for value in before.values())
        assert states(moved).keys() == before.keys() == states(kept).keys()
        assert all(torch.equal(value, before[key]) for key, value in states(moved).items())
    assert all(torch.equal(one, other) for one, other in zip(weights, others, strict=True))


def test_the_memory_of_the_device_is_free_while_the_state_is_away(weights: list[Any]) -> None:
    optimizer, state = torch.optim.AdamW(weights), OffloadedState()
    stepped(optimizer, weights, 0)
    held = [value for each in optimizer.state.values() for value in each.values()]
    on_device = [StorageWeakRef(value.untyped_storage()) for value in held]
    state.to_host(optimizer)
    assert all(one.expired() for one in on_device)
    host = [value.data_ptr() for value in held]
    state.to_device()
    assert not {value.data_ptr() for value in held} & set(host), "the optimizer does not step in host memory"
    state.to_host(optimizer)
    assert [value.data_ptr() for value in held] == host, "host memory is allocated once"


def test_a_state_that_is_away_or_missing_does_not_move(weights: list[Any]) -> None:
    optimizer, state = torch.optim.AdamW(weights), OffloadedState()
    assert (state.to_host(None), state.to_host(optimizer), state.to_device()) == (0, 0, 0)
    stepped(optimizer, weights, 0)
    assert state.to_host(optimizer) > 0
    assert state.to_host(optimizer) == 0
    assert state.to_device() > 0
    assert state.to_device() == 0


def test_tensors_on_another_device_than_their_weights_stay_there() -> None:
    held = torch.nn.Parameter(torch.empty(4, device="meta"))
    optimizer, state = torch.optim.AdamW([held]), OffloadedState()
    optimizer.state[held] = {"step": torch.tensor(3.0)}  # AdamW counts steps on the CPU, wherever the weights are
    place = optimizer.state[held]["step"].data_ptr()
    assert state.to_host(optimizer) == 0
    assert optimizer.state[held]["step"].data_ptr() == place


class Moving:
    """A collector that moves the optimizer's state to host memory and back, as an engine's play does."""

    def __init__(self, given: Any) -> None:
        self.given, self.state, self.trainer, self.bytes = given, OffloadedState(), None, []

    def collect(self, step: int) -> Any:
        """Return the next rows."""
        optimizer: Any = self.trainer and self.trainer.optimizer
        self.bytes.append(self.state.to_host(getattr(optimizer, "optimizer", optimizer)))
        found = self.given.collect(step)
        self.state.to_device()
        return found


def test_a_training_run_ends_with_the_same_weights(tiny_model: Path, tmp_path: Path) -> None:
    ended, moved = [], []
    for moves in (False, True):
        trainer, followed = row_trainer(tiny_model, tmp_path / str(moves), [few_rows()] * 3, weight_decay=0.1)
        collector = Moving(trainer.collector)
        if moves:
            collector.trainer = trainer
        trainer.collector = collector
        trainer.train()
        ended.append((followed.weights, [line["loss"] for line in followed.lines]))
        moved.append(collector.bytes)
    size = sum(8 * one.numel() for one in trainer.model.parameters())
    assert moved[0] == [0, 0, 0]
    assert moved[1][0] == 0, "the optimizer has no state yet"
    assert all(size <= one < 1.01 * size for one in moved[1][1:])
    assert ended[0][1] == ended[1][1]
    for one, other in zip(ended[0][0], ended[1][0], strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_an_engine_that_needs_no_memory_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()])
    config = TRAINERS.get("grpo_clip_higher").configure({"model": str(tiny_model), "offload_state": True})
    with pytest.raises(ConfigurationError, match="engine='transformers' does not need it") as refused:
        PolicyEngine(config, trainer, trainer.processing_class)
    assert refused.value.option == "optim.offload_state"
