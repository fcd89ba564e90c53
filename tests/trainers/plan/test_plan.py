"""Placements that fit are found, those that do not say why, and published steps come out as documented."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from places import DOCS

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.api import TRAINERS
from rstar2_env.trainers.plan.architecture import MODELS
from rstar2_env.trainers.plan.assumptions import SOURCES, Assumptions
from rstar2_env.trainers.plan.device import DEVICES, device_of
from rstar2_env.trainers.plan.plan import Plan, make_plan
from rstar2_env.trainers.plan.published import comparisons
from rstar2_env.trainers.plan.workload import Workload

WORK = Workload(groups=512, played=32, trained=16, budget=12_288, tokens_per_device=16_384, in_flight=512)


def planned(model: str = "qwen3-14b", gpus: int = 64, work: Workload = WORK, **options: object) -> Plan:
    return make_plan(MODELS[model], DEVICES["mi300x"], gpus, work, **options)  # type: ignore[arg-type]


def test_the_papers_run_fits_on_its_devices_with_sharded_weights() -> None:
    plan = planned()
    assert plan.fits
    assert plan.placed.how.sharding == "fsdp2"
    assert plan.record()["placement"]["lacking"] == ""


@pytest.mark.parametrize(
    ("loss", "needed"), [("ppo_clip", False), ("ppo_clip+kl", True), ("ppo_clip+apo_dads", True), ("reinforce", False)]
)
def test_every_term_that_compares_with_the_reference_model_gets_its_memory(loss: str, needed: bool) -> None:
    work = Workload.of(TRAINERS.get("grpo_roc").configure({"model": "m", "loss": loss}))
    memory = planned(work=replace(WORK, reference=work.reference)).placed.memory
    assert (work.reference, memory.get("reference", 0) > 0) == (needed, needed)


def test_a_model_that_does_not_fit_says_by_how_much_and_what_would_help() -> None:
    plan = planned(gpus=1)
    assert not plan.fits
    assert plan.time is None
    assert "training needs" in plan.limits[0]
    assert "model.lora_rank" in plan.limits[0]
    assert planned(gpus=1, work=replace(WORK, lora_rank=16)).fits


def test_several_processes_shard_as_the_launcher_lets_them_unless_the_run_says_otherwise() -> None:
    assert planned("qwen3-0.6b", 8).placed.how.sharding == "fsdp2"
    assert planned("qwen3-0.6b", 8, replace(WORK, sharding="none")).placed.how.sharding == "none"
    assert planned("qwen3-0.6b", 1).placed.how.sharding == "none"


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({"kv_cache_gib": 8}, 8 * 2**30),
        ({"kv_cache_memory_bytes": 2**30}, 2**30),
        ({"gpu_memory_utilization": 0.25}, 0.25 * 192 * 2**30 - 2 * MODELS["qwen3-8b"].parameters - 4 * 2**30),
    ],
)
def test_an_engine_option_sets_the_cache_of_a_colocated_engine(options: dict[str, float], tokens: float) -> None:
    each = MODELS["qwen3-8b"].cache_bytes()
    sized = replace(WORK, engine_options=options)
    assert planned("qwen3-8b", 8, sized, serve=0).placed.cache_tokens == pytest.approx(tokens / each, abs=1)
    apart = planned("qwen3-8b", 8, sized, serve=4).placed
    assert apart.cache_tokens == planned("qwen3-8b", 8, serve=4).placed.cache_tokens, (
        "servers have options of their own"
    )


def test_a_cache_that_the_optimizer_leaves_no_room_for_does_not_fit() -> None:
    plan = planned("qwen3-8b", 1, replace(WORK, engine_options={"gpu_memory_utilization": 0.6}), serve=0)
    assert "the engine options of the run reserve" in plan.placed.lacking


def test_a_relay_on_each_machine_reads_the_weights_once_for_its_servers() -> None:
    def found(**options: object) -> Plan:
        return planned(serve=40, work=replace(WORK, **options))  # type: ignore[arg-type]

    size, assume = 2.0 * MODELS["qwen3-14b"].parameters, Assumptions()
    every, relays, group = found(), found(relays=True), found(transport="group")
    for plan, copies in ((every, 40), (relays, 5), (group, 1)):
        assert plan.time is not None
        assert plan.time.handover == pytest.approx(size / (assume.handover_gb_s * 1e9) + copies * size / 10e9)
    assert "engine.relay_dir" in " ".join(every.limits)
    assert "engine.relay_dir" not in " ".join(relays.limits)
    told = json.loads((DOCS / "data" / "weight_sync_plan.json").read_text("utf-8"))["figures"]
    assert (told["servers"], told["machines"]) == (40, 5)
    for name, plan in (("folder", every), ("relay", relays), ("group", group)):
        assert plan.time is not None
        assert told[name]["seconds"] == round(plan.time.handover)
    assert [told[name]["read_gb"] for name in ("folder", "relay")] == [round(40e-9 * size), round(5e-9 * size)]


def test_a_small_colocated_cache_gets_the_memory_of_the_optimizers_state() -> None:
    model = MODELS["qwen3-14b"]
    found, kept = planned(gpus=8, serve=0), planned(gpus=8, serve=0, work=replace(WORK, offload_state=False))
    state = found.placed.memory["optimizer"]
    assert (found.placed.offloaded, kept.placed.offloaded) == (state, 0)
    assert state == pytest.approx(8 * model.parameters / 8, rel=1e-6)
    assert found.placed.cache_tokens - kept.placed.cache_tokens == pytest.approx(state / model.cache_bytes(), abs=1)
    assert found.time is not None
    assert kept.time is not None
    assert found.time.offload == pytest.approx(2 * state / 25e9), "out and back, at the assumed speed"
    assert kept.time.offload == 0
    assert found.time.total < kept.time.total
    assert f"{8 * state / 2**30:,.0f} GiB on each machine" in " ".join(found.limits)
    assert found.record()["serving"]["offloaded"] == state


def test_the_optimizers_state_stays_on_the_device_where_nothing_needs_its_memory() -> None:
    few = replace(WORK, groups=4, played=4)
    assert planned(gpus=8, serve=0, work=few).placed.offloaded == 0
    assert planned(gpus=8, serve=4).placed.offloaded == 0, "servers have devices of their own"
    sized = replace(WORK, engine_options={"kv_cache_gib": 8})
    assert planned(gpus=8, serve=0, work=sized).placed.offloaded == 0


def test_an_evaluation_moves_the_optimizers_state_too() -> None:
    held_out = replace(WORK, eval_every=4, eval_episodes=64, max_eval_tokens=12_288)
    often, never = planned(gpus=8, serve=0, work=held_out).time, planned(gpus=8, serve=0).time
    assert often is not None
    assert never is not None
    assert often.offload == pytest.approx(1.25 * never.offload)


def test_what_the_run_asks_for_is_kept_although_less_would_do() -> None:
    assert planned("qwen3-0.6b", 8, replace(WORK, sharding="zero3")).placed.how.sharding == "zero3"


def test_servers_get_as_many_devices_as_their_weights_need() -> None:
    plan = make_plan(MODELS["llama-3.1-70b"], DEVICES["mi300x"], 64, WORK, serve=32)
    assert plan.placed.tensor_parallel == 1
    plan = make_plan(MODELS["llama-3.1-70b"], DEVICES["h200"], 64, WORK, serve=32)
    assert (plan.placed.tensor_parallel, plan.placed.engines) == (2, 16)


def test_running_ahead_hides_the_shorter_phase_where_devices_are_divided() -> None:
    alternating, ahead = (planned(work=replace(WORK, max_staleness=number), serve=32).time for number in (0, 1))
    assert alternating is not None
    assert ahead is not None
    assert alternating.total == pytest.approx(alternating.rollout + alternating.train + alternating.handover)
    assert ahead.total == pytest.approx(max(ahead.rollout, ahead.train) + ahead.handover)
    colocated = planned(work=replace(WORK, max_staleness=1), serve=0).time
    assert colocated is not None
    assert not colocated.overlapped


def test_the_fastest_placement_is_chosen() -> None:
    plan = planned()
    assert plan.time is not None
    assert [time.total for _, time in plan.others] == sorted(time.total for _, time in plan.others)
    assert plan.time.total <= plan.others[0][1].total


def test_colocated_engines_leave_the_trainers_weights_and_optimizer_their_room() -> None:
    small = replace(WORK, sharding="none", offload_state=False)
    together, apart = (planned("qwen3-8b", 2, small, serve=serve).placed for serve in (0, 1))
    resident = 12 * MODELS["qwen3-8b"].parameters
    freed = (apart.cache_tokens - together.cache_tokens) * MODELS["qwen3-8b"].cache_bytes()
    assert freed == pytest.approx(resident, rel=1e-3)


def test_twice_the_devices_compute_in_half_the_time() -> None:
    once, twice = (planned(gpus=gpus, serve=0).time for gpus in (32, 64))
    assert once is not None
    assert twice is not None
    assert once.training.compute == pytest.approx(2 * twice.training.compute)


def test_fewer_and_larger_passes_exchange_sharded_weights_less_often() -> None:
    small, large = (planned(work=replace(WORK, tokens_per_device=tokens), serve=0).time for tokens in (16_384, 49_152))
    assert small is not None
    assert large is not None
    assert large.training.passes == pytest.approx(small.training.passes / 3, rel=0.1)
    assert large.training.communication == pytest.approx(small.training.communication / 3, rel=0.1)
    assert large.training.compute == small.training.compute
    alone = planned("qwen3-0.6b", 1, serve=0).time
    assert alone is not None
    assert alone.training.communication == 0


def test_all_wait_for_the_process_with_the_most_tokens() -> None:
    few, many = (planned(work=replace(WORK, groups=groups), serve=0).time for groups in (96, 512))
    assert few is not None
    assert many is not None
    # Of 64 processes, half train on two of 96 groups, and the others on one.
    assert few.training.waiting == pytest.approx(0.35 * few.training.compute, abs=0.1 * few.training.compute)
    assert many.training.waiting < 0.05 * many.training.compute
    assert any("the process with the most" in line for line in planned(work=replace(WORK, groups=96), serve=0).limits)


def test_evaluation_is_divided_among_the_steps_between() -> None:
    evaluated = replace(WORK, eval_every=10, eval_episodes=128, max_eval_tokens=30_720)
    often, seldom = (planned(work=replace(evaluated, eval_every=every), serve=0).time for every in (5, 10))
    assert often is not None
    assert seldom is not None
    assert often.evaluation == pytest.approx(2 * seldom.evaluation) != 0
    moves = often.offload - seldom.offload
    assert often.total - seldom.total == pytest.approx(seldom.evaluation + moves)


def test_servers_on_several_machines_each_read_the_folder_or_receive_one_broadcast() -> None:
    work = replace(WORK, max_staleness=1)
    folder, group = (planned(work=replace(work, transport=name), serve=40) for name in ("folder", "group"))
    assert folder.time is not None
    assert group.time is not None
    size = 2e-9 * MODELS["qwen3-14b"].parameters
    assert folder.time.handover - group.time.handover == pytest.approx(39 * size / 10)
    assert any("40 servers read 1,181 GB" in line for line in folder.limits)
    assert not any("servers read" in line for line in group.limits)
    assert planned("qwen3-4b", 8, work, serve=4).time.handover == pytest.approx(  # type: ignore[union-attr]
        2e-9 * MODELS["qwen3-4b"].parameters / 1.8
    )


def test_on_a_cpu_memory_is_planned_and_seconds_are_not() -> None:
    plan = make_plan(MODELS["qwen3-0.6b"], device_of("cpu"), 1, replace(WORK, budget=1024, tokens_per_device=1024))
    assert plan.record()["seconds"] is None
    assert not plan.placed.how.bfloat16


def test_a_plan_is_json_and_says_all_that_it_assumes() -> None:
    record = json.loads(json.dumps(planned().record()))
    assert {one["name"] for one in record["assumptions"]} == set(SOURCES)
    assert record["training"]["total"] == sum(record["training"]["memory"].values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 0}, "at least one device"),
        ({"serve": 64}, "serving devices must be at least 0"),
        ({"assume": Assumptions(mean_tokens=20_000)}, "must not exceed max_episode_tokens"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        planned(**options)  # type: ignore[arg-type]


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="device type 'MI9' is unknown"):
        device_of("MI9")


def test_peaks_are_those_that_the_trainer_computes_its_utilization_with() -> None:
    torch = pytest.importorskip("torch", reason="the trainer's table is torch's")
    from rstar2_env.trainers.backends.trl.loss import flops

    for device in DEVICES.values():
        known = flops.peak(device.name, torch.bfloat16)
        assert known is None or known == pytest.approx(device.operations, rel=0.01), device.name


def test_published_steps_are_met_within_what_the_documents_say() -> None:
    ratios = {(one.what, one.source[:5]): (one.ratio, one.fitted) for one in comparisons()}
    free = {what: ratio for (what, _), (ratio, fitted) in ratios.items() if not fitted}
    assert free["the rollout"] == pytest.approx(1, abs=0.1)
    four_billion = [one.ratio for one in comparisons() if "qwen3-4b" in one.what]
    assert four_billion == pytest.approx([1, 1], abs=0.05)
    # Both published steps hold work that a plan leaves out; it must never claim more than was spent.
    assert 0.7 < free["a step; 106 s of it are other work"] < 1
    assert 0.6 < free["a step, evaluations and stops included"] < 1
