"""The console command ``rstar2``. The module of a subcommand is imported only when that subcommand is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "Make a tiny model, cold-start it, train it with GRPO-RoC, compare before and after.",
        "rstar2 demo --out runs/demo",
    ),
    "train": (
        "Train a model with a trainer, by name.",
        "rstar2 train grpo_roc --model start --problems train.jsonl --out run --set env.max_turns=4",
    ),
    "run": ("Run the stages of a pipeline, or resume it.", "rstar2 run pipelines/tiny_cpu.yaml -o runs/tiny"),
    "launch": (
        "Start servers and trainers on this machine, and stop them together.",
        "rstar2 launch --serve 0-3 --train 4-7 -- grpo_roc --model start --problems train.jsonl --out run",
    ),
    "plan": (
        "Estimate what a run needs: memory, placement, seconds per step.",
        "rstar2 plan --model qwen3-14b --gpus 64 --gpu MI300X --config configs/paper_stage2.toml",
    ),
    "sft": ("Cold-start a model on tool-use traces.", "rstar2 sft --model BASE --traces traces.jsonl --out start"),
    "export": (
        "Export the weights of a run as a transformers model folder, or push them to the hub.",
        "rstar2 export runs/grpo_roc --which best --merge --out model",
    ),
    "traces": (
        "Make tool-use traces that earn their reward, by playing or from worked solutions.",
        "rstar2 traces --model TEACHER --problems train.jsonl --out traces.jsonl",
    ),
    "eval": (
        "Evaluate a model or an agent on environments, and print the results.",
        "rstar2 eval rstar2/MathTool-v0 --model runs/demo/best --problems arithmetic --episodes 100 --n 16 --k 1,16",
    ),
    "play": (
        "Play an environment yourself, in the terminal.",
        "rstar2 play rstar2/MathTool-v0 --problems arithmetic:level=2",
    ),
    "compare": (
        "Compare evaluations, paired by problem: differences, intervals, p-values.",
        "rstar2 compare runs/base runs/trained --png compare.png",
    ),
    "reverify": (
        "Regrade the stored answers of a run, and list the changes.",
        "rstar2 reverify runs/eval --verifier numeric:tolerance=0.01",
    ),
    "replay": (
        "Replay a stored episode, and report where the environment responds differently.",
        "rstar2 replay runs/eval 12",
    ),
    "view": ("Show runs on a local web page, in the terminal, or as one HTML file.", "rstar2 view runs/grpo_roc"),
    "show": (
        "Print one episode, or a summary of a file of episodes.",
        "rstar2 show runs/eval/episodes/eval-000000.jsonl 12",
    ),
    "check-tokens": (
        "Check that the training tokens equal the tokens that were played.",
        "rstar2 check-tokens runs/grpo_roc",
    ),
    "verify": ("Grade answers against gold answers.", "rstar2 verify 1/2 0.5"),
    "trainers": ("List the trainers, or show all parts and options of one.", "rstar2 trainers grpo_roc"),
    "parts": ("List the parts that trainers are built from, by slot.", "rstar2 parts selector"),
    "agents": ("List the agents.", "rstar2 agents"),
    "envs": ("List the environments, or show one with a sample episode.", "rstar2 envs rstar2/Game24-v0"),
    "wrappers": ("List the wrappers that --wrap takes.", "rstar2 wrappers"),
    "validate": (
        "Check an environment and its problems before training.",
        "rstar2 validate rstar2/MathTool-v0 --problems train.jsonl",
    ),
    "doctor": (
        "Check that this machine is ready for training, and suggest fixes.",
        "rstar2 doctor --folder runs --report report.md",
    ),
    "serve-env": ("Serve an environment to OpenEnv clients.", "rstar2 serve-env rstar2/MathTool-v0 --port 8000"),
    "export-env": (
        "Export an environment as a package for another framework.",
        "rstar2 export-env rstar2/MathTool-v0 --to verifiers --out math-tool",
    ),
    "problems": ("Show, convert and decontaminate problem sources.", ""),
    "sandbox": ("Run programs in the sandbox, and check its isolation.", ""),
}
"""For each subcommand: its help line and an example. Its module has the same name, and either an app ``app``, whose
commands have their own examples, or a function such as ``train_command``."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run ``rstar2``. ``rstar2_env.cli._command`` reports errors."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    build(arguments)(args=arguments, prog_name="rstar2")


def build(arguments: Sequence[str]) -> Any:
    """Build the Typer app: the called subcommand is loaded, all others are only help lines."""
    import typer

    from rstar2_env.cli._command import CliCommand, example
    from rstar2_env.core.version import __version__

    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        help="Math problems with a Python tool as Gymnasium environments, and trainers swapped by name.",
        epilog="`rstar2 COMMAND --help` describes each command. First steps: `rstar2 envs`, then "
        "`rstar2 eval rstar2/MathTool-v0 --agent oracle -n 100`.",
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"rstar2-env {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        pass

    # During shell completion the subcommand is not known yet.
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    called = next((word for word in arguments if not word.startswith("-")), None)
    for name, (line, example_line) in COMMANDS.items():
        if name == called or completing:
            own = name.replace("-", "_")
            module = importlib.import_module(f"rstar2_env.cli.{own}")
            if example_line:
                app.command(name, cls=CliCommand, epilog=example(example_line))(getattr(module, f"{own}_command"))
            else:
                app.add_typer(module.app, name=name, help=line)
        else:
            app.command(name, help=line)(_not_called)
    return app


def _not_called() -> None:
    """Placeholder for a subcommand that was not called; it provides the help line."""
