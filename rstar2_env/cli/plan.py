"""``rstar2 plan``: estimate the memory, placement and seconds per step of a run before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import Json, Trust
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers


def plan_command(
    ctx: typer.Context,
    trainer: Annotated[
        str | None,
        typer.Argument(
            metavar="TRAINER",
            help="Trainer whose run is estimated, as for `rstar2 train` [default: the trainer in --config, or "
            "grpo_roc].",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model to train: a known name (qwen3-14b), or a folder that holds a config.json [default: the "
            "model in --config]."
        ),
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="Number of GPUs or other devices.")] = 8,
    gpu: Annotated[
        str, typer.Option(help="Type of the devices: MI300X, H100, ..., or cpu for the processor of this machine.")
    ] = "MI300X",
    serve: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of devices that only serve the model, while the others train; 0: every device serves "
            "and trains in turn [default: the fastest placement that fits into memory].",
        ),
    ] = None,
    tensor_parallel: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of devices that each inference engine uses [default: as few as the model needs]."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="File of training options, in the format of `rstar2 train --config`.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a training option (max_episode_tokens=12288). Repeat the option to set several.",
        ),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Change an assumption of the estimate (mean_tokens=6000); the plan lists all assumptions. Repeat "
            "the option to change several.",
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Instead of a plan, print how much the estimates differ from published measurements."
        ),
    ] = False,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Estimate memory per device, episodes in flight, placement of servers and trainers, and seconds per step of a run.

    Nothing is loaded or started. Exits with 1 if the run does not fit. The seconds depend on assumptions, which are
    listed with their sources; docs/step-costs.md discusses their accuracy.
    """
    import json

    from rstar2_env.cli._options import layers_of, refuse_disagreement
    from rstar2_env.core.options.declare import call_with_options, parse_options
    from rstar2_env.models.folder import folder_of_gguf

    if published:
        _published(as_json)
        return
    api = import_trainers("api")
    settings = layers_of(set_)
    flags = {} if model is None else {"model.path": ("model", model)}
    refuse_disagreement(ctx, flags, api.by_setting(set_, settings), api.typed_value)
    device = import_trainers("plan.device").device_of(gpu)
    name, layers = api.layers_of(trainer or (None if config else "grpo_roc"), config)
    recipe, file_options = api.find_recipe(name)
    options = recipe.configure(file_options, *layers, *settings, *([] if model is None else [{"model": model}]))
    architecture = import_trainers("plan.architecture").architecture_of(folder_of_gguf(options.model.path))
    assumed = parse_options(assume or (), flag="--assume ")
    assumptions = call_with_options("plan", import_trainers("plan.assumptions").Assumptions, assumed)
    workload = import_trainers("plan.workload").Workload.of(options)
    plan = import_trainers("plan.plan").make_plan(
        architecture, device, gpus, workload, assumptions, serve=serve, tensor_parallel=tensor_parallel
    )
    if as_json:
        say(json.dumps(plan.record(), indent=1))
    else:
        _show(plan)
    if not plan.fits:
        raise typer.Exit(1)


def _published(as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from rstar2_env.cli._tables import print_table

    found = import_trainers("plan.published").comparisons()
    if as_json:
        say(json.dumps([{**asdict(entry), "ratio": round(entry.ratio, 3)} for entry in found], indent=1))
        return
    for source in dict.fromkeys(entry.source for entry in found):
        rows = [
            (
                *(entry.what, f"{entry.seconds:.0f}", f"{entry.planned:.0f}"),
                f"{entry.ratio:.2f}" + ("*" if entry.fitted else ""),
            )
            for entry in found
            if entry.source == source
        ]
        print_table(["seconds of", "published", "computed", "ratio"], rows, title=source)
    say("* The assumptions were adjusted to match this figure, so this row does not show how accurate the estimate is.")


_SECONDS = {
    "rollout": "rollout",
    "train": "training, of which:",
    "train_compute": "- computation",
    "train_waiting": "- waiting for the process with the most tokens",
    "train_communication": "- communication",
    "train_overhead": "- fixed time of the passes",
    "handover": "weight sync",
    "offload": "optimizer's state to host memory and back",
    "evaluation": "evaluation, as a share of a step",
    "other": "other",
    "total": "total",
}
"""Label of each part of a step's time, keyed by the part's name in the output of ``--json``."""


def _show(plan: Any) -> None:
    from rstar2_env.cli._tables import print_figures, print_table, print_text

    found = plan.record()
    placed, training, gib = found["placement"], found["training"], 1 << 30
    step, where = found["step"], found["devices"]
    print_figures(
        f"{found['model']['name']} on {plan.gpus} x {where['name']}",
        {
            "parameters": f"{found['model']['parameters'] / 1e9:.2f} billion"
            + (f", {found['model']['active_parameters'] / 1e9:.2f} active per token" if plan.model.experts else ""),
            "step": f"{step['groups']} problems x {step['played']} episodes, train on {step['rows']:,} of them",
            "episode": f"{step['mean_tokens']:,} tokens on average, {step['budget']:,} at most",
            "placement": _placement(placed),
            "cache per engine": f"{found['serving']['cache_tokens']:,} tokens",
            "fits": "yes" if plan.fits else "no",
        },
    )
    memory = {name: f"{number / gib:.2f} GiB" for name, number in training["memory"].items() if number}
    memory["total"] = f"{training['total'] / gib:.2f} GiB of {where['usable'] / gib:.0f} GiB usable"
    print_figures("training memory per device (computed)", memory)
    seconds = found["seconds"]
    if seconds is not None:
        print_figures("seconds per step (computed)", {label: str(seconds[name]) for name, label in _SECONDS.items()})
        print_figures(
            "work of a step (computed)",
            {
                "rollout and training": "in parallel" if seconds["overlapped"] else "in turn",
                "episodes in flight per engine": f"{seconds['in_flight_per_engine']} at most, {seconds['waves']} waves",
                "training passes per process": str(seconds["passes"]),
            },
        )
        rows = [(_placement(other), f"{other['seconds']:.0f}") for other in found["others"]]
        if rows:
            print_table(["other placements", "seconds per step"], rows)
    for line in found["limits"]:
        print_text(line)
    assumptions = [
        (each["name"], str(step[each["name"]] if each["value"] is None else each["value"]), each["source"])
        for each in found["assumptions"]
    ]
    print_table(["assumption", "value", "source"], assumptions, title="assumptions (change with --assume NAME=VALUE)")


def _placement(placed: dict[str, Any]) -> str:
    engines = f"{placed['engines']} engines x {placed['tensor_parallel']} devices"
    if placed["colocated"]:
        return f"{placed['training']} devices serve and train in turn, {engines}, sharding {placed['sharding']}"
    return f"{placed['serving']} devices serve ({engines}), {placed['training']} train, sharding {placed['sharding']}"
