"""Modules that commands import by name have the attributes that the commands use; no type checker sees them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from places import ROOT

COMMANDS = sorted(path for path in (ROOT / "rstar2_env/cli").glob("*.py") if "import_trainers(" in path.read_text())


def imported(node: ast.expr) -> str | None:
    """Name of the module of a call ``import_trainers("name")``; ``None`` for any other expression."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_trainers":
        return ".".join(["rstar2_env.trainers", *(ast.literal_eval(argument) for argument in node.args)])
    return None


def used_attributes(tree: ast.AST) -> set[tuple[str, str]]:
    """Module and attribute of each use of an imported module, directly or by a variable of one function."""
    found = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        modules: dict[str, str] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=True))
                for name, value in pairs:
                    if isinstance(name, ast.Name) and (module := imported(value)):
                        modules[name.id] = module
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute):
                owner = node.value
                module = modules.get(owner.id) if isinstance(owner, ast.Name) else imported(owner)
                if module:
                    found.add((module, node.attr))
    return found


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_uses_names_that_exist(path: Path) -> None:
    for module, name in used_attributes(ast.parse(path.read_text())):
        assert hasattr(importlib.import_module(module), name), f"{path.name}: {module} has no {name}"


def test_uses_are_found() -> None:
    assert ("rstar2_env.trainers.pipeline.plan", "PipelinePlan") in used_attributes(
        ast.parse((ROOT / "rstar2_env/cli/run.py").read_text())
    )
