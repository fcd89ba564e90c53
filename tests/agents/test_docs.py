"""Claims about docs/agents.md: its examples run."""

from __future__ import annotations

import re

import pytest
from places import DOCS

from rstar2_env.agents import AGENTS

PAGE = DOCS / "agents.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_page_run(number):
    exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number + 1}", "exec"), {})


def test_the_page_lists_every_agent():
    section = PAGE.read_text("utf-8").split("\n## Available agents\n")[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    folder = PAGE.parents[1] / "agents"
    assert {path.stem for path in folder.rglob("*.py") if not path.stem.startswith("_")} - {"base"} == listed
    assert listed <= set(AGENTS.names())
