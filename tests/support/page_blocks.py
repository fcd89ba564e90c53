"""What stands in the documents: fenced blocks and inline code, each with its page and line."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from places import DOCS, ROOT

PAGES = (
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name for name in ("configs/README.md", "examples/README.md")),
    *sorted(DOCS.rglob("*.md")),
)
NOTEBOOKS = tuple(sorted(DOCS.rglob("*.ipynb")))
_FENCE = re.compile(
    r"^(?P<room> *)(?P<fence>```+|~~~+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=room)(?P=fence)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A piece of code of a document.

    Attributes:
        page: Path of the document in the repository.
        line: The line of the first line of its text, from 1.
        language: What the fence says; ``inline`` for code within a line.
        text: The code.
    """

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def fenced(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page, those in lists included."""
    page, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    for found in _FENCE.finditer(text):
        yield Block(page, _line(text, found.start("text")), found["language"].strip(), textwrap.dedent(found["text"]))


def inline(path: Path) -> Iterator[Block]:
    """The code within the lines of a page, with what was broken over two lines in one."""
    page, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    prose = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for found in _INLINE.finditer(prose):
        if "\n\n" not in found[2]:
            code = " ".join(found[2].split()).replace("\\|", "|")
            yield Block(page, _line(prose, found.start()), "inline", code)


def cells(path: Path) -> Iterator[Block]:
    """The code of a notebook; the line of a cell is its number."""
    page = path.relative_to(ROOT).as_posix()
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            yield Block(page, number, "python", "".join(cell["source"]))


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
