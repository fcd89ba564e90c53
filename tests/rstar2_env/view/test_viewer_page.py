"""docs/viewer.md and viewer-reference.md name the keys and the options that there are."""

import re

import typer
from places import DOCS, ROOT

from rstar2_env.cli import build

PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("viewer.md", "viewer-reference.md"))
SOURCES = ROOT / "rstar2_env" / "view" / "web" / "src"
NAMES = {"ArrowLeft": "←", "ArrowRight": "→", "Escape": "Esc"}


def test_every_key_of_the_page_is_in_its_table():
    shortcuts = {}
    for path in SOURCES.rglob("*.tsx"):
        for keys, label in re.findall(r"\{ keys: \[([^]]+)\], label: \"([^\"]+)\"", path.read_text("utf-8")):
            shortcuts[label] = [NAMES.get(key, key) for key in re.findall(r'"([^"]+)"', keys)]
    assert len(shortcuts) >= 7
    table = PAGE.partition("### Keys")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| (`.+?) \| (?:everywhere|an episode) \| (.+?) \|$", table, re.MULTILINE)
    assert {label: re.findall(r"`(.+?)`", keys) for keys, label in rows} == shortcuts


def test_every_option_of_the_command_is_on_the_page():
    command = typer.main.get_command(build(["view"])).commands["view"]
    options = {name for one in command.params for name in one.opts if name.startswith("--")} - {"--help", "--pager"}
    switches = {"--browser": "--no-browser"}
    assert {switches.get(name, name) for name in options if switches.get(name, name) not in PAGE} == set()
