"""The changes that a finding names are accepted: options by the trainer, commands by the command line."""

from __future__ import annotations

import re
import shlex

import pytest
from cli_runner import run
from typer.main import get_command

from rstar2_env.cli import COMMANDS, build
from rstar2_env.diagnosis.examination import every_check

VALUES = {"MORE": "9000", "FEWER": "4", "LESS": "16", "HIGHER": "2.0", "LOWER": "1e-7", "SEED": "1"}
"""A value for each word that stands for one."""
OTHERS = ("max_prompt_length=HIGHER (TRL)", "data.max_prompt_length=HIGHER (verl)")
"""Options of other trainers."""
CHANGES = sorted({change for check in every_check() for change in check.change} - set(OTHERS))
OPTIONS = [change for change in CHANGES if change.startswith("--set ")]
PLAN = ("plan", "--model", "qwen3-14b", "--gpus", "64", "--gpu", "MI300X")


def words(change: str) -> list[str]:
    return [re.sub(r"=([A-Z]+)$", lambda found: f"={VALUES[found[1]]}", word) for word in shlex.split(change)]


@pytest.mark.parametrize(
    "change", [change for change in OPTIONS if "judge=" not in change and "begin_from" not in change]
)
def test_an_option_to_change_is_an_option_with_such_a_value(change: str) -> None:
    done = run(*PLAN, *words(change))
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("change", [change for change in CHANGES if change.startswith("rstar2 ")])
def test_a_command_to_run_is_a_command_with_these_options(change: str) -> None:
    name, *rest = shlex.split(change)[1:]
    assert name in COMMANDS
    command = get_command(build([name, *rest])).commands[name]
    command = getattr(command, "commands", {}).get(rest[0] if rest else "", command)
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {word for word in rest if word.startswith("--")} - {"--tokens"} <= flags


def test_every_change_is_an_option_a_command_or_of_another_trainer() -> None:
    assert [change for change in CHANGES if not change.startswith(("--", "rstar2 "))] == []
