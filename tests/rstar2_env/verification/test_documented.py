"""docs/verification.md tells the truth: every row of its tables of examples holds."""

from __future__ import annotations

import re

import pytest
from places import DOCS

from rstar2_env.verification import verify

DOCUMENT = DOCS / "verification.md"
HEADER = "| gold | answer | right | rule |"
ROW = re.compile(r"\| `(?P<gold>.+?)` \| `(?P<answer>.+?)` \| (?P<right>yes|no) \|")


def rows() -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    in_table = False
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line == HEADER:
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            match = ROW.match(line)
            assert match is not None, f"not a row of examples: {line}"
            gold, answer = (match[name].replace("\\|", "|") for name in ("gold", "answer"))
            found.append((gold, answer, match["right"] == "yes"))
    return found


def test_the_document_has_its_tables() -> None:
    assert len(rows()) > 100


@pytest.mark.parametrize(("gold", "answer", "right"), rows())
def test_each_documented_example_holds(gold: str, answer: str, right: bool) -> None:
    assert verify(gold, answer, timeout=10.0).correct is right
