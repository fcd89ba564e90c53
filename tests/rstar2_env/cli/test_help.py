"""Claims about the help of every command: an example that fits it, one name for one thing, within 80 columns."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cli_runner import run
from demo_files import DEMO_MAKES
from typer.main import get_command

from rstar2_env.cli import COMMANDS as SUBCOMMANDS
from rstar2_env.cli import build
from rstar2_env.cli._calls import FORM_EXAMPLES, FORMS

APPS = ("list", "model", "problems", "sandbox")
MOST = 24
"""Subcommands that a new user can still survey."""


def commands() -> dict[str, Any]:
    """Every command by the words that call it."""
    found: dict[str, Any] = {}
    for name in SUBCOMMANDS:
        command = get_command(build([name])).commands[name]
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {each}": inner[each] for each in inner}
    for name, forms in FORMS.items():
        for flags in forms:
            found[" ".join((name, *flags))] = get_command(build([name, *flags])).commands[name]
    return found


COMMANDS = commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_fits_80_columns_and_ends_with_an_example_of_this_command(name):
    shown = run(*name.split(), "--help").output
    assert max(map(len, shown.splitlines())) <= 80
    example = " ".join(shown[shown.index("Example: ") :].split())
    form = [word for word in name.split() if word.startswith("--")]
    selecting = {flag for flags in FORMS.get(name.split()[0], ()) for flag in flags}
    assert example.startswith(f"Example: rstar2 {name.partition(' --')[0]}")
    assert all(f" {flag} " in example for flag in form)
    flags = {opt for parameter in COMMANDS[name].params for opt in (*parameter.opts, *parameter.secondary_opts)}
    own = example.partition(" -- ")[0]  # what follows two dashes is another command's
    assert set(re.findall(r"(?<= )--?[a-z-]+", own)) <= flags | selecting


def test_the_examples_name_files_that_the_demo_or_the_package_makes():
    inputs = set()
    for shown in (*(line for _, line in SUBCOMMANDS.values()), *FORM_EXAMPLES.values(), *of_apps()):
        words = re.sub(r"(--out|-o|--report|--token-file) \S+", "", shown).split()
        inputs |= {word for word in words if "runs/" in word or re.search(r"\.(jsonl|csv|toml|yaml|json)\b", word)}
    assert inputs
    assert inputs <= {f"runs/demo/{name}" for name in DEMO_MAKES}


def of_apps():
    return (COMMANDS[name].epilog for name in COMMANDS if name.split()[0] in APPS)


def test_a_switch_has_no_type():
    shown = run("eval", "--help").output
    assert "<bool>" not in shown
    assert "<int" in shown


def test_a_wrong_argument_is_reported_like_any_error():
    for words, said in (
        (("train", "--stepz", "1"), "Error: No such option: --stepz"),
        (("evla",), "Error: No such command 'evla'. Did you mean 'eval'? Known: demo, train,"),
        (("list", "nope"), "Error: No such command 'nope'. Known: trainers, parts, agents, envs, wrappers."),
        (("list", "--nope"), "Error: No such option: --nope\n"),
        (("eval", "-n", "x"), "Error: Invalid value for '-n'"),
        (("export", "--out", "x"), "Error: Missing argument 'RUN'"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert done.stderr.startswith(said)
        assert done.stderr.splitlines()[-1].startswith("docs: rstar2")
        assert "╭" not in done.stderr


def test_help_on_an_unknown_topic_suggests_a_near_command_and_nothing_that_is_not_near():
    refused = run("help", "evla")
    assert refused.exit_code == 2
    assert "Did you mean 'eval'?" in refused.stderr
    assert run("help", "").output == run("help").output
    refused = run("help", "nosuch")
    assert refused.exit_code == 2
    assert "Did you mean" not in refused.stderr
    assert "`rstar2 help` lists all" in refused.stderr
    assert "eval" not in refused.stderr
    assert "missing-extra," in run("help").output.split()  # a section of the page about errors
    assert "'eval' has no subcommand 'nope'" in run("help", "eval", "nope").stderr
    assert "'list envs' has no subcommand 'nope'" in run("help", "list", "envs", "nope").stderr


def test_one_thing_has_one_name_in_every_command():
    long: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            for opt in parameter.opts:
                if re.fullmatch("-[a-z]", opt):
                    long.setdefault(opt, set()).add(next(other for other in parameter.opts if other[:2] == "--"))
    assert long == {"-o": {"--out"}, "-n": {"--episodes", "--count"}, "-c": {"--code"}}
    every = {opt for command in COMMANDS.values() for parameter in command.params for opt in parameter.opts}
    assert every.isdisjoint({"--output-dir", "--option", "--env-option", "--agent-option"})
    assert every.isdisjoint({"--png", "--html", "--export", "--wait-s", "--idle", "--wall", "--minutes", "--n"})
    assert {"--set", "--out", "--episodes", "--report", "--timeout"} <= every


def test_the_help_has_few_commands_with_one_line_each():
    assert len(SUBCOMMANDS) <= MOST
    shown = run("--help").output
    for name, (line, _) in SUBCOMMANDS.items():
        assert re.search(rf"^│ {name} +{re.escape(line)} +│$", shown, re.MULTILINE), f"{name}: more than one line"


@pytest.mark.parametrize("name", APPS)
def test_an_app_lists_its_commands(name):
    shown = run(name, "--help").output
    assert all(each.split()[1] in shown for each in COMMANDS if each.startswith(f"{name} "))


@pytest.mark.parametrize("name", ["agents", "trainers", "wrappers"])
def test_lists_are_complete_within_80_columns(name):
    lines = run("list", name).output.splitlines()
    assert max(map(len, lines)) <= 80
    assert len({line.split()[0] for line in lines if not line.startswith(" ")}) >= 2
