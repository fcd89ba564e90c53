"""Golden numbers of the presets: what the paper's table, the released scripts and RLinf's recipe say.

Sources: arXiv 2508.20722, sections 4.1 to 4.3 and 5.1; github.com/microsoft/rStar, examples/*.sh and
rstar2_agent/config, 2025-09; github.com/RLinf/RLinf, examples/agent/rstar2/config, 2026-08.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from places import DOCS

from rstar2_env.evaluation.presets import preset as suite
from rstar2_env.trainers.pipeline.cost import Cost, CostInputs
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import presets
from rstar2_env.trainers.pipeline.plan import PipelinePlan, costs_of
from rstar2_env.trainers.pipeline.run import PipelineRun, look_at
from rstar2_env.trainers.pipeline.spread import spread_of
from rstar2_env.trainers.pipeline.table import COSTS, STAGES, Tables, plan_table

PAGE = (DOCS / "pipeline-presets.md").read_text("utf-8")
PRESETS_OF_PAGE = PAGE.partition("\n## Presets\n")[2]
Computed: TypeAlias = Callable[[str], tuple[PipelinePlan, list[Cost], Tables]]


def planned(name: str, folder: Path) -> PipelinePlan:
    plan = PipelinePlan(read_pipeline(presets()[name]), folder)
    plan.check()
    return plan


def options(plan: PipelinePlan, stage: str) -> Any:
    return plan.made[stage].stage.resolved()


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Computed:
    """The plan of a preset, what its stages take, and its tables; computed once, since that takes seconds."""

    @cache
    def compute(name: str) -> tuple[PipelinePlan, list[Cost], Tables]:
        folder = tmp_path_factory.mktemp("planned") / "run"
        run = PipelineRun(planned(name, folder))
        costs = list(costs_of(run.plan, [one.made for one in look_at(run)]))
        return run.plan, costs, plan_table(run)

    return compute


def by_stage(tables: Tables) -> dict[str, dict[str, str]]:
    """The cells of both tables, by stage and heading."""
    both = zip(tables.stages, tables.costs, strict=True)
    return {one[0]: dict(zip((*STAGES, *COSTS), (*one, *other), strict=True)) for one, other in both}


@pytest.mark.parametrize(
    ("stage", "tokens", "turns", "steps", "warmup"),
    [("stage1", 8192, 10, 300, 20), ("stage2", 12288, 10, 85, 0), ("stage3", 12288, 15, 125, 20)],
)
def test_the_stages_of_the_paper(stage: str, tokens: int, turns: int, steps: int, warmup: int, tmp_path: Path) -> None:
    plan = planned("rstar2_14b_paper", tmp_path)
    found = options(plan, stage)
    rollout, optim, parts = found["rollout"], found["optim"], found["parts"]
    assert (rollout["max_episode_tokens"], found["run"]["steps"]) == (tokens, steps)
    assert rollout["env_options"]["max_turns"] == turns
    assert (rollout["problems_per_step"], rollout["group_size"], rollout["oversample"]) == (512, 16, 2)
    assert (rollout["temperature"], rollout["refill"]) == (1.0, 0)
    assert (optim["learning_rate"], optim["warmup_steps"]) == (1e-6, warmup)
    # The second stage goes on with the optimizer of the first; the third begins with a fresh one.
    carried = [str(given) for given in plan.made[stage].given.get("optimizer", ())]
    assert carried == (["stage1.optimizer"] if stage == "stage2" else [])
    assert optim["lr_scheduler"] == "constant_with_warmup"
    assert [term["name"] for term in parts["loss"]] == ["ppo_clip"]
    assert (parts["loss"][0]["low"], parts["loss"][0]["high"]) == (0.2, 0.28)
    assert (parts["selector"]["name"], parts["selector"]["mode"]) == ("roc", "sample")


def test_the_cold_start_of_the_paper(tmp_path: Path) -> None:
    plan = planned("rstar2_14b_paper", tmp_path)
    found = options(plan, "cold_start")
    processes = spread_of(plan.made["cold_start"].stage.launch).train
    assert (found["epochs"], found["learning_rate"], found["batch_size"] * processes) == (3, 5e-6, 128)
    assert (found["warmup_ratio"], found["lr_scheduler"]) == (0.04, "cosine")
    sources = options(plan, "conversations")["sources"]
    tools = sources["toolace"] + sources["apigen-mt"] + sources["glaive"]
    assert (tools, sources["magicoder"], sources["tulu-if"], sources["nemotron-chat"]) == (117e3, 48e3, 30e3, 27e3)
    assert plan.origin(plan.made["cold_start"]) == "Qwen/Qwen3-14B-Base"


def test_the_data_of_the_paper(tmp_path: Path) -> None:
    plan = planned("rstar2_14b_paper", tmp_path)
    found = options(plan, "data")
    assert (found["integers"], found["verifiable"], found["ngram"]) == (True, True, 8)
    assert found["against"] == list(suite("rstar2")["sets"])
    labels = options(plan, "agreed")
    assert labels["n"] == 16
    assert 2 / 16 >= labels["drop_below"] > 1 / 16
    assert labels["drop_from"] > 1


def test_the_difficulty_filter_of_the_paper_drops_what_the_latest_policy_solves_8_times_of_8(tmp_path: Path) -> None:
    plan = planned("rstar2_14b_paper", tmp_path)
    found = options(plan, "hard")
    assert (found["n"], found["drop_from"], found["drop_below"]) == (8, 1.0, 0.0)
    assert str(plan.made["hard"].given["model"][0]) == "stage2.model"
    assert str(plan.made["stage3"].given["problems"][0]) == "hard.problems"
    assert str(plan.made["stage3"].given["model"][0]) == "stage2.model"


@pytest.mark.parametrize("name", ["math500", "aime24", "aime25", "hmmt25"])
def test_the_evaluation_of_the_paper(name: str, tmp_path: Path) -> None:
    plan = planned("rstar2_14b_paper", tmp_path)
    found, wanted = options(plan, name), suite("rstar2")
    assert found["n"] == wanted["n"] == 16
    assert found["env_options"] == wanted["env_options"] == {"max_turns": 30}
    sampled = found["model_options"]
    assert (sampled["temperature"], sampled["max_episode_tokens"]) == (0.6, 30720)
    assert sampled["max_episode_tokens"] == wanted["model_options"]["max_episode_tokens"]
    assert str(plan.made[name].given["model"][0]) == "stage3.model"


@pytest.mark.parametrize(("name", "steps"), [("rstar2_14b_released", 200), ("qwen2.5_7b_8gpu", 150)])
def test_the_released_code_and_the_port_of_it(name: str, steps: int, tmp_path: Path) -> None:
    found = options(planned(name, tmp_path), "train")
    rollout, optim, parts = found["rollout"], found["optim"], found["parts"]
    assert (rollout["problems_per_step"], rollout["group_size"], rollout["oversample"]) == (128, 16, 2)
    assert (rollout["max_episode_tokens"], rollout["temperature"]) == (8192, 1.0)
    assert {key: rollout["env_options"][key] for key in ("max_turns", "max_output")} == {
        "max_turns": 5,
        "max_output": 256,
    }
    assert (found["run"]["steps"], optim["learning_rate"], optim["warmup_steps"]) == (steps, 1e-6, 20)
    assert (parts["selector"]["mode"], parts["selector"]["minimum"]) == ("rank", 2)
    clip = parts["loss"][0]
    assert (clip["low"], clip["high"], clip["dual"]) == (0.2, 0.28, 3)


def test_aime_is_sampled_64_times_for_the_published_figures(tmp_path: Path) -> None:
    plan = planned("qwen2.5_7b_8gpu", tmp_path)
    assert plan.origin(plan.made["aime24"]) == "Qwen/Qwen2.5-7B-Instruct"
    assert {options(plan, name)["n"] for name in ("before_aime24", "aime24", "aime25")} == {64}
    for figure in (33.65, 24.11, 31.77, 25.94):  # each is a share of 30 problems, sampled 64 times, and not 32 times
        assert round(100 * round(figure / 100 * 1920) / 1920, 2) == figure


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_planned_with_costs_and_writes_nothing(name: str, computed: Computed) -> None:
    plan, _, tables = computed(name)
    rows = by_stage(tables)
    assert {row["state"] for row in rows.values()} == {"to do"}
    plays = [row for row in rows.values() if row["kind"] in ("train", "relift", "filter", "evaluate")]
    assert plays
    assert all(row["episodes"] and row["tokens"] for row in plays)
    timed = plan.pipeline.machine.device.is_accelerator
    assert all(bool(row["time"]) is timed for row in plays)
    assert "device hours" in tables.notes[0] or not timed
    assert not plan.folder.exists()


def test_the_stages_of_the_paper_play_as_many_episodes_as_its_steps_take(computed: Computed) -> None:
    rows = by_stage(computed("rstar2_14b_paper")[2])
    held_out = {"stage1": 31, "stage2": 10, "stage3": 14}
    for name, steps in (("stage1", 300), ("stage2", 85), ("stage3", 125)):
        assert int(rows[name]["episodes"].replace(",", "")) == steps * 512 * 32 + held_out[name] * 128
    assert int(rows["hard"]["episodes"].replace(",", "")) == 42_000 * 8
    assert rows["cold_start"]["ends after"] == "5204 steps"  # 3 epochs of 222,000 conversations in batches of 128


@pytest.mark.parametrize("name", presets())
def test_the_costs_on_the_page_are_those_that_are_computed(name: str, computed: Computed) -> None:
    plan, costs, _ = computed(name)
    line = next(line for line in PRESETS_OF_PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    episodes, time, device_hours = (cell.strip() for cell in line.split("|")[3:6])
    hours = sum(cost.seconds or 0.0 for cost in costs) / 3600
    assert episodes == f"{sum(cost.episodes for cost in costs):,}"
    if not plan.pipeline.machine.device.is_accelerator:
        assert (time, device_hours) == ("(below)", "")
        return
    assert time.startswith(f"{hours:,.1f} h on ")
    if any(cost.devices > 1 for cost in costs):
        # What computes on one device while others wait would be most of it.
        assert min(cost.devices for cost in costs if cost.seconds) == plan.pipeline.machine.gpus
    assert device_hours == f"{sum((cost.seconds or 0.0) * cost.devices for cost in costs) / 3600:,.0f}"
    if name == "rstar2_14b_paper":
        parts = {one.id: cost.seconds or 0.0 for one, cost in zip(plan.steps, costs, strict=True)}
        trained = sum(parts[stage] for stage in ("stage1", "stage2", "stage3")) / 3600
        assert re.search(rf"training stages[^|]*\| {trained:.1f} h \|", PAGE)
        for stage in ("agreed", "hard"):
            assert re.search(rf"`{stage}`[^|]*\| {parts[stage] / 3600:,.1f} h", PAGE)
        alone = replace(plan.made["agreed"].stage, serve=None).cost(
            CostInputs(plan.pipeline.machine, "Qwen/Qwen3-32B", {"problems": 100_000})
        )
        assert f"on one device {(alone.seconds or 0.0) / 3600:,.1f} h" in PAGE
