"""The console command ``rstar2``. The module of a subcommand is imported only when that subcommand is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

_COMMANDS: dict[str, tuple[str, str, str, str]] = {
    "demo": (
        "demo",
        "demo_command",
        "Make a tiny model, cold-start it, train it with GRPO-RoC, compare before and after.",
        "rstar2 demo --out runs/demo",
    ),
    "train": (
        "train",
        "train_command",
        "Train a model with a trainer, by name.",
        "rstar2 train grpo_roc --model start --problems train.jsonl --out run --set env.max_turns=4",
    ),
    "run": (
        "run",
        "run_command",
        "Run the stages of a pipeline, or resume it.",
        "rstar2 run pipelines/tiny_cpu.yaml -o runs/tiny",
    ),
    "launch": (
        "launch",
        "launch_command",
        "Start servers and trainers on this machine, and stop them together.",
        "rstar2 launch --serve 0-3 --train 4-7 -- grpo_roc --model start --problems train.jsonl --out run",
    ),
    "plan": (
        "plan",
        "plan_command",
        "Estimate what a run needs: memory, placement, seconds per step.",
        "rstar2 plan --model qwen3-14b --gpus 64 --gpu MI300X --config configs/paper_stage2.toml",
    ),
    "sft": (
        "sft",
        "sft_command",
        "Cold-start a model on tool-use traces.",
        "rstar2 sft --model BASE --traces traces.jsonl --out start",
    ),
    "export": (
        "export",
        "export_command",
        "Export the weights of a run as a transformers model folder, or push them to the hub.",
        "rstar2 export runs/grpo_roc --which best --merge --out model",
    ),
    "traces": (
        "traces",
        "traces_command",
        "Turn problems into tool-use traces, each replayed and checked.",
        "rstar2 traces --problems arithmetic -n 1000 --error-rate 0.3 --out traces.jsonl",
    ),
    "eval": (
        "eval",
        "eval_command",
        "Evaluate a model or an agent on environments, and print the results.",
        "rstar2 eval rstar2/MathTool-v0 --model runs/demo/best --problems arithmetic --episodes 100 --n 16 --k 1,16",
    ),
    "play": (
        "play",
        "play_command",
        "Play an environment yourself, in the terminal.",
        "rstar2 play rstar2/MathTool-v0 --problems arithmetic:level=2",
    ),
    "compare": (
        "compare",
        "compare_command",
        "Compare evaluations, paired by problem: differences, intervals, p-values.",
        "rstar2 compare runs/base runs/trained --png compare.png",
    ),
    "reverify": (
        "reverify",
        "reverify_command",
        "Regrade the stored answers of a run, and list the changes.",
        "rstar2 reverify runs/eval --verifier numeric:tolerance=0.01",
    ),
    "replay": (
        "replay",
        "replay_command",
        "Replay a stored episode, and report where the environment responds differently.",
        "rstar2 replay runs/eval 12",
    ),
    "view": (
        "view",
        "view_command",
        "Show runs on a local web page, in the terminal, or as one HTML file.",
        "rstar2 view runs/grpo_roc",
    ),
    "show": (
        "show",
        "show_command",
        "Print one episode, or a summary of a file of episodes.",
        "rstar2 show runs/eval/episodes/eval-000000.jsonl 12",
    ),
    "check-tokens": (
        "check_tokens",
        "check_tokens_command",
        "Check that the training tokens equal the tokens that were played.",
        "rstar2 check-tokens runs/grpo_roc",
    ),
    "verify": ("verify", "verify_command", "Grade answers against gold answers.", "rstar2 verify 1/2 0.5"),
    "trainers": (
        "trainers",
        "trainers_command",
        "List the trainers, or show all parts and options of one.",
        "rstar2 trainers grpo_roc",
    ),
    "parts": (
        "parts",
        "parts_command",
        "List the parts that trainers are built from, by slot.",
        "rstar2 parts selector",
    ),
    "agents": ("agents", "agents_command", "List the agents.", "rstar2 agents"),
    "envs": (
        "envs",
        "envs_command",
        "List the environments, or show one with a sample episode.",
        "rstar2 envs rstar2/Game24-v0",
    ),
    "wrappers": ("wrappers", "wrappers_command", "List the wrappers that --wrap takes.", "rstar2 wrappers"),
    "validate": (
        "validate",
        "validate_command",
        "Check an environment and its problems before training.",
        "rstar2 validate rstar2/MathTool-v0 --problems train.jsonl",
    ),
    "doctor": (
        "doctor",
        "doctor_command",
        "Check that this machine is ready for training, and suggest fixes.",
        "rstar2 doctor --folder runs --report report.md",
    ),
    "serve-env": (
        "serve_env",
        "serve_env_command",
        "Serve an environment to OpenEnv clients.",
        "rstar2 serve-env rstar2/MathTool-v0 --port 8000",
    ),
    "export-env": (
        "export_env",
        "export_env_command",
        "Export an environment as a package for another framework.",
        "rstar2 export-env rstar2/MathTool-v0 --to verifiers --out math-tool",
    ),
    "problems": ("problems", "app", "Show, convert and decontaminate problem sources.", ""),
    "sandbox": ("sandbox", "app", "Run programs in the sandbox, and check its isolation.", ""),
}
"""For each subcommand: its module, the function or app in that module, its help line, and an example (an app has
an example for each of its commands instead)."""


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
    for name, (module, attribute, line, example_line) in _COMMANDS.items():
        if name == called or completing:
            part = getattr(importlib.import_module(f"rstar2_env.cli.{module}"), attribute)
            if isinstance(part, typer.Typer):
                app.add_typer(part, name=name, help=line)
            else:
                app.command(name, cls=CliCommand, epilog=example(example_line))(part)
        else:
            app.command(name, help=line)(_not_called)
    return app


def _not_called() -> None:
    """Placeholder for a subcommand that was not called; it provides the help line."""
