"""Sharded training on two processes: the losses and gradients of one, checkpoints that one process reads, exports.

One pair of processes takes all cases.
"""

from __future__ import annotations

import shutil
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from hollow import hollow, with_adapter
from peft import PeftModel
from row_trainer import row_trainer
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch_launcher import launch
from training_rows import alike, few_rows, row
from transformers import AutoModelForCausalLM, TrainerCallback

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.trainers import export_model
from rstar2_env.trainers.backends.trl.loss.forward import ReferenceModel
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.loss.teacher import Teacher
from rstar2_env.trainers.backends.trl.sharding import shards
from rstar2_env.trainers.backends.trl.sharding.zero import zero_arguments
from rstar2_env.trainers.backends.trl.sharding.zero_state import ZeroState
from rstar2_env.trainers.export.source import find_weights
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.kl import Kl
from rstar2_env.trainers.losses.opd import Opd
from rstar2_env.trainers.losses.ppo_clip import PpoClip

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import os, sys
import torch
from torch.distributed.tensor import DTensor
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from test_sharded_trainer import CASES, Whole, played
from rstar2_env.trainers.backends.trl.model import processes

torch.set_num_threads(1)
RANK, model, folder = int(os.environ["RANK"]), sys.argv[1], sys.argv[2]
for name in CASES:
    processes()
    lines, weights, gradients, trainer = played(name, model, f"{folder}/{name}", RANK, 2)
    trainer.save_model(f"{folder}/{name}/export")
    parts = {type(one).__name__ for one in trainer.model.parameters()}
    (whole,) = (one for one in trainer.callback_handler.callbacks if isinstance(one, Whole))
    wrapped = type(trainer.model_wrapped).__name__
    torch.save([lines, weights, gradients, whole.state, whole.frozen, parts, wrapped], f"{folder}/{name}-{RANK}.pt")
    unset_hf_deepspeed_config()
