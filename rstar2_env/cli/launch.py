"""``rstar2 launch``: servers and trainers of one machine, from one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence


def launch_command(
    words: Annotated[
        list[str],
        typer.Argument(metavar="-- TRAINER [OPTIONS]", help="What `rstar2 train` is given, after two dashes."),
    ],
    serve: Annotated[
        str | None, typer.Option(metavar="DEVICES", help="Devices that serve: 0-3, or 0,2 [default: none].")
    ] = None,
    train: Annotated[str, typer.Option(metavar="DEVICES", help="Devices that train.")] = "0",
    colocate: Annotated[
        bool, typer.Option("--colocate", help="Each process that trains serves itself, and vLLM sleeps meanwhile.")
    ] = False,
    tensor_parallel: Annotated[int, typer.Option(min=1, help="Devices of one server.")] = 1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes that train [default: one a device; on a CPU one].")
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Devices are cores of the CPU.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the first server; the others follow.")] = 8001,
    host: Annotated[str, typer.Option(help="Address that the servers listen on.")] = "127.0.0.1",
    server_options: Annotated[
        str, typer.Option(metavar="WORDS", help="Further words for each server ('--max-model-len 16384').")
    ] = "",
    server_program: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Another server than vLLM of this Python; {model}, {host}, {port}, {size} are replaced.",
        ),
    ] = None,
    wait_s: Annotated[float, typer.Option(min=1, help="Seconds until every server must answer.")] = 900.0,
    restarts: Annotated[int, typer.Option(min=0, help="How often a server that ended is started again.")] = 3,
    logs: Annotated[Path | None, typer.Option(help="Folder of the servers' logs [default: OUT-logs].")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands, and start nothing.")] = False,
) -> None:
    """Start servers and trainers, wait until they are ready, and end all of them together.

    The trainer's output is this command's, and so is its exit code. Ctrl-C and SIGTERM go to the trainer, which ends
    its step and writes a checkpoint while the servers still answer; a second one ends it at once. Wrong options of the
    trainer are found before anything is started.
    """
    import importlib
    import os
    import shutil

    supervisor = importlib.import_module("rstar2_env.trainers.launch.supervisor")
    given = _parsed(words)
    options = _Options(serve, train, colocate, tensor_parallel, processes, cpu, port, host, server_options)
    servers, trainer, made = _commands(options, server_program, words, given, dry_run)
    if dry_run:
        for command in (*servers, trainer):
            typer.echo(command.shown(os.environ))
        return
    folder = logs or Path(f"{given.out}-logs")
    try:
        code = supervisor.Supervisor(
            *supervisor.supervised(servers, trainer, folder),
            wait_s=wait_s,
            restarts=restarts,
            say=lambda line: typer.echo(line, err=True),
        ).run()
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
    raise typer.Exit(code)


class _Options:
    """What was asked for, checked."""

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
        import importlib
        import shlex

        from rstar2_env.core.errors import ConfigurationError

        read = importlib.import_module("rstar2_env.trainers.launch.devices").read_devices
        self.train = read(train, cores=cpu)
        self.serve = None if serve is None else read(serve, cores=cpu)
        self.colocate, self.host, self.port = colocate, host, port
        self.more = shlex.split(server_options)
        self.processes = processes or (1 if cpu else len(self.train))
        if not cpu and self.processes > len(self.train):
            raise ConfigurationError(f"{self.processes} processes cannot share {len(self.train)} devices (--train).")
        if colocate and self.serve is not None:
            raise ConfigurationError("--colocate has no servers of its own: leave --serve out.")
        if colocate and tensor_parallel > 1:
            raise ConfigurationError(
                "An engine in the trainer's process has one device: use --serve with --tensor-parallel, not --colocate."
            )
        if not colocate and self.serve is None:
            raise ConfigurationError("Which devices serve? Give --serve 0-3, say, or --colocate.")
        shared = set() if self.serve is None or cpu else set(self.serve.numbers) & set(self.train.numbers)
        if shared:
            raise ConfigurationError(f"Device {min(shared)} cannot both serve and train: choose others, or --colocate.")
        self.engines = [] if self.serve is None else self.serve.split(tensor_parallel)


class _Given:
    """What the words for ``rstar2 train`` say, as that command reads them."""

    def __init__(self, model: str, out: str, engine: dict[str, Any], names: set[str]) -> None:
        self.model, self.out, self.engine, self.names = model, out, engine, names


def _parsed(words: Sequence[str]) -> _Given:
    """Read the trainer's words as ``rstar2 train`` will, so that mistakes show before a server is started."""
    import importlib

    import typer.main

    from rstar2_env.cli import build
    from rstar2_env.cli._options import layers_of
    from rstar2_env.core.errors import ConfigurationError

    api = importlib.import_module("rstar2_env.trainers.api")
    command: Any = typer.main.get_command(build(["train"]))
    parameters = command.commands["train"].make_context("rstar2 train", list(words)).params
    name, layers = api.layers_of(parameters["name"], parameters["config"])
    model = parameters["model"]
    layers += layers_of(parameters["set_"])
    recipe, of_file = api.find_recipe(name)
    config = recipe.configure(of_file, *layers, *([{"model": model}] if model else []))
    if not isinstance(config.model.path, str):
        raise ConfigurationError("Which model? The trainer's --model names it.", option="model")
    out = str(parameters["output_dir"] or api.default_folder(name))
    names = {each.partition("=")[0].strip() for each in parameters["set_"] or ()}
    return _Given(config.model.path, out, dict(config.rollout.engine_options), names)


def _commands(
    options: _Options, program: str | None, words: Sequence[str], given: _Given, dry_run: bool
) -> tuple[list[Any], Any, str | None]:
    """The servers, the trainer, and a folder for weights that is to be removed at the end."""
    import importlib
    import tempfile

    from rstar2_env.core.errors import ConfigurationError

    commands = importlib.import_module("rstar2_env.trainers.launch.commands")
    made: str | None = None
    servers = [
        commands.server(
            number,
            given.model,
            devices,
            options.port + number,
            host=options.host,
            program=program,
            more=options.more,
        )
        for number, devices in enumerate(options.engines)
    ]
    settings: dict[str, object] = {"engine": "vllm"}
    # There is no sleep on a CPU, whatever a file says.
    if options.colocate and (given.engine.get("sleep") if options.train.cores else "sleep" not in given.engine):
        settings["engine.sleep"] = not options.train.cores
    elif servers:
        settings = {"engine": "vllm-server", "engine.base_urls": [one.url for one in servers]}
    for name in settings.keys() & given.names:
        raise ConfigurationError(f"--set {name} is what the launch sets by itself: leave it out.")
    by_folder = given.engine.get("transport", "folder") == "folder" and given.engine.get("weights_dir") is None
    if servers and by_folder:
        within = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
        made = f"{within}/rstar2-weights" if dry_run else tempfile.mkdtemp(prefix="rstar2-weights-", dir=within)
        settings["engine.weights_dir"] = made
    return servers, commands.trainer(words, options.train, options.processes, settings), made
