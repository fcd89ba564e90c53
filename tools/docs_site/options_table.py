"""Write the tables of ``TrainConfig``'s options in docs/options.md from the fields and docstrings of its groups.

``python tools/docs_site/options_table.py docs/options.md`` rewrites the tables in the page, between its markers.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

from docstrings import words_of
from marked import with_text

from rstar2_env.core.options.rules import in_words, says_nothing
from rstar2_env.core.options.targets import options_of
from rstar2_env.trainers.options.config import GROUPS

BEGIN = "<!-- options: made by `python tools/docs_site/options_table.py docs/options.md` -->"
END = "<!-- end of options -->"


def options_table() -> str:
    """Return a Markdown table per group with the name, the default, the valid values and the meaning of each option."""
    return "\n".join(_group(name, record) for name, record in GROUPS.items())


def _group(group: str, record: type[Any]) -> str:
    words = words_of(record)
    found = options_of(record).parameters
    rows = ["| option | default | values | what it is |", "|---|---|---|---|"]
    for field in dataclasses.fields(record):
        takes = found[field.name]
        values = "" if says_nothing(takes.hint) else in_words(takes.hint, takes.rule)
        rows.append(
            f"| `{group}.{field.name}` | {_default(field)} | {_cell(values)} | {_cell(words.meanings[field.name])} |"
        )
    about = " ".join(f"{words.summary} {words.text}".split())
    return f"## `{group}`\n{_cell(about)}\n\n" + "\n".join(rows) + "\n"


def with_table(page: str) -> str:
    """Return the page with the current tables between its markers."""
    return with_text(page, BEGIN, options_table(), END)


def _default(field: dataclasses.Field[object]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return "required" if field.default is dataclasses.MISSING else f"`{field.default!r}`"


def _cell(text: str) -> str:
    links = re.sub(r"docs/([a-z-]+\.md)(#[a-z-]+)?", r"[\1](\1\2)", text)
    return links.replace("|", "\\|").replace("``", "`")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_table(path.read_text("utf-8")), "utf-8")
