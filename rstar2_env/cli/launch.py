"""``rstar2 launch``: start the servers and trainers of one machine with one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._trainers import import_trainers

if TYPE_CHECKING:
    from collections.abc import Sequence


def launch_command(
    words: Annotated[
        list[str],
        typer.Argument(metavar="-- TRAINER [OPTIONS]", help="Arguments of `rstar2 train`, after two dashes."),
    ],
    serve: Annotated[
        str | None, typer.Option(metavar="DEVICES", help="Devices for servers: 0-3, or 0,2 [default: none].")
    ] = None,
    train: Annotated[str, typer.Option(metavar="DEVICES", help="Devices for training.")] = "0",
    colocate: Annotated[
        bool,
        typer.Option("--colocate", help="Run vLLM inside each training process; it sleeps during optimizer steps."),
    ] = False,
    tensor_parallel: Annotated[int, typer.Option(min=1, help="Devices per server.")] = 1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Training processes [default: one per device; one on a CPU].")
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use CPU cores as devices.")] = False,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of the first server; the others use the next ports.")
    ] = 8001,
    host: Annotated[str, typer.Option(help="Address that the servers listen on.")] = "127.0.0.1",
    server_options: Annotated[
        str, typer.Option(metavar="ARGS", help="Extra arguments for each vLLM server ('--max-model-len 16384').")
    ] = "",
    server_program: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Server command to run instead of vLLM; {model}, {host}, {port} and {size} are replaced.",
        ),
    ] = None,
    wait_s: Annotated[float, typer.Option(min=1, help="Startup timeout of the servers, in seconds.")] = 900.0,
    restarts: Annotated[int, typer.Option(min=0, help="Maximum number of restarts of a server that exits.")] = 3,
    logs: Annotated[Path | None, typer.Option(help="Folder of the server logs [default: OUT-logs].")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands without starting them.")] = False,
) -> None:
    """Start servers and trainers, wait until they are ready, and stop them together.

    The output and the exit code are those of the trainer. Ctrl-C and SIGTERM are passed on to the trainer, which
    finishes its step and writes a checkpoint while the servers still run; a second signal stops it at once. The options
    of the trainer are checked before anything starts.
    """
    import os
    import shutil

    launch = import_trainers("launch.supervisor")
    launched = import_trainers("launch.servers")
    parsed = _parse_train_arguments(words)
    options = _Options(serve, train, colocate, tensor_parallel, processes, cpu, port, host, server_options)
    servers, trainer, weights_dir = _commands(options, server_program, words, parsed, dry_run)
    if dry_run:
        for command in (*servers, trainer):
            typer.echo(command.shown(os.environ))
        return
    folder = logs or Path(f"{parsed.out}-logs")
    try:
        started = launched.logged(servers, folder)
        served = launched.Servers(started, wait_s, restarts, say=lambda line: typer.echo(line, err=True))
        code = launch.Supervisor(served, launched.StartedCommand(trainer)).run()
    finally:
        if weights_dir is not None:
            shutil.rmtree(weights_dir, ignore_errors=True)
    raise typer.Exit(code)


class _Options:
    """The options of ``rstar2 launch``, checked."""

    def __init__(
        self,
        serve: str | None,
        train: str,
        colocate: bool,
        tensor_parallel: int,
        processes: int | None,
        cpu: bool,
        port: int,
        host: str,
        server_options: str,
    ) -> None:
        import shlex

        from rstar2_env.core.errors import ConfigurationError

        read_devices = import_trainers("launch.devices").read_devices
        self.train = read_devices(train, cores=cpu)
        self.serve = None if serve is None else read_devices(serve, cores=cpu)
        self.colocate, self.host, self.port = colocate, host, port
        self.server_arguments = shlex.split(server_options)
        self.processes = processes or (1 if cpu else len(self.train))
        if not cpu and self.processes > len(self.train):
            raise ConfigurationError(f"{self.processes} processes cannot share {len(self.train)} devices (--train).")
        if colocate and self.serve is not None:
            raise ConfigurationError("--colocate does not start servers: omit --serve.")
        if colocate and tensor_parallel > 1:
            raise ConfigurationError(
                "--colocate supports one device per engine: use --serve with --tensor-parallel instead."
            )
        if not colocate and self.serve is None:
            raise ConfigurationError("No devices for servers: add --serve DEVICES (--serve 0-3) or --colocate.")
        shared = set() if self.serve is None or cpu else set(self.serve.numbers) & set(self.train.numbers)
        if shared:
            raise ConfigurationError(
                f"Device {min(shared)} is in both --serve and --train: choose different devices, or use --colocate."
            )
        self.engines = [] if self.serve is None else self.serve.split(tensor_parallel)


class _TrainArguments:
    """The parsed arguments of ``rstar2 train``."""

    def __init__(self, model: str, out: str, engine: dict[str, Any], names: set[str]) -> None:
        self.model, self.out, self.engine, self.names = model, out, engine, names


def _parse_train_arguments(words: Sequence[str]) -> _TrainArguments:
    """Parse the arguments as ``rstar2 train`` will, to report mistakes before a server is started."""
    import typer.main

    from rstar2_env.cli import build
    from rstar2_env.cli._options import layers_of
    from rstar2_env.core.errors import ConfigurationError

    api = import_trainers("api")
    command: Any = typer.main.get_command(build(["train"]))
    parameters = command.commands["train"].make_context("rstar2 train", list(words)).params
    name, layers = api.layers_of(parameters["name"], parameters["config"])
    model = parameters["model"]
    layers += layers_of(parameters["set_"])
    recipe, file_options = api.find_recipe(name)
    config = recipe.configure(file_options, *layers, *([{"model": model}] if model else []))
    if not isinstance(config.model.path, str):
        raise ConfigurationError("No model: add --model to the arguments of the trainer.")
    out = str(parameters["output_dir"] or api.default_folder(name))
    names = {each.partition("=")[0].strip() for each in parameters["set_"] or ()}
    return _TrainArguments(config.model.path, out, dict(config.rollout.engine_options), names)


def _commands(
    options: _Options, program: str | None, words: Sequence[str], parsed: _TrainArguments, dry_run: bool
) -> tuple[list[Any], Any, str | None]:
    """Return the server commands, the trainer command, and a temporary folder for weights to remove at the end."""
    import tempfile

    from rstar2_env.core.errors import ConfigurationError

    commands = import_trainers("launch.commands")
    weights_dir: str | None = None
    servers = [
        commands.server(
            number,
            parsed.model,
            devices,
            options.port + number,
            host=options.host,
            program=program,
            more=options.server_arguments,
        )
        for number, devices in enumerate(options.engines)
    ]
    settings: dict[str, object] = {"engine": "vllm"}
    # Sleeping is not supported on a CPU, so a value from a file is overridden.
    if options.colocate and (parsed.engine.get("sleep") if options.train.cores else "sleep" not in parsed.engine):
        settings["engine.sleep"] = not options.train.cores
    elif servers:
        settings = {"engine": "vllm-server", "engine.base_urls": [server.url for server in servers]}
    for name in settings.keys() & parsed.names:
        raise ConfigurationError(f"rstar2 launch sets {name} itself: omit --set {name}.")
    by_folder = parsed.engine.get("transport", "folder") == "folder" and parsed.engine.get("weights_dir") is None
    if servers and by_folder:
        parent = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
        weights_dir = f"{parent}/rstar2-weights" if dry_run else tempfile.mkdtemp(prefix="rstar2-weights-", dir=parent)
        settings["engine.weights_dir"] = weights_dir
    return servers, commands.trainer(words, options.train, options.processes, settings), weights_dir
