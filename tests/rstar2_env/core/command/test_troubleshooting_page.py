"""The page on troubleshooting names messages that the code has, and forms of issues ask for what it says."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest
import yaml
from cli_runner import run
from places import DOCS, ROOT

PAGE = (DOCS / "troubleshooting.md").read_text("utf-8")
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE.partition("## By message")[2].partition("\n## ")[0], re.MULTILINE)
FOLDERS = ("rstar2_env", "agents", "envs_registry", "trainers")


def text_of(node: ast.expr) -> str:
    """The text of an expression, with ``…`` for each part that is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return "…"


@functools.cache
def texts_of_the_code() -> tuple[str, ...]:
    """The texts that the code gives to calls, among which are the messages of its errors."""
    found = {
        text_of(argument)
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
        for argument in node.args
    }
    return tuple(found)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_begins_a_message_of_the_code(message: str) -> None:
    pattern = re.compile(".+?".join(map(re.escape, message.split("…"))), re.DOTALL)
    assert any(pattern.match(text) for text in texts_of_the_code())


def test_the_page_has_a_table_of_messages() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) > 30
    assert all(len(message.replace("…", "").strip(" .:")) > 5 for message in MESSAGES), "a message has words of its own"


def test_the_form_of_an_issue_asks_for_the_files_of_the_page() -> None:
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text("utf-8"))
    asked = {field["id"]: field["attributes"]["description"] for field in form["body"] if "id" in field}
    told = PAGE.partition("## Ask for help")[2].partition("\n## ")[0]
    for field, command in (("machine", "rstar2 doctor --report report.md"), ("run", "rstar2 diagnose RUN --json")):
        assert f"`{command}`" in asked[field]
        assert command in told
    assert form["name"] in told


@pytest.mark.parametrize("form", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_the_commands_of_a_form_take_its_options(form: Path) -> None:
    for command in re.findall(r"`rstar2 ([^`]+)`", " ".join(form.read_text("utf-8").split())):
        words = command.split()
        helped = run(words[0], "--help").output
        assert [word for word in words if word.startswith("--") and word not in helped] == []
