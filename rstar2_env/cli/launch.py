"""``rstar2 launch``: start the servers and trainers of one machine with one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.outputs import begin_folder, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def launch_command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="-- TRAINER [OPTIONS]",
            help="Trainer and options, as for `rstar2 train`; write two dashes (--) before them.",
        ),
    ],
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICES",
            help="Numbers of the devices that run inference servers: 0-3, or 0,2 [default: no servers].",
        ),
    ] = None,
    train: Annotated[
        str, typer.Option(metavar="DEVICES", help="Numbers of the devices that train the model: 4-7, or 4,6.")
    ] = "0",
    colocate: Annotated[
        bool,
        typer.Option(
            "--colocate",
            help="Run a vLLM engine inside each training process instead of servers; the engine releases the "
            "device's memory during optimizer steps.",
        ),
    ] = False,
    tensor_parallel: Annotated[int, typer.Option(min=1, help="Number of devices that each inference server uses.")] = 1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of training processes [default: one per device; one on a CPU].")
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use CPU cores instead of GPUs as devices.")] = False,
    port: Annotated[
        int,
        typer.Option(min=1, max=65535, help="Port of the first inference server; further servers use the next ports."),
    ] = 8001,
    host: Annotated[str, typer.Option(help="Network address that the inference servers listen on.")] = "127.0.0.1",
    server_options: Annotated[
        str,
        typer.Option(
            metavar="ARGS", help="Extra arguments that are passed to each vLLM server ('--max-model-len 16384')."
        ),
    ] = "",
    server_program: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that starts an inference server, instead of vLLM. In the command, {model}, {host} and "
            "{port} are replaced by the model and the server's address, and {size} by the value of --tensor-parallel.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Maximum time until the inference servers are ready, in seconds.")
    ] = 900.0,
    restarts: Annotated[
        int, typer.Option(min=0, help="Maximum number of times that an inference server is restarted after it exits.")
    ] = 3,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the log files of the inference servers [default: the folder of the run, with the suffix "
            "-logs]."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands that would be started, and exit.")
    ] = False,
) -> None:
    """Start inference servers and, when they are ready, the training processes; stop all of them together.

    The output and the exit code are those of the trainer. Ctrl-C and SIGTERM are passed on to the trainer, which
    finishes its step and writes a checkpoint while the servers still run; a second signal stops it immediately. The
    options of the trainer are checked before anything starts. Several training processes divide the weights and the
    optimizer's state among them (sharding=fsdp2), unless the arguments set `sharding`.
    """
    import os
    import shlex
    import shutil

    commands, launched = import_trainers("launch.commands"), import_trainers("launch.servers")
    supervisor = import_trainers("launch.supervisor")
    config, out, settings = _train_arguments(words)
    devices, engines = _devices(serve, train, colocate=colocate, tensor_parallel=tensor_parallel, cpu=cpu)
    processes = processes or (1 if cpu else len(devices))
    if not cpu and processes > len(devices):
        raise ConfigurationError(
            f"The {processes} training processes (--processes) need at least as many devices, and --train has "
            f"{len(devices)}: use fewer processes or more devices."
        )
    if engines and server_program is None and not dry_run:
        import_trainers("launch.devices").check_vllm(cores=cpu)
    more = shlex.split(server_options)
    servers = [
        commands.server(
            number,
            config.model.path,
            own,
            port + number,
            host=host,
            program=server_program,
            more=more,
            cuts=config.rollout.top_p < 1 or config.rollout.top_k > 0,
        )
        for number, own in enumerate(engines)
    ]
    set_here = _engine_settings([server.url for server in servers], config.rollout.engine_options, settings, cpu=cpu)
    if processes > 1 and config.run.sharding is None:
        set_here["sharding"] = "fsdp2"
    weights_dir = None
    if servers and _syncs_by_folder(config.rollout.engine_options):
        weights_dir = set_here["engine.weights_dir"] = _weights_dir(make=not dry_run)
    trainer = commands.trainer(words, devices, processes, set_here)
    if dry_run:
        for command in (*servers, trainer):
            say(command.shown(os.environ))
        return
    try:
        if servers:
            logs = logs or Path(f"{out}-logs")
            begin_folder(logs, "logs", "*.log", resume=kind_of(logs) == "logs", option="logs")
        started = launched.logged(servers, logs or Path(f"{out}-logs"))
        served = launched.Servers(started, timeout, restarts, say=lambda line: say(line, err=True))
        code = supervisor.Supervisor(served, launched.StartedCommand(trainer)).run()
    finally:
        if weights_dir is not None:
            shutil.rmtree(weights_dir, ignore_errors=True)
    raise typer.Exit(code)


def _devices(
    serve: str | None, train: str, *, colocate: bool, tensor_parallel: int, cpu: bool
) -> tuple[Any, Sequence[Any]]:
    """Return the devices for training, and the devices of each server (empty with ``--colocate``)."""
    read_devices = import_trainers("launch.devices").read_devices
    training = read_devices(train, cores=cpu, option="train")
    if colocate:
        if serve is not None:
            raise ConfigurationError("--colocate does not start servers: omit --serve.")
        if tensor_parallel > 1:
            raise ConfigurationError(
                "--colocate supports only one device per engine: omit --tensor-parallel, or use --serve "
                "instead of --colocate."
            )
        return training, []
    if serve is None:
        raise ConfigurationError(
            "No devices are given for inference servers: add --serve DEVICES (--serve 0-3), or --colocate to run the "
            "engines in the training processes."
        )
    serving = read_devices(serve, cores=cpu, option="serve")
    shared = set() if cpu else set(serving.numbers) & set(training.numbers)
    if shared:
        raise ConfigurationError(
            f"Device {min(shared)} is in both --serve and --train: give each device to only one of them, "
            "or use --colocate to use it for both."
        )
    return training, serving.split(tensor_parallel)


def _train_arguments(words: Sequence[str]) -> tuple[Any, str, Sequence[str]]:
    """Parse the trainer's arguments as ``rstar2 train`` does, to report mistakes before a server is started.

    Returns:
        The options of the run, its folder, and the values of ``--set``.
    """
    import typer.main

    from rstar2_env.cli import build
    from rstar2_env.cli._command import flag
    from rstar2_env.cli.train import checked_settings, flag_layers

    api, check_begun = import_trainers("api"), import_trainers("record.resume").check_begun
    command: Any = typer.main.get_command(build(["train"]))
    context = command.commands["train"].make_context("rstar2 train", list(words))
    parameters = context.params
    try:
        name, layers = api.layers_of(parameters["name"], parameters["config"])
        model = parameters["model"]
        layers += checked_settings(context)
        recipe, file_options = api.find_recipe(name)
        config = recipe.configure(file_options, *layers, *flag_layers(context))
    except ConfigurationError as error:
        worded = type(error)(error.worded(lambda option, value: flag(context, option, value)))
        for note in error.__notes__[len(worded.__notes__) :]:  # such as the name of the option's file
            worded.add_note(note)
        raise worded from error
    if not isinstance(config.model.path, str):
        raise ConfigurationError("The arguments after -- name no model: add --model there.")
    out = str(parameters["output_dir"] or api.default_folder(name))
    check_begun(out, resume=parameters["resume"], overwrite=parameters["overwrite"], inputs=[model])
    return config, out, parameters["set_"] or ()


def _engine_settings(
    urls: Sequence[str], engine: Mapping[str, Any], given: Sequence[str], *, cpu: bool
) -> dict[str, object]:
    """Return the options of the trainer that select its engine.

    Args:
        urls: Addresses of the servers; empty if each training process runs vLLM itself.
        engine: Engine options in the arguments of the trainer.
        given: Values of ``--set`` in the arguments of the trainer.
        cpu: Whether the devices are CPU cores.
    """
    settings: dict[str, object] = {"engine": "vllm"}
    if urls:
        settings = {"engine": "vllm-server", "engine.base_urls": list(urls)}
    # Sleeping is not supported on a CPU, so a value from a file is overridden.
    elif engine.get("sleep") if cpu else "sleep" not in engine:
        settings["engine.sleep"] = not cpu
    for name in settings.keys() & {each.partition("=")[0].strip() for each in given}:
        raise ConfigurationError(f"`rstar2 launch` sets the option {name} itself: omit --set {name}.")
    return settings


def _syncs_by_folder(engine: Mapping[str, Any]) -> bool:
    """Whether weights are synced through a folder that the trainer's arguments do not name."""
    return engine.get("transport", "folder") == "folder" and engine.get("weights_dir") is None


def _weights_dir(*, make: bool) -> str:
    """Return the path of a temporary folder for weights, in memory if possible; with ``make``, create the folder."""
    import tempfile

    parent = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="rstar2-weights-", dir=parent) if make else f"{parent}/rstar2-weights"
