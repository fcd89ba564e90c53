"""``rstar2 plan``: memory, placement and seconds a step of a run, before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence


def plan_command(
    trainer: Annotated[
        str | None,
        typer.Argument(
            metavar="TRAINER", help="As `rstar2 train` takes it [default: the trainer of --config, or rstar2_paper]."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A known model (qwen3-14b), or a folder with a config.json.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="How many devices there are.")] = 8,
    gpu: Annotated[str, typer.Option(help="What they are: MI300X, H100, ..., or cpu for this machine.")] = "MI300X",
    serve: Annotated[
        int | None,
        typer.Option(min=0, help="Devices that serve; 0: the same serve and train [default: the fastest that fits]."),
    ] = None,
    tensor_parallel: Annotated[
        int | None, typer.Option(min=1, help="Devices of one engine [default: as few as the model needs].")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="File of training options, as for `rstar2 train`.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A training option (max_episode_tokens=12288)."),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An assumption (mean_tokens=6000); the plan lists them all."),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Compare with what others published instead, and plan nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what a run takes: bytes of each device by what for, episodes in flight, who serves and who trains, seconds.

    Nothing is loaded and nothing is started. Exits with 1 when the run does not fit. Seconds rest on assumptions, which
    are listed with their sources; docs/scaling.md says how far they can be trusted.
    """
    import json

    from rstar2_env.core.errors import ConfigurationError

    if published:
        _published(as_json)
        return
    if model is None:
        raise ConfigurationError(
            "Which model? A name such as qwen3-14b, or a folder with a config.json.", option="model"
        )
    plan = _plan(trainer, model, gpus, gpu, config, set_ or [], assume or [], serve, tensor_parallel)
    if as_json:
        typer.echo(json.dumps(plan.record(), indent=1))
    else:
        _show(plan)
    if not plan.fits:
        raise typer.Exit(1)


def _plan(
    trainer: str | None,
    model: str,
    gpus: int,
    gpu: str,
    config: Path | None,
    settings: Sequence[str],
    assume: Sequence[str],
    serve: int | None,
    tensor_parallel: int | None,
) -> Any:
    import importlib

    from rstar2_env.cli._options import layers_of
    from rstar2_env.core.options.declare import call_with_options, parse_options

    api, architecture, assumptions, device, plan, workload = (
        importlib.import_module(f"rstar2_env.trainers.{name}")
        for name in ("api", "plan.architecture", "plan.assumptions", "plan.device", "plan.plan", "plan.workload")
    )
    sizes, one = architecture.architecture_of(model), device.device_of(gpu)
    name, layers = api.layers_of(trainer or (None if config else "rstar2_paper"), config)
    recipe, of_file = api.find_recipe(name)
    options = recipe.configure(of_file, *layers, *layers_of(list(settings)), {"model": model})
    taken = call_with_options("plan", assumptions.Assumptions, parse_options(assume))
    work = workload.Workload.of(options)
    return plan.make_plan(sizes, one, gpus, work, taken, serve=serve, tensor_parallel=tensor_parallel)


def _published(as_json: bool) -> None:
    import importlib
    import json
    from dataclasses import asdict

    from rstar2_env.cli._tables import print_table

    found = importlib.import_module("rstar2_env.trainers.plan.published").comparisons()
    if as_json:
        typer.echo(json.dumps([{**asdict(one), "ratio": round(one.ratio, 3)} for one in found], indent=1))
        return
    for source in dict.fromkeys(one.source for one in found):
        rows = [
            (one.what, f"{one.seconds:.0f}", f"{one.planned:.0f}", f"{one.ratio:.2f}" + ("*" if one.fitted else ""))
            for one in found
            if one.source == source
        ]
        print_table(["seconds of", "published", "planned", "ratio"], rows, title=source)
    typer.echo("* An assumption was chosen by this figure, so that the ratio proves nothing.")


def _show(plan: Any) -> None:
    from rstar2_env.cli._tables import print_figures, print_table, print_text

    found = plan.record()
    placed, training, gib = found["placement"], found["training"], 1 << 30
    step, where = found["step"], found["devices"]
    print_figures(
        f"{found['model']['name']} on {plan.gpus} x {where['name']}",
        {
            "parameters": f"{found['model']['parameters'] / 1e9:.2f} billion"
            + (f", {found['model']['active_parameters'] / 1e9:.2f} for a token" if plan.model.experts else ""),
            "a step": f"{step['groups']} problems x {step['played']} episodes, {step['rows']:,} of them train",
            "an episode": f"{step['mean_tokens']:,} tokens on average, {step['budget']:,} at most",
            "placement": _placement(placed),
            "cache of an engine": f"{found['serving']['cache_tokens']:,} tokens",
            "fits": "yes" if plan.fits else "no",
        },
    )
    memory = {name: f"{number / gib:.2f} GiB" for name, number in training["memory"].items() if number}
    memory["together"] = f"{training['total'] / gib:.2f} GiB of {where['usable'] / gib:.0f} that may be used"
    print_figures("training, on each device", memory)
    seconds = found["seconds"]
    if seconds is not None:
        print_figures("seconds of a step (computed)", {name: str(value) for name, value in seconds.items()})
        rows = [(_placement(other), f"{other['seconds']:.0f}") for other in found["others"]]
        if rows:
            print_table(["other placements", "seconds of a step"], rows)
    for line in found["limits"]:
        print_text(line)
    assumed = [(one["name"], str(one["value"]), one["source"]) for one in found["assumptions"]]
    print_table(["assumption", "value", "source"], assumed, title="--assume NAME=VALUE changes one")


def _placement(placed: dict[str, Any]) -> str:
    engines = f"{placed['engines']} engines of {placed['tensor_parallel']}"
    if placed["colocated"]:
        return f"{placed['training']} serve and train in turn, {engines}, sharding {placed['sharding']}"
    return f"{placed['serving']} serve ({engines}), {placed['training']} train, sharding {placed['sharding']}"
