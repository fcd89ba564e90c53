"""Options of one kind have one name: time limits, budgets and written pages (CONTRIBUTING.md, "Names of options")."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from rstar2_env.cli import COMMANDS
from rstar2_env.cli._calls import FORMS

ROOT = Path(__file__).parents[1]
PRODUCT = ("rstar2_env", "trainers", "agents", "envs_registry")

TIME = re.compile(r"(.*_)?(timeout(_ms|_seconds)?|time_limit(_s)?|(deadline|patience)_s(econds)?)|(limit|time)_s")
BUDGET = re.compile(r".+_budget|budget_.+|(most|limit)_(tokens|turns|episodes|calls|seconds)|(token|turn|call)_limit")
PAGE = re.compile(r"(.*_)?(html|png|svg)(_file|_path)?|(report|page)_path")


def wrong_name(name: str, annotation: str) -> bool:
    """Whether the name of an option differs from the rule for its kind."""
    number, path = re.search(r"\b(int|float|Count|Seconds)\b", annotation), re.search(r"Path", annotation)
    if number and (TIME.fullmatch(name) or BUDGET.fullmatch(name)):
        return True
    return bool(path and PAGE.fullmatch(name))


def options_in(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and annotation of each parameter of a public function, and of each public field of a class."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not node.name.startswith("_") or node.name == "__init__":
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                yield from ((one.arg, one.annotation) for one in every if one.annotation is not None)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield field.target.id, field.annotation


def test_parameters_and_fields_of_one_kind_have_one_name() -> None:
    wrong = []
    for folder in PRODUCT:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if "rstar2_env/cli/" in str(file):  # its parameters are the flags below
                continue
            for name, annotation in options_in(ast.parse(file.read_text())):
                if wrong_name(name, ast.unparse(annotation)):
                    wrong.append(f"{file.relative_to(ROOT)}:{annotation.lineno} {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "annotation", "wrong"),
    [
        ("timeout", "float", True),
        ("judge_timeout", "Seconds | None", True),
        ("deadline_s", "float", True),
        ("patience_s", "float", True),
        ("judge_timeout_s", "float", False),
        ("deadline", "float", False),  # a moment, not a limit
        ("token_budget", "int | None", True),
        ("most_tokens", "Count", True),
        ("budget", "Budget", False),
        ("max_total_tokens", "int | None", False),
        ("html", "Path | None", True),
        ("report", "Path", False),
    ],
)
def test_the_rule_tells_names_apart(name: str, annotation: str, wrong: bool) -> None:
    assert wrong_name(name, annotation) is wrong


def every_flag() -> Iterator[tuple[str, Any]]:
    """Yield each command with each of its options."""
    modules = {name: name for name in COMMANDS} | {
        f"{name} {' '.join(flags)}": module for name, forms in FORMS.items() for flags, module in forms.items()
    }
    for name, module in modules.items():
        __import__(f"rstar2_env.cli.{module}")
        found = sys.modules[f"rstar2_env.cli.{module}"]
        app = getattr(found, "app", None)
        if app is None:
            app = typer.Typer()
            app.command()(getattr(found, f"{module}_command"))
        command: Any = get_command(app)
        for own in getattr(command, "commands", {"": command}).values():
            for parameter in own.params:
                if parameter.param_type_name == "option" and parameter.opts[0].startswith("--"):
                    yield name, parameter


def test_flags_of_one_kind_have_one_name() -> None:
    wrong = []
    for command, parameter in every_flag():
        name, text = parameter.opts[0], parameter.help or ""
        if re.search(r"\bin seconds\b|\bSeconds (after|without)\b|\b[Tt]ime limit\b", text) and not name.endswith(
            "timeout"
        ):
            wrong.append(f"{command} {name}: {text}")
        if re.search(r"\bWrite\b.*\b(page|plot|report)\b", text) and name != "--report":
            wrong.append(f"{command} {name}: {text}")
        if re.search("budget|minutes|deadline", name):
            wrong.append(f"{command} {name}")
    assert wrong == []
