"""``rstar2 list``: list all parts of one kind, including the parts of installed plugins, or show one part."""

from __future__ import annotations

import typer

from rstar2_env.cli._command import CliCommand, example
from rstar2_env.cli.agents import agents_command
from rstar2_env.cli.envs import envs_command
from rstar2_env.cli.parts import parts_command
from rstar2_env.cli.trainers import trainers_command
from rstar2_env.cli.wrappers import wrappers_command

app = typer.Typer(help="List the trainers, parts, agents, environments or wrappers, or show one.", no_args_is_help=True)
app.command("trainers", cls=CliCommand, epilog=example("rstar2 list trainers grpo_roc"))(trainers_command)
app.command("parts", cls=CliCommand, epilog=example("rstar2 list parts selector"))(parts_command)
app.command("agents", cls=CliCommand, epilog=example("rstar2 list agents self_consistency"))(agents_command)
app.command("envs", cls=CliCommand, epilog=example("rstar2 list envs rstar2/Game24-v0"))(envs_command)
app.command("wrappers", cls=CliCommand, epilog=example("rstar2 list wrappers fault_injection"))(wrappers_command)
