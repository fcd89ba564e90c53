"""Documents stay short: the hand-written pages together, and each page of how-to.

Not counted: pages and parts of pages that a program writes. Their list is that of the programs.
"""

import importlib
import json
import re

import build
import checks_table
import metrics_page
import options_table
import part_pages
import pytest
import systems_table
import yaml
from page_blocks import NOTEBOOKS, PAGES
from places import DOCS, ROOT
from proof import PAGE as PROOF
from stage import PLACES

from rstar2_env.evaluation import cards

MOST_WORDS = 90_000
"""Words of all hand-written pages."""
MOST_OF_A_TASK = 900
"""Words of a page of how-to."""
FORMS = ("gpu-report.md",)
"""Pages that `rstar2 doctor --report` writes; tests/rstar2_env/doctor/test_report.py compares them."""
PARTS = [(module.BEGIN, module.END) for module in (options_table, systems_table)]


@pytest.fixture(scope="module")
def made():
    """The pages that programs write, as paths in ``docs/``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        figures = [importlib.import_module(name).PAGE for name in ("atlas_page", "learning_page", "real_run")]
    return {
        PROOF.name,
        cards.PAGE,
        metrics_page.PAGE,
        *checks_table.pages(),
        *FORMS,
        *figures,
        *(f"trainers/{page}" for page in part_pages.pages()),
    }


def by_hand(text: str) -> str:
    """The text without the parts that programs write."""
    for begin, end in PARTS:
        text = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", "", text, flags=re.DOTALL)
    return text


def words(path) -> int:
    """The words of a page or of the text of a notebook, tables and blocks of code included."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return len(by_hand(text).split())


def test_hand_written_pages_are_short_together(made):
    pages = [*PAGES, *NOTEBOOKS]
    written = {path for path in pages if not (path.is_relative_to(DOCS) and str(path.relative_to(DOCS)) in made)}
    assert len(pages) - len(written) == len(made), "a program writes a page that does not exist"
    assert sum(map(words, written)) <= MOST_WORDS


def test_parts_that_a_program_writes_are_not_counted():
    texts = [by_hand((DOCS / page).read_text("utf-8")) for page in ("options.md", "systems.md")]
    assert [text for text in texts if any(end in text for _, end in PARTS)] == []
    ((begin, end), *_) = PARTS
    assert by_hand(f"one {begin} two {end} three").split() == ["one", "three"]


def test_a_page_of_how_to_has_one_task():
    named = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=build._Loader)["nav"]
    (how_to,) = [entry for entry in named if "How-to" in entry]
    outside = {place: ROOT / path for path, place in PLACES.items()}
    pages = [outside.get(page, DOCS / page) for page in build.pages_of(how_to)]
    assert len(pages) > 30
    assert [page.name for page in pages if words(page) > MOST_OF_A_TASK] == []
