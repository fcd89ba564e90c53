"""The tutorials: notebooks of ``docs/tutorials`` as pages.

Covered: text and code, and the output of each cell if an executed copy exists. Not covered: running the notebooks and
writing those copies (``tests/site/test_notebooks.py``).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "tutorials"
RUN = ROOT / "build" / "tutorials"
"""Where copies are that were run with small settings; the repository keeps none."""
_ORDER = ("own_environment", "own_part", "pretrained", "gsm8k", "diagnose", "faults")
"""In which order they are read; one that is not named comes after these."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_LOG = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]")
_BAR = re.compile(r"━ *\d+/[\d?]")
_NOTE = "What cells printed is of small settings (`RSTAR2_TUTORIAL=small`), with which tests run this notebook."


def pages() -> dict[str, str]:
    """Return every page by its path in the site."""
    places = {name: place for place, name in enumerate(_ORDER)}
    found = sorted(FOLDER.glob("*.ipynb"), key=lambda path: (places.get(path.stem, len(places)), path.stem))
    return {f"tutorials/{path.stem}.md": page(path) for path in found}


def page(path: Path, folder: Path = RUN) -> str:
    """Return a notebook as Markdown, with the output of its cells if an executed copy of the same cells exists.

    Args:
        path: The notebook.
        folder: Where copies are that were run.
    """
    cells = _cells(path)
    copy = folder / path.name
    ran = _cells(copy) if copy.is_file() else []
    if [_source(cell) for cell in ran] != [_source(cell) for cell in cells]:
        return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"
    first, *rest = [_cell(cell) for cell in ran]
    return "\n\n".join([*first, _NOTE, *(part for parts in rest for part in parts)]) + "\n"


def _cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return found


def _source(cell: dict[str, Any]) -> tuple[str, str]:
    return cell["cell_type"], "".join(cell["source"])


def _cell(cell: dict[str, Any]) -> list[str]:
    text = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return [text]
    if cell["cell_type"] != "code" or not text:
        return []
    shown = _plain("".join(_output(output) for output in cell["outputs"]))
    pictures = [data for output in cell["outputs"] if (data := _picture(output))]
    return [
        f"```python\n{text}\n```",
        *([f"```text\n{shown}\n```"] if shown else []),
        *(f"![What the cell draws](data:image/png;base64,{data})" for data in pictures),
    ]


def _output(output: dict[str, Any]) -> str:
    """Return the part of an output to show: printed text and values, without logs and progress (stderr)."""
    if output["output_type"] == "stream":
        return "".join(output["text"]) if output["name"] == "stdout" else ""
    if _picture(output):
        return ""
    return "".join(output.get("data", {}).get("text/plain", [])) + "\n"


def _picture(output: dict[str, Any]) -> str:
    """Return the picture of an output as PNG in base64; empty if it has none."""
    return "".join("".join(output.get("data", {}).get("image/png", [])).split())


def _plain(text: str) -> str:
    """Return a text without control sequences, overwritten lines, lines of a log and progress bars."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in _ESCAPE.sub("", text).split("\n")]
    return "\n".join(line.rstrip() for line in lines if not (_LOG.match(line) or _BAR.search(line))).strip("\n")