"""
SGD = {"optim": "sgd", "optim_args": "momentum=0.9", "weight_decay": 0.0, "learning_rate": 0.1, "max_grad_norm": 0.0}
ADAM = {"optim": "adamw_torch", "weight_decay": 0.1, "learning_rate": 1e-2}
ADAM |= {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 3}
SAVED = {"save_strategy": "steps", "save_steps": 2}
AWAITED = {"sharding": "fsdp2", "awaited": True, "compared": True, **SGD}
ONE = "written-by-one"
CASES: dict[str, dict[str, Any]] = {
    "fsdp2": {"sharding": "fsdp2", **SGD},
    "fsdp2-lora": {"sharding": "fsdp2", "lora": True, "gradient_checkpointing": True, **SGD},
    "fsdp2-taught": {"sharding": "fsdp2", "taught": True, **SGD},
    "fsdp2-awaited": {"sharding": "fsdp2", "awaited": True, "taught": True, **SGD},
    "fsdp2-awaited-adapter": {"adapted": True, "lora_rank": 4, "gradient_checkpointing": True, **AWAITED},
    "fsdp2-awaited-bf16": {"adapted": True, "lora_rank": 4, "bf16": True, "max_steps": 1, **AWAITED},
    "fsdp2-awaited-new": {"adapted": True, "lora_rank": 2, **AWAITED},
    "fsdp2-awaited-merged": {"adapted": True, **AWAITED},
    "fsdp2-saved": {"sharding": "fsdp2", **ADAM, **SAVED},
    "fsdp2-resumed": {"sharding": "fsdp2", "resume": ONE, **ADAM},
    "fsdp2-begun": {"sharding": "fsdp2", "begin_from": ONE, "max_steps": 1, **ADAM},
    "fsdp2-bf16": {"sharding": "fsdp2", "bf16": True, **SGD},
    "zero3": {"sharding": "zero3", **SGD},
    "zero3-lora": {"sharding": "zero3", "lora": True, **SGD},
    "zero3-saved": {"sharding": "zero3", **ADAM, **SAVED},
    "zero3-resumed": {"sharding": "zero3", "resume": ONE, **ADAM},
    "zero3-begun": {"sharding": "zero3", "begin_from": ONE, "max_steps": 1, **ADAM},
    "zero2-saved": {"sharding": "zero2", **ADAM, **SAVED},
    "zero2-begun": {"sharding": "zero2", "begin_from": ONE, "max_steps": 1, **ADAM},
}
if find_spec("deepspeed") is None:
    CASES = {name: case for name, case in CASES.items() if not name.startswith("zero")}
STEPS, STOPPED = 4, 2
"""Steps, and after how many of them a checkpoint is gone on from: the first changes nothing, its learning rate is 0."""


class Whole(TrainerCallback):
    """Keeps the whole trained weights before the first step and after each, and the whole gradient of each step.

    Of a run that begins with the optimizer of another, that optimizer's whole state before the first step too.
    """

    def __init__(self) -> None:
        self.trainer: Any = None
        self.weights: list[dict[str, Tensor]] = []
        self.gradients: list[dict[str, Tensor]] = []
        self.state: dict[str, Tensor] = {}
        self.frozen: dict[str, Tensor] = {}

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.keep()
        if not self.trainer.is_deepspeed_enabled:
            self.frozen = {name: one.cpu().clone() for name, one in self.trainer._state().frozen()}
        if self.trainer._begin_from is not None:
            state = self.trainer._state()
            every = dict(state._all()) if isinstance(state, ZeroState) else state.tensors()
            self.state = {name: whole(one) for name, one in every.items() if name.startswith(shards.OPTIMIZER)}
        if self.trainer.is_deepspeed_enabled:  # which steps within the backward pass
            engine, step = self.trainer.deepspeed, self.trainer.deepspeed.step
            engine.step = lambda: (self.keep_gradients(), step())[1]

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        if not self.trainer.is_deepspeed_enabled:
            self.keep_gradients()

    def keep_gradients(self) -> None:
        self.gradients.append({})
        for name, weights in self.trainer.model.named_parameters():
            if not weights.requires_grad:
                continue
            if self.trainer.is_deepspeed_enabled:
                from deepspeed.utils import safe_get_full_grad

                gradient = safe_get_full_grad(weights)
            else:
                gradient = weights.grad
            self.gradients[-1][name] = whole(gradient)

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.keep()

    def keep(self) -> None:
        self.weights.append({name: one.detach().cpu().clone() for name, one in self.trainer._state().whole()})


def whole(tensor: Any) -> Tensor:
    found: Tensor = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return found.detach().cpu().clone()


def share(rank: int, size: int) -> list[list[Any]]:
    """Rollouts of a process; with two, the second has fewer rows, or none."""
    second = [row(1, 4, 20, 1.0), row(2, 4, 10, -1.0), row(2, 3, 14, 0.5)]
    rollouts = [few_rows(), second, [row(5, 4, 9, 0.5), *few_rows(), *alike(6, 24, 6, 2)]]
    return [[one for one in rows if size == 1 or (one.episode.group >= 3) == bool(rank)] for rows in rollouts]


def another(policy: Any) -> Teacher:
    """A teacher that thinks otherwise than the policy."""
    other = deepcopy(policy)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weights in other.parameters():
            weights.add_(0.05 * torch.randn(weights.shape, generator=draw))
    return Teacher(other, torch.float32, 1.0, copied=False)


def played(
    name: str, model: Any, folder: Any, rank: int, size: int, **changes: Any
) -> tuple[list[Any], list[Any], Any]:
    """Train as a case says: the logged lines, weights before and after each step, gradients, the trainer."""
    options = {**CASES[name], **changes}
    resume, begin_from = options.pop("resume", None), options.pop("begin_from", None)
    if begin_from is not None:
        options["begin_from"] = Path(folder).parent / begin_from / f"checkpoint-{STOPPED}"
    shape = BatchLayout(45, passes=3) if "adamw" in options["optim"] else BatchLayout(45)
    awaits = options.pop("awaited", False) and rank > 0
    if awaits:
        model, options["waits"] = hollow(model, Path(folder)), True
    if options.pop("adapted", False):
        model = with_adapter(model, Path(folder) / f"adapter-{rank}", empty=awaits)
    zero = zero_arguments(options["sharding"], size)
    if options.pop("taught", False):
        options |= {"objective": Objective([Opd()], TokenMean(), NoCorrection()), "teacher": another}
    if options.pop("compared", False):
        options["objective"] = Objective([PpoClip(), Kl(0.1)], TokenMean(), NoCorrection())
        options["reference"] = lambda policy: ReferenceModel(policy, torch.float32, 1.0)
    kept = Whole()
    options = {"max_steps": STEPS, **zero, **options}
    trainer, followed = row_trainer(model, folder, share(rank, size), keep_checkpoints=STEPS, shape=shape, **options)
    kept.trainer = trainer
    trainer.add_callback(kept)
    trainer.train(resume_from_checkpoint=resume and str(Path(folder).parent / resume / f"checkpoint-{STOPPED}"))
    return followed.lines, kept.weights, kept.gradients, trainer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """What two processes wrote of each case, beside a checkpoint that one process wrote before."""
    found: Path = tmp_path_factory.mktemp("sharded")
    played("fsdp2-saved", tiny_model, found / ONE, 0, 1)
    (found / "script.py").write_text(SCRIPT)
    launch(found / "script.py", str(tiny_model), str(found), beside=Path(__file__).parent)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Any:
    """Plays a case on one process, without sharding, once."""
    seen: dict[str, Any] = {}

    def play(name: str) -> Any:
        key = str({**CASES[name], "sharding": "none", "resume": "", "gradient_checkpointing": "", "save_steps": ""})
        if key not in seen:
            changes = {"sharding": "none", "resume": None, "save_strategy": "no"}
            seen[key] = played(name, tiny_model, tmp_path_factory.mktemp("alone"), 0, 1, **changes)
        return seen[key]

    return play


def told(folder: Path, name: str, rank: int = 0) -> Any:
    if name not in CASES:
        pytest.skip("DeepSpeed is not installed (the extra 'deepspeed')")
    return torch.load(folder / f"{name}-{rank}.pt", weights_only=False)


def apart(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> float:
    """Largest difference of an entry, relative to the largest entry of its tensor."""
    assert found.keys() == wanted.keys()
    return max(float((found[key] - one).abs().max() / one.abs().max().clamp(min=1e-9)) for key, one in wanted.items())


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_really_sharded(name: str, folder: Path) -> None:
    for rank in (0, 1):
        *_, parts, wrapped = told(folder, name, rank)
        assert wrapped == "DeepSpeedEngine" if name.startswith("zero") else parts == {"DTensor"}


@pytest.mark.parametrize(
    "name",
    [
        *("fsdp2", "fsdp2-lora", "fsdp2-taught", "zero3", "zero3-lora"),
        *("fsdp2-awaited", "fsdp2-awaited-adapter", "fsdp2-awaited-new", "fsdp2-awaited-merged"),
    ],
)
def test_losses_and_gradients_are_those_of_one_process(name: str, folder: Path, alone: Any) -> None:
    (lines, _, gradients, *_), (expected, _, wanted, _) = told(folder, name), alone(name)
    assert [line["loss"] for line in lines] == pytest.approx([line["loss"] for line in expected], rel=1e-5, abs=1e-6)
    assert len(gradients) == len(wanted) == STEPS
    for one, other in zip(gradients, wanted, strict=True):
        # Of a new adapter, one half has no gradient at first, as the other half is zero.
        assert all(bool(value.any()) for key, value in other.items() if name != "fsdp2-awaited-new" or "_B." in key)
        assert apart(one, other) < 1e-5
    norms = [line["grad_norm"] for line in expected]
    assert [line["grad_norm"] for line in lines] == pytest.approx(norms, rel=1e-5)


def test_in_bfloat16_the_weights_that_train_stay_in_float32(folder: Path, alone: Any) -> None:
    (_, weights, gradients, *_), (_, _, wanted, _) = told(folder, "fsdp2-bf16"), alone("fsdp2")
    assert {one.dtype for one in (*weights[-1].values(), *gradients[0].values())} == {torch.float32}
    assert any(bool((one != one.bfloat16()).any()) for one in weights[-1].values())
    assert 1e-4 < apart(gradients[0], wanted[0]) < 0.2, "it is computed in bfloat16"


def test_frozen_weights_that_were_awaited_are_those_of_the_first_in_the_precision_of_the_computation(
    folder: Path, tiny_model: Path
) -> None:
    given = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.bfloat16).state_dict()
    for rank in (0, 1):
        _, weights, _, _, frozen, *_ = told(folder, "fsdp2-awaited-bf16", rank)
        assert {one.dtype for one in weights[0].values()} == {torch.float32}
        plain = {name.removeprefix("base_model.model.").replace(".base_layer", ""): one for name, one in frozen.items()}
        assert plain
        assert all(torch.equal(one, given[name]) for name, one in plain.items())


@pytest.mark.parametrize("name", ["fsdp2-saved", "zero2-saved", "zero3-saved"])
@pytest.mark.parametrize("sharding", ["fsdp2", "none"])
def test_one_process_goes_on_in_the_middle_of_a_rollout_where_two_stopped(
    name: str, sharding: Any, folder: Path, tiny_model: Path, tmp_path: Path
) -> None:
    lines, weights, *_ = told(folder, name)
    changes = {"resume": folder / name, "sharding": sharding, "save_strategy": "no"}
    again, resumed, *_ = played(name, tiny_model, tmp_path, 0, 1, **changes)
    assert [line["loss"] for line in again] == pytest.approx(
        [line["loss"] for line in lines[STOPPED:]], rel=1e-4, abs=1e-5
    )
    assert [line["learning_rate"] for line in again] == [line["learning_rate"] for line in lines[STOPPED:]]
    for one, other in zip(resumed, weights[STOPPED:], strict=True):
        assert apart(one, other) < 1e-4


@pytest.mark.parametrize("name", ["fsdp2-resumed", "zero3-resumed"])
def test_two_processes_go_on_where_one_stopped(name: str, folder: Path, alone: Any) -> None:
    lines, weights, *_ = told(folder, name)
    expected, wanted, *_ = alone(name)
    assert [line["step"] for line in lines] == [3, 4]
    losses = [line["loss"] for line in expected[STOPPED:]]
    assert [line["loss"] for line in lines] == pytest.approx(losses, rel=1e-4, abs=1e-5)
    for one, other in zip(weights, wanted[STOPPED:], strict=True):
        assert apart(one, other) < 1e-4


def optimizer_in(checkpoint: Path) -> dict[str, Tensor]:
    """The whole state of the optimizer in a checkpoint."""

    def wanted(held: Any) -> dict[str, Tensor]:
        names = {name: one for name, one in held.items() if name.startswith(shards.OPTIMIZER)}
        return {name: torch.zeros(one.size, dtype=one.properties.dtype) for name, one in names.items()}

    return shards.read(checkpoint, wanted, alone=True)


def assert_begun_with(state: dict[str, Tensor], checkpoint: Path) -> None:
    wanted = optimizer_in(checkpoint)
    assert {float(value) for name, value in wanted.items() if name.endswith("/step")} == {STOPPED}
    assert any(bool(value.any()) for name, value in wanted.items() if name.endswith("/exp_avg_sq"))
    assert state.keys() == wanted.keys()
    assert all(torch.equal(state[name], value) for name, value in wanted.items())


@pytest.mark.parametrize("name", ["fsdp2-begun", "zero2-begun", "zero3-begun"])
def test_two_processes_begin_with_the_optimizer_of_one_bit_by_bit(name: str, folder: Path, tiny_model: Path) -> None:
    lines, weights, _, state, *_ = told(folder, name)
    assert_begun_with(state, folder / ONE / f"checkpoint-{STOPPED}")
    # The weights and the schedule are the new run's own: one step with the first learning rate of its warm-up.
    given = dict(AutoModelForCausalLM.from_pretrained(tiny_model).named_parameters())
    assert apart(weights[0], {key: given[key].detach() for key in weights[0]}) == 0
    assert [line["learning_rate"] for line in lines] == pytest.approx([ADAM["learning_rate"] / ADAM["warmup_steps"]])


@pytest.mark.parametrize("name", ["fsdp2-saved", "zero2-saved", "zero3-saved"])
def test_one_process_begins_with_the_optimizer_of_two_bit_by_bit(
    name: str, folder: Path, tiny_model: Path, tmp_path: Path
) -> None:
    told(folder, name)
    changes = {"begin_from": folder / name, "sharding": "none", "save_strategy": "no", "max_steps": 1}
    *_, trainer = played("fsdp2-saved", tiny_model, tmp_path, 0, 1, **changes)
    (kept,) = (one for one in trainer.callback_handler.callbacks if isinstance(one, Whole))
    assert_begun_with(kept.state, folder / name / f"checkpoint-{STOPPED}")


@pytest.mark.parametrize("name", ["fsdp2", "zero2-saved", "zero3"])
def test_an_export_is_an_ordinary_folder_of_transformers(name: str, folder: Path) -> None:
    _, weights, *_ = told(folder, name)
    model = AutoModelForCausalLM.from_pretrained(folder / name / "export")
    loaded = dict(model.named_parameters())
    assert apart({key: loaded[key].detach() for key in weights[-1]}, weights[-1]) < 1e-6


@pytest.mark.parametrize("name", ["fsdp2-saved", "zero2-saved", "zero3-saved"])
def test_a_checkpoint_of_two_processes_is_exported_without_them(
    name: str, folder: Path, tiny_model: Path, tmp_path: Path
) -> None:
    _, weights, *_ = told(folder, name)
    checkpoint = f"checkpoint-{STOPPED}"
    RunWriter(tmp_path / "run", episodes=False).begin({"model": {"path": str(tiny_model)}})
    shutil.copytree(folder / name / checkpoint, tmp_path / "run" / checkpoint)
    assert find_weights(tmp_path / "run", checkpoint).sharded
    out = export_model(tmp_path / "run", tmp_path / "out", which=checkpoint)
    loaded = dict(AutoModelForCausalLM.from_pretrained(out).named_parameters())
    wanted = weights[STOPPED]
    assert apart(wanted, weights[-1]) > 1e-3
    assert apart({key: loaded[key].detach() for key in wanted}, wanted) < 1e-6


@pytest.mark.parametrize("name", ["fsdp2-lora", "fsdp2-awaited-adapter", "zero3-lora"])
def test_an_export_of_adapters_is_an_ordinary_adapter(name: str, folder: Path, tiny_model: Path) -> None:
    _, weights, *_ = told(folder, name)
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    loaded = dict(PeftModel.from_pretrained(base, str(folder / name / "export")).named_parameters())
    assert apart({key: loaded[key].detach() for key in weights[-1]}, weights[-1]) < 1e-6


def test_the_shards_of_another_model_are_refused(folder: Path, tiny_model: Path, tmp_path: Path) -> None:
    changes = {"resume": folder / "fsdp2-saved", "lora": True, "save_strategy": "no"}
    with pytest.raises(ConfigurationError, match="belongs to another model"):
        played("fsdp2-saved", tiny_model, tmp_path, 0, 1, **changes)


def test_a_checkpoint_without_shards_is_refused_by_a_sharded_run(tiny_model: Path, tmp_path: Path) -> None:
    played("fsdp2-saved", tiny_model, tmp_path / "plain", 0, 1, sharding="none")
    with pytest.raises(ConfigurationError, match="was written without sharding"):
        played("fsdp2-saved", tiny_model, tmp_path / "sharded", 0, 1, resume=tmp_path / "plain")
