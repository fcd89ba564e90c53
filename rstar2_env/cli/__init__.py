"""The console command ``rstar2``. The module of a subcommand is imported only when that subcommand is called."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from rstar2_env.cli._logs import clean_logs
from rstar2_env.core.command.early_interrupt import raise_on_interrupt
from rstar2_env.core.secret import hide_arguments

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "Make a tiny model, train it on this CPU, and compare the results.",
        "rstar2 demo --out runs/demo",
    ),
    "train": (
        "Train a model by reinforcement learning, with a named trainer.",
        "rstar2 train grpo_roc --model runs/demo/cold-start --problems arithmetic --set env.max_turns=4",
    ),
    "run": ("Run the stages of a pipeline, or resume it.", "rstar2 run tiny_cpu -o runs/tiny"),
    "launch": (
        "Start inference servers and a training run on this machine.",
        "rstar2 launch --serve 0-3 --train 4-7 -- grpo_roc --model runs/demo/cold-start --problems arithmetic",
    ),
    "plan": (
        "Estimate the memory, placement and seconds per step of a run.",
        "rstar2 plan --model qwen3-14b --gpus 64 --gpu MI300X --set max_episode_tokens=12288",
    ),
    "sft": (
        "Train a model on examples of tool use (cold start).",
        "rstar2 sft --model MODEL --traces runs/demo/traces.jsonl --out start",
    ),
    "export": (
        "Export the weights or episodes of a run, or an environment.",
        "rstar2 export runs/demo/grpo_roc --which best --merge --out model",
    ),
    "traces": (
        "Make examples of tool use (traces) for a cold start.",
        "rstar2 traces --model runs/demo/cold-start --problems arithmetic -n 100 --out traces.jsonl",
    ),
    "eval": (
        "Evaluate a model or an agent on environments.",
        "rstar2 eval rstar2/MathTool-v0 --model runs/demo/grpo_roc/best -n 100 --samples 16 --k 1,16",
    ),
    "play": (
        "Play an environment yourself, in the terminal.",
        "rstar2 play rstar2/MathTool-v0 --problems arithmetic:level=2",
    ),
    "compare": (
        "Compare evaluations, problem by problem.",
        "rstar2 compare runs/demo/eval-cold-start runs/demo/eval-grpo_roc --report compare.png",
    ),
    "view": (
        "Show runs on a web page, in the terminal, or as one HTML file.",
        "rstar2 view runs/demo/grpo_roc",
    ),
    "diagnose": (
        "Diagnose the problems of a run, and suggest changes.",
        "rstar2 diagnose runs/demo/grpo_roc",
    ),
    "verify": ("Grade answers, regrade a run, or replay one of its episodes.", "rstar2 verify 1/2 0.5"),
    "list": ("List trainers, parts, agents, environments or wrappers.", ""),
    "validate": (
        "Check an environment, or the tokens of a run or a model.",
        "rstar2 validate rstar2/MathTool-v0 --problems arithmetic",
    ),
    "audit": (
        "Find answers that a grader (scoring function) grades wrongly.",
        "rstar2 audit trl.rewards:accuracy_reward",
    ),
    "doctor": (
        "Check that this machine is ready for training.",
        "rstar2 doctor --folder runs --report report.md",
    ),
    "help": (
        "Print the help of a command, or a section of the documents.",
        "rstar2 help troubleshooting#options",
    ),
    "serve": (
        "Serve an environment to OpenEnv clients or AI assistants.",
        "rstar2 serve --env rstar2/MathTool-v0 --port 8000",
    ),
    "new": ("Write an environment, an agent or a part, with its test.", "rstar2 new env divisors"),
    "model": ("Fetch, convert or describe a pretrained model.", ""),
    "problems": ("Show, convert and filter sets of problems.", ""),
    "sandbox": ("Run programs in the sandbox, and check its isolation.", ""),
}
"""Help line and example of each subcommand. The subcommand's module has the same name. It contains either ``app``, a
Typer app whose commands have their own examples, or a function such as ``train_command``. ``rstar2_env.cli._calls``
lists the flags for which a subcommand uses another module."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command ``rstar2``; ``rstar2_env.cli._command`` reports errors.

    Characters that the output's encoding cannot represent are written as escapes. After Ctrl-C the exit code is 130,
    even while modules are being imported.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = [*(sys.argv[1:] if argv is None else argv)]  # not list(...): `list` is a module of this package
    hide_arguments()
    clean_logs()
    try:
        raise_on_interrupt()
        build(arguments)(args=arguments, prog_name="rstar2")
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)


def build(arguments: Sequence[str]) -> Any:
    """Build the Typer app: load the module of the called subcommand; other subcommands are only listed in the help."""
    import typer

    from rstar2_env.cli._calls import FORM_EXAMPLES, read_call
    from rstar2_env.cli._command import CliCommand, CliGroup, example
    from rstar2_env.cli._printing import say
    from rstar2_env.core.version import __version__

    app = typer.Typer(
        cls=CliGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        help="Math problems with a Python tool as Gymnasium environments, and trainers that are selected by name.",
        epilog="`rstar2 COMMAND --help` describes each command. First steps: `rstar2 list envs`, then "
        "`rstar2 eval rstar2/MathTool-v0 --agent oracle -n 100`.",
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            say(f"rstar2-env {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version of rstar2 and exit."
        ),
    ) -> None:
        pass

    # During shell completion the subcommand is not known yet.
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    call = read_call(arguments)
    for name, (line, example_line) in COMMANDS.items():
        if name == call.name or completing:
            own = call.module if name == call.name else name
            module = importlib.import_module(f"rstar2_env.cli.{own}")
            if example_line:
                ending = example(FORM_EXAMPLES.get(own, example_line))
                app.command(name, cls=CliCommand, epilog=ending)(getattr(module, f"{own}_command"))
            else:
                app.add_typer(module.app, name=name, help=line)
        else:
            app.command(name, help=line)(_not_called)
    return app


def _not_called() -> None:
    """Placeholder for a subcommand that was not called and whose module is not loaded."""
