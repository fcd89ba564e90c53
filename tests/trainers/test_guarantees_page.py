"""The page of guarantees names tests that exist."""

from __future__ import annotations

import ast
import re

from places import DOCS

PAGE = (DOCS / "guarantees.md").read_text("utf-8")
NAMED = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)::`(\w+)`", PAGE)


def test_every_guarantee_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| guarantee")]
    assert len(rows) > 30
    assert [row for row in rows if "::`test_" not in row] == []


def test_the_named_tests_exist() -> None:
    missing = []
    for path, name in NAMED:
        tree = ast.parse((DOCS.parent / path).read_text("utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        if name not in names:
            missing.append(f"{path}::{name}")
    assert missing == []
