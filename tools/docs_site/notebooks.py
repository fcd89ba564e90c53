"""The tutorials: notebooks of ``docs/tutorials`` as pages.

    python tools/docs_site/notebooks.py record    # keep the outputs of `make docs-test` in docs/data/tutorials

A page has the outputs of the last ``make docs-test`` of this checkout, otherwise the recorded ones, if the code of all
cells is the same. Not covered: running the notebooks (``tests/site/test_notebooks.py``).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from results import source  # noqa: E402

FOLDER = ROOT / "docs" / "tutorials"
RUN = ROOT / "build" / "tutorials"
"""Folder of copies that were run with small settings."""
RECORDED = ROOT / "docs" / "data" / "tutorials"
"""Folder of the code cells of such copies, with their outputs."""
_ORDER = ("own_environment", "own_part", "pretrained", "gsm8k", "diagnose", "faults")
"""In which order they are read; one that is not named comes after these."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_LOG = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]")
_BAR = re.compile(r"^[^┏┡┗╇┳┛┓┩]*━[^┏┡┗╇┳┛┓┩]*$|^\w+: \d+/\d+ \(\d+ %\), ")
"""A line with progress: a bar, which unlike the rule of a table has no corners, or counts and a rate."""
_NOTE = "The outputs below are those of a short run with small settings (`RSTAR2_TUTORIAL=small`)."


def pages() -> dict[str, str]:
    """Return every page by its path in the site."""
    places = {name: place for place, name in enumerate(_ORDER)}
    found = sorted(FOLDER.glob("*.ipynb"), key=lambda path: (places.get(path.stem, len(places)), path.stem))
    return {f"tutorials/{path.stem}.md": page(path) for path in found}


def page(path: Path, folders: Sequence[Path] = (RUN, RECORDED)) -> str:
    """Return a notebook as Markdown, with the outputs of its cells if a copy with the same code was run.

    Args:
        path: The notebook.
        folders: Folders of copies that were run; the first copy with the same code is used.
    """
    cells = _cells(path)
    ran = next((code for folder in folders if _same(code := code_of(folder, path.stem), cells)), None)
    if ran is None:
        return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"
    left = iter(ran)
    first, *rest = [_cell(next(left) if cell["cell_type"] == "code" else cell) for cell in cells]
    return "\n\n".join([*first, _NOTE, *(part for parts in rest for part in parts)]) + "\n"


def code_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the code cells of a notebook in a folder; none if the folder lacks the notebook."""
    found = [path for path in (folder / f"{name}.ipynb", folder / f"{name}.json") if path.is_file()]
    return [cell for cell in _cells(found[0]) if cell["cell_type"] == "code"] if found else []


def record() -> None:
    """Write the code cells of all executed copies, with the outputs that a page shows, into ``RECORDED``.

    Raises:
        SystemExit: A notebook was not run with its present code.
    """
    RECORDED.mkdir(exist_ok=True)
    for path in sorted(FOLDER.glob("*.ipynb")):
        ran = code_of(RUN, path.stem)
        if not _same(ran, _cells(path)):
            raise SystemExit(f"{path.name} was not run with this code: run `make docs-test` first.")
        kept = [{"cell_type": "code", "source": cell["source"], "outputs": _reduced(cell)} for cell in ran]
        told = {**source("make docs-test; python tools/docs_site/notebooks.py record"), "cells": kept}
        (RECORDED / f"{path.stem}.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def _same(ran: list[dict[str, Any]], cells: list[dict[str, Any]]) -> bool:
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return bool(code) and ["".join(cell["source"]) for cell in ran] == ["".join(cell["source"]) for cell in code]


def _shown(cell: dict[str, Any]) -> tuple[str, list[str]]:
    """Return what a page shows of the outputs of a cell: the text, and pictures as PNG in base64."""
    text = _plain("".join(_output(output) for output in cell["outputs"]))
    return text, [data for output in cell["outputs"] if (data := _picture(output))]


def _reduced(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Return outputs with the shown content of a cell's outputs alone."""
    text, pictures = _shown(cell)
    printed = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    return [*printed, *({"output_type": "display_data", "data": {"image/png": data}} for data in pictures)]


def _cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return found


def _cell(cell: dict[str, Any]) -> list[str]:
    text = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return [text]
    if cell["cell_type"] != "code" or not text:
        return []
    shown, pictures = _shown(cell)
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


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        raise SystemExit(__doc__)
    record()
