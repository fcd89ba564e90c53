"""A stage costs what the devices that it uses take, not what the machine has."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.core.options.declare import call_with_options
from rstar2_env.trainers.pipeline.cost import Cost, CostInputs, Machine
from rstar2_env.trainers.pipeline.stages.evaluate import Evaluate
from rstar2_env.trainers.pipeline.stages.sft import Sft
from rstar2_env.trainers.pipeline.stages.train import Train

MODEL = "Qwen/Qwen3-14B"
SERVERS = {"base_urls": [f"http://n{number}:8000" for number in range(8)]}


def about(gpus: int, **counts: int) -> CostInputs:
    return CostInputs(Machine(gpus, "mi300x"), MODEL, counts)


def hours(cost: Cost) -> float:
    assert cost.seconds is not None, cost.notes
    return cost.seconds / 3600


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_playing_in_the_runners_process_is_not_faster_on_more_devices(engine: str) -> None:
    stage = Evaluate(model=MODEL, problems="p.jsonl", n=16, engine=engine)
    alone, many = (stage.cost(about(gpus, problems=500)) for gpus in (1, 64))
    assert hours(alone) == hours(many)
    assert (alone.devices, many.devices) == (1, 1)
    assert any("on 1 of 64 devices" in note for note in many.notes)
    assert not any("devices" in note for note in alone.notes)


def test_playing_on_servers_takes_what_they_take_together() -> None:
    def cost(engine: str, options: dict[str, Any], at_once: int) -> Cost:
        model_options = {"max_in_flight": at_once}
        stage = Evaluate(model=MODEL, n=64, engine=engine, engine_options=options, model_options=model_options)
        return stage.cost(about(64, problems=500))

    one, servers, few = cost("vllm", {}, 4096), cost("vllm-server", SERVERS, 4096), cost("vllm-server", SERVERS, 64)
    assert servers.devices == 8
    assert hours(servers) == pytest.approx(hours(one) / 8, rel=0.1)
    assert hours(few) > 2 * hours(servers)  # eight servers wait for episodes to play


@pytest.mark.parametrize(
    ("serve", "servers", "devices"),
    [
        (None, 1, 1),
        ("0-7", 8, 8),
        (0, 1, 1),
        ({"devices": "0-7", "tensor_parallel": 2}, 4, 8),
        ({"devices": "0-7", "nodes": 4}, 32, 32),
    ],
)
def test_playing_on_servers_that_the_stage_starts_takes_what_their_devices_do(
    serve: Any, servers: int, devices: int
) -> None:
    def cost(serve: Any, problems: int, **sampling: int) -> Cost:
        given = {"model": MODEL, "n": 16, "engine": "vllm", "serve": serve, "model_options": sampling}
        stage: Evaluate = call_with_options("stage", Evaluate, given)
        return stage.cost(about(64, problems=problems))

    found = cost(serve, 500 * servers)
    assert found.devices == devices
    # Each server plays as many episodes at once as one alone, since the option says it of each.
    if devices == servers:
        assert hours(found) == pytest.approx(hours(cost(None, 500)), rel=0.1)
        assert hours(cost(serve, 500 * servers, max_in_flight=16)) > 2 * hours(found)
    assert any(f"on {devices} of 64 devices" in note for note in found.notes)


@pytest.mark.parametrize(
    ("launch", "devices"),
    [("rstar2 launch --colocate --train 0-7 --", 8), ("rstar2 launch --serve 0-3 --train 4-7 --", 8)],
)
def test_training_costs_what_its_launcher_starts(launch: str, devices: int) -> None:
    def cost(launch: str | None, gpus: int) -> Cost:
        options = {"sharding": "fsdp2"}
        stage = Train(model=MODEL, config="configs/paper_stage1.toml", launch=launch, options=options)
        return stage.cost(about(gpus))

    found = cost(launch, 64)
    assert found.devices == devices
    assert hours(found) == hours(cost(launch, devices))
    assert any(f"on {devices} of 64 devices" in note for note in found.notes)
    alone = cost(None, 64)
    assert (alone.devices, alone.seconds) == (1, None)
    assert any("does not fit on the devices: training needs" in note for note in alone.notes)


def test_a_launcher_that_does_not_say_is_assumed_to_use_all_and_says_so() -> None:
    stage = Sft(model=MODEL, traces="t.jsonl", launch="my_launcher --all", options={"steps": 10, "output_dir": "x"})
    cost = stage.cost(about(8))
    assert cost.devices == 8
    assert any("all 8 are assumed" in note for note in cost.notes)


@pytest.mark.parametrize(
    ("launch", "devices", "rows", "fits"),
    [
        (None, 1, 640, False),
        ("torchrun --nproc_per_node 8", 8, 8 * 640, False),  # each of them keeps everything
        ("accelerate launch --config_file configs/accelerate/mi300x_1x8_deepspeed.yaml", 8, 8 * 640, True),
    ],
)
def test_fine_tuning_costs_what_its_processes_take(launch: str | None, devices: int, rows: int, fits: bool) -> None:
    cost = Sft(model=MODEL, traces="t.jsonl", steps=10, launch=launch, options={"output_dir": "x"}).cost(about(8))
    assert (cost.devices, cost.rows, cost.seconds is not None) == (devices, rows, fits)
    assert any("weights and optimizer need" in note for note in cost.notes) is not fits


def test_adapters_fit_where_all_weights_do_not() -> None:
    options = {"lora_rank": 16, "output_dir": "x"}
    assert hours(Sft(model=MODEL, traces="t.jsonl", steps=10, options=options).cost(about(1))) > 0
