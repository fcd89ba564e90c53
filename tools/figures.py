"""Compare the figures of the documents with the files of results: ``python tools/figures.py [--write]``.

A figure from a file of results is followed by a comment that names the file in ``docs/data`` and the key below its
``figures``: ``0.46<!-- smollm2_cpu.after.right -->``. The writer chooses the number of digits; a percent sign between
the number and the comment multiplies the value by 100. A table of results is between ``<!-- table FILE.NAME -->`` and
``<!-- /table -->``; the file has the rows of its cells, the header first, below ``tables``. ``--write`` corrects the
text.

Each file says how it was made (``results``). Not covered: pages that a program writes from results, which have tests
of their own (``docs/learning.md``, ``docs/atlas.md``), and numbers without such a comment.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from results import ROOT, SOURCE, source

DATA = ROOT / "docs" / "data"
_MARK = re.compile(r"(?P<number>[+-]?(?:\d[\d,]*)?(?:\.\d+)?)(?P<percent> ?%)?<!-- (?P<file>\w+)\.(?P<key>[\w.]+) -->")

_TABLE = re.compile(
    r"<!-- table (?P<file>\w+)\.(?P<name>\w+) -->\n\n"
    r"(?P<head>\|.*\n)(?P<rule>\|[-:|]+\n)(?P<rows>(?:\|.*\n)*)\n<!-- /table -->"
)
_ROW = re.compile(r'\[\s+"(?:[^"\\]|\\.)*"(?:,\s+"(?:[^"\\]|\\.)*")*\s+\]')
"""A list of texts in JSON with indentation, which is written in one line."""
_OPEN = re.compile(r"<!-- /?table\b")


def read_results(folder: Path = DATA) -> dict[str, dict[str, Any]]:
    """Return the files of results by name.

    Raises:
        ValueError: A file does not say how it was made.
    """
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    for name, told in found.items():
        lacking = [key for key in SOURCE if not told.get(key)]
        if not told.get("figures") and not told.get("tables"):
            lacking.append("figures")
        if lacking:
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


def tables(text: str) -> Iterator[re.Match[str]]:
    """Yield the marked tables of a text, with their groups ``file``, ``name``, ``head``, ``rule`` and ``rows``.

    Raises:
        ValueError: A mark does not enclose a table.
    """
    found = list(_TABLE.finditer(text))
    if len(_OPEN.findall(text)) != 2 * len(found):
        raise ValueError("Expected <!-- table FILE.NAME -->, a table between empty lines, and <!-- /table -->.")
    yield from found


def corrected_table(mark: re.Match[str], results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a marked table, marks included, with the rows that its file has.

    Args:
        mark: The table.
        results: The files of results.

    Raises:
        ValueError: The file or the table does not exist, or a row has too few or too many cells.
    """
    name = f"{mark['file']}.{mark['name']}"
    rows = results.get(mark["file"], {}).get("tables", {}).get(mark["name"])
    if not rows:
        raise ValueError(f"No file of results has the table {name}.")
    if any(len(row) != mark["rule"].count("|") - 1 for row in rows):
        raise ValueError(f"The rows of the table {name} do not have as many cells as its page.")
    head, *lines = ["|" + "".join(f" {cell} |" if cell else " |" for cell in row) + "\n" for row in rows]
    return f"<!-- table {name} -->\n\n{head}{mark['rule']}{''.join(lines)}\n<!-- /table -->"


def with_figures(text: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text with each marked figure and each marked table as its file has it.

    Raises:
        ValueError: As ``corrected``, ``tables`` and ``corrected_table``.
    """
    for table in tables(text):
        text = text.replace(table[0], corrected_table(table, results))

    def replaced(mark: re.Match[str]) -> str:
        return corrected(mark, results) + mark[0][len(mark["number"]) :]

    return _MARK.sub(replaced, text)


def write_results(
    name: str,
    command: str,
    *,
    figures: Mapping[str, Any] | None = None,
    tables: Mapping[str, Sequence[Sequence[str]]] | None = None,
    commit: str | None = None,
    load: str = "",
) -> None:
    """Write a file of results, and correct the documents.

    Args:
        name: Name of the file in ``docs/data``, without its suffix.
        command: The command that makes the results again.
        figures: Numbers by name, also nested.
        tables: Rows of cells by name of the table, the header first.
        commit: The code that made the results; ``None`` for the present commit.
        load: Other work of the machine at that time; empty for the present load average.
    """
    told: dict[str, Any] = source(command, load)
    if commit is not None:
        told["commit"] = commit
    told |= {key: value for key, value in (("figures", figures), ("tables", tables)) if value}
    text = _ROW.sub(lambda row: " ".join(row[0].split()), json.dumps(told, indent=1, ensure_ascii=False))
    (DATA / f"{name}.json").write_text(f"{text}\n", "utf-8")
    results = read_results()
    for path in documents():
        path.write_text(with_figures(path.read_text("utf-8"), results), "utf-8")


def documents() -> list[Path]:
    """Return README, the changelog and the pages of ``docs/``."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> int:
    """Print the lines that differ, or correct them; return 1 if any differ still."""
    results, wrong = read_results(), 0
    for path in documents():
        text = path.read_text("utf-8")
        right = with_figures(text, results)
        if "--write" in sys.argv[1:]:
            path.write_text(right, "utf-8")
            continue
        for number, (said, meant) in enumerate(zip_longest(text.splitlines(), right.splitlines(), fillvalue=""), 1):
            if said != meant:
                wrong += 1
                print(f"{path.relative_to(ROOT)}:{number}: {said}\n  by the file: {meant}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
