"""The figures of docs/step-costs.md that are computed are those of `rstar2 plan`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from places import DOCS, ROOT

from rstar2_env.trainers import api
from rstar2_env.trainers.plan.architecture import MODELS
from rstar2_env.trainers.plan.device import DEVICES, GIB
from rstar2_env.trainers.plan.plan import Plan, make_plan
from rstar2_env.trainers.plan.published import comparisons
from rstar2_env.trainers.plan.training_memory import total
from rstar2_env.trainers.plan.workload import Workload

PAGE = (DOCS / "step-costs.md").read_text(encoding="utf-8")


def planned(model: str, gpus: int, file: str, serve: int = 0, **options: Any) -> Plan:
    recipe, of_file = api.find_recipe(str(ROOT / "configs" / f"{file}.toml"))
    work = Workload.of(recipe.configure(of_file, {"model": model, **options}))
    return make_plan(MODELS[model], DEVICES["mi300x"], gpus, work, serve=serve)


def row(begin: str) -> list[str]:
    """Numbers of the row of a table that begins so: memory, rollout, training, new weights."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {begin}"))
    return [re.sub(r"[^0-9]", "", cell) for cell in line.split("|")[3:7]]


@pytest.mark.parametrize(
    ("begin", "plan"),
    [
        ("one GPU, Qwen3-1.7B", ("qwen3-1.7b", 1, "one_gpu_vllm")),
        ("one GPU, Qwen3-8B", ("qwen3-8b", 1, "one_gpu_vllm")),
        ("one GPU, Qwen3-14B", ("qwen3-14b", 1, "one_gpu_vllm", 0, {"lora_rank": 16})),
        ("8 GPUs, Qwen3-14B", ("qwen3-14b", 8, "paper_stage2")),
        ("64 GPUs, the same step", ("qwen3-14b", 64, "paper_stage2")),
        ("64 GPUs, 40 serve", ("qwen3-14b", 64, "paper_stage2", 40, {"max_staleness": 1})),
    ],
)
def test_a_rung_of_the_ladder_is_what_is_computed(begin: str, plan: tuple[Any, ...]) -> None:
    model, gpus, file, *rest = plan
    found = planned(model, gpus, file, rest[0] if rest else 0, **(rest[1] if rest else {}))
    assert found.time is not None
    numbers = (total(found.placed.memory) / GIB, found.time.rollout, found.time.train, found.time.handover)
    assert row(begin) == [str(round(number)) for number in numbers]


def test_a_divided_node_takes_the_seconds_that_are_said() -> None:
    apart, ahead = (
        planned("qwen3-14b", 8, "paper_stage2", 4, sharding="fsdp2", max_staleness=staleness).time
        for staleness in (0, 1)
    )
    together = planned("qwen3-14b", 8, "paper_stage2").time
    for time in (apart, ahead, together):
        assert time is not None
        assert f" {time.total:,.0f} |" in PAGE


def test_what_others_published_stands_beside_what_is_computed() -> None:
    for one in comparisons():
        assert re.search(rf"\| {one.seconds:,.0f} \| {one.planned:,.0f} \|", PAGE), one.what
        assert one.fitted or f"| {one.ratio:.2f} |" in PAGE, one.what


@pytest.mark.parametrize("model", ["Qwen3-1.7B", "Qwen3-8B", "Qwen3-14B"])
def test_the_sizes_of_a_run_are_those_of_the_ladder(model: str) -> None:
    sizes = (DOCS / "sizing.md").read_text("utf-8")
    asked = re.search(rf"\| (?:training|adapters on) {model} \| one GPU with (\d+) GiB", sizes)
    assert asked is not None
    assert asked[1] == row(f"one GPU, {model}")[0]


def test_the_size_of_a_whole_model_is_that_of_the_ladder() -> None:
    sizes = (DOCS / "sizing.md").read_text("utf-8")
    whole = re.search(r"full training needs (\d+) GiB", PAGE)
    assert whole is not None
    assert (
        f"| Qwen3-14B, whole | {whole[1]} GiB over the GPUs: {row('8 GPUs, Qwen3-14B')[0]} GiB on each of eight"
        in sizes
    )


@pytest.mark.parametrize("model", ["Qwen3-1.7B", "Qwen2.5-7B", "Qwen3-14B"])
def test_the_files_of_a_run_have_the_sizes_of_its_parameters(model: str) -> None:
    sizes = (DOCS / "sizing.md").read_text("utf-8")
    billions = MODELS[model.lower()].parameters / 1e9
    bytes_each = (12, 4, 2, 2 * 12 + 2 * 2)
    assert f"| {model} | {' | '.join(f'{each * billions:.0f}' for each in bytes_each)} |" in sizes


def test_the_size_of_a_sharded_model_is_that_of_its_parameters() -> None:
    size = 16 * MODELS["qwen3-14b"].parameters / GIB
    told = " ".join((DOCS / "scaling.md").read_text("utf-8").split())
    assert f"need {size:.0f} GiB in float32" in told
    assert f"each needs {size / 8:.1f} GiB (computed)" in told
