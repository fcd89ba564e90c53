"""Claims about docs/agents.md and docs/search-agents.md: their examples run."""

from __future__ import annotations

import re

import pytest
from places import DOCS

EXAMPLES = [
    pytest.param(example, id=f"{page}-{number}")
    for page in ("agents.md", "search-agents.md")
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_page_run(example):
    exec(compile(example, "an example", "exec"), {})
