"""Write the table of recipes in docs/systems.md: the test of each recipe, its second source and the date.

``python tools/docs_site/systems_table.py docs/systems.md`` rewrites the table in the page, between its markers. The
second source is the ``source`` of the recipe: repositories with a commit, and papers. If it names no commit, the
numbers were derived by hand from the paper, and the source says why in one of the forms of ``_WHY``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from marked import with_text

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.base import TRAINERS

BEGIN = "<!-- recipes: made by `python tools/docs_site/systems_table.py docs/systems.md` -->"
END = "<!-- end of recipes -->"
_TESTS = Path(__file__).resolve().parents[2] / "tests" / "trainers" / "recipes"
_NAMED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{7,}|arXiv \d{4}\.\d{4,5}")
_WHY = re.compile(
    r"no released (?:training )?code was found on \d{4}-\d\d-\d\d"
    r"|(?<=the released code, )[\w.-]+/[\w.-]+, could not be read on \d{4}-\d\d-\d\d"
    r"|the released code differs|it has no code"
)


def recipes_table() -> str:
    """Return a Markdown table of all recipes."""
    texts = {path.name: path.read_text("utf-8") for path in sorted(_TESTS.glob("test_*.py"))}
    rows = ["| recipe | test | second source | compared on |", "|---|---|---|---|"]
    for name in sorted(path.stem for path in _TESTS.parents[2].joinpath("trainers", "recipes").glob("[a-z]*.py")):
        file = f"tests/trainers/recipes/{test_of(name, texts)}"
        rows.append(f"| `{name}` | [{file}](../{file}) | {' | '.join(second_source(name))} |")
    return "\n".join(rows) + "\n"


def test_of(name: str, texts: Mapping[str, str]) -> str:
    """Return the test file that names a recipe most often.

    Args:
        name: The recipe.
        texts: The text of each test file.

    Raises:
        ConfigurationError: No file names the recipe.
    """
    counts = {file: text.count(f'"{name}"') for file, text in texts.items()}
    if not any(counts.values()):
        raise ConfigurationError(f"No test in tests/trainers/recipes names the recipe {name!r}.")
    return max(counts, key=lambda file: counts[file])


def second_source(name: str) -> tuple[str, str]:
    """Return the second source of a recipe, with the reason if it names no code, and the date of the comparison.

    Raises:
        ConfigurationError: The source names no commit and no reason.
    """
    recipe = TRAINERS.get(name)
    named = ", ".join(dict.fromkeys(_NAMED.findall(recipe.source))) or recipe.source.partition(";")[0]
    if "@" in named:
        return named, recipe.checked
    if (why := _WHY.search(recipe.source)) is None:
        raise ConfigurationError(f"The source of the recipe {name!r} names no commit, and not why it is text only.")
    return f"{named} (text only: {why[0].replace(', could', ' could')})", recipe.checked


def with_table(page: str) -> str:
    """Return the page with the current table between its markers."""
    return with_text(page, BEGIN, recipes_table(), END)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_table(page.read_text("utf-8")), "utf-8")
