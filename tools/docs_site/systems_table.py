"""Write the table of recipes in docs/systems.md: the test of each recipe, its second source and the date.

``python tools/docs_site/systems_table.py docs/systems.md`` rewrites the table in the page, between its markers. The
second source is the ``source`` of the recipe: repositories with a commit, and papers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.base import TRAINERS

BEGIN = "<!-- recipes: made by `python tools/docs_site/systems_table.py docs/systems.md` -->"
END = "<!-- end of recipes -->"
_TESTS = Path(__file__).resolve().parents[2] / "tests" / "trainers" / "recipes"
_NAMED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{7,}|arXiv \d{4}\.\d{4,5}")


def recipes_table() -> str:
    """Return a Markdown table of all recipes."""
    texts = {path.name: path.read_text("utf-8") for path in sorted(_TESTS.glob("test_*.py"))}
    rows = ["| recipe | test | second source | compared on |", "|---|---|---|---|"]
    for name in sorted(path.stem for path in _TESTS.parents[2].joinpath("trainers", "recipes").glob("[a-z]*.py")):
        test = max(texts, key=lambda one: texts[one].count(f'"{name}"'))
        file = f"tests/trainers/recipes/{test}"
        rows.append(f"| `{name}` | [{file}](../{file}) | {' | '.join(second_source(name))} |")
    return "\n".join(rows) + "\n"


def second_source(name: str) -> tuple[str, str]:
    """Return the second source of a recipe and the date of the comparison; the date is a dash without a comparison."""
    recipe = TRAINERS.get(name)
    if not recipe.source:
        return f"[not compared](trainers/recipes.md#{name})", "–"
    return ", ".join(dict.fromkeys(_NAMED.findall(recipe.source))) or recipe.source, recipe.checked


def with_table(page: str) -> str:
    """Return the page with the current table between its markers.

    Raises:
        ConfigurationError: The markers are missing in the page.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigurationError(f"The page has no place for the recipes: expected the lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n{recipes_table()}{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_table(page.read_text("utf-8")), "utf-8")
