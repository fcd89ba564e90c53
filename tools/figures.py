"""Compare the figures of the documents with the files of results: ``python tools/figures.py [--write]``.

A figure from a file of results is followed by a comment that names the file in ``docs/data`` and the key below its
``figures``: ``0.46<!-- smollm2_cpu.after.right -->``. The writer chooses the number of digits; a percent sign between
the number and the comment multiplies the value by 100. ``--write`` corrects the text.

Each file has ``command``, which makes it again, ``commit``, the code that made it, and ``load``, what the machine had
for it. Not covered: pages that a program writes from results, which have tests of their own (``docs/learning.md``,
``docs/atlas.md``), and numbers without such a comment.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data"
SOURCE = ("command", "commit", "load")
_MARK = re.compile(r"(?P<number>[+-]?(?:\d[\d,]*)?(?:\.\d+)?)(?P<percent> ?%)?<!-- (?P<file>\w+)\.(?P<key>[\w.]+) -->")


def read_results(folder: Path = DATA) -> dict[str, dict[str, Any]]:
    """Return the files of results by name.

    Raises:
        ValueError: A file does not say how it was made.
    """
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    for name, told in found.items():
        if lacking := [key for key in (*SOURCE, "figures") if not told.get(key)]:
            raise ValueError(f"{folder.name}/{name}.json lacks {', '.join(lacking)}: a result says how it was made.")
    return found


def marks(text: str) -> Iterator[re.Match[str]]:
    """Yield the marked figures of a text, with their groups ``number``, ``percent``, ``file`` and ``key``."""
    return _MARK.finditer(text)


def corrected(mark: re.Match[str], results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the number that a marked figure must have, with as many digits as it has.

    Args:
        mark: The figure.
        results: The files of results.

    Raises:
        ValueError: The text has no number before the comment, or the file or the key does not exist.
    """
    number, name = mark["number"], f"{mark['file']}.{mark['key']}"
    if not re.search(r"\d", number):
        raise ValueError(f"Expected a number before <!-- {name} -->.")
    value: Any = results.get(mark["file"], {}).get("figures")
    for key in mark["key"].split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, int | float):
        raise ValueError(f"No file of results has the figure {name}.")
    digits = len(number.partition(".")[2])
    style = ("+" if number.startswith("+") else "") + ("," if "," in number else "")
    found = f"{value * (100 if mark['percent'] else 1):{style}.{digits}f}"
    return re.sub(r"^([+-]?)0(?=\.)", r"\1", found) if re.match(r"[+-]?\.", number) else found


def with_figures(text: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text with each marked figure as its file has it.

    Raises:
        ValueError: As ``corrected``.
    """

    def replaced(mark: re.Match[str]) -> str:
        return corrected(mark, results) + mark[0][len(mark["number"]) :]

    return _MARK.sub(replaced, text)


def documents() -> list[Path]:
    """Return README and the pages of ``docs/``."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> int:
    """Print the lines that differ, or correct them; return 1 if any differ still."""
    results, wrong = read_results(), 0
    for path in documents():
        text = path.read_text("utf-8")
        right = with_figures(text, results)
        if "--write" in sys.argv[1:]:
            path.write_text(right, "utf-8")
            continue
        for number, (said, meant) in enumerate(zip(text.splitlines(), right.splitlines(), strict=True), 1):
            if said != meant:
                wrong += 1
                print(f"{path.relative_to(ROOT)}:{number}: {said}\n  by the file: {meant}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
