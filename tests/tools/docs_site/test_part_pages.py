"""The pages of docs/trainers/ are those of the registries, and say of every part what it is."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from docstrings import words_of
from part_pages import FAMILIES, INDEX, RECIPES, own_parts, pages
from places import DOCS, ROOT

from rstar2_env.core.formulas import FORMULA
from rstar2_env.trainers.options.slots import FIELDS, GIVEN, part_info

FOLDER = DOCS / "trainers"
MADE = pages()
PARTS = [(family.slot, name) for family in FAMILIES for name in own_parts(family.slot)]


def test_the_pages_are_those_of_the_code():
    stale = [file for file in MADE if not (FOLDER / file).exists() or (FOLDER / file).read_text("utf-8") != MADE[file]]
    assert stale == [], "run: python tools/docs_site/part_pages.py docs/trainers"


def test_there_is_a_page_for_every_slot_and_no_other():
    assert [family.slot for family in FAMILIES] == list(FIELDS)
    assert {path.name for path in FOLDER.iterdir()} == set(MADE)
    shown = (DOCS / "trainers.md").read_text("utf-8")
    assert all(f"(trainers/{file})" in shown for file in MADE)


def test_every_part_says_what_it_is_and_what_each_option_means():
    faults = []
    for slot, name in PARTS:
        made_by = FIELDS[slot].get(name)
        words = words_of(made_by)
        if len(words.summary.split()) < 4:  # its list shows the first line of its docstring alone
            faults.append((slot, name, words.summary))
        options = part_info(name, made_by, given=GIVEN.get(slot, ())).options
        faults += [(slot, name, one.name) for one in options if not words.meanings.get(one.name)]
    assert faults == []


OURS = {
    ("advantage", "quality_ties"),
    ("correction", "none"),
    ("hook", "diagnosis"),
    ("hook", "guard"),
    ("hook", "token_budget"),
    ("hook", "until"),
    ("reward", "answer_format"),
    ("reward", "outcome"),
    ("reward", "return"),
    ("rollout", "plain"),
    ("sampler", "uniform"),
    ("selector", "quality_ties"),
}
"""Parts that nobody published: plain ones, and this package's own."""
UNNUMBERED = r"Ionides 2008|NeMo-RL|Polaris, 2025|prime-rl|SkyRL|tinker-cookbook|Williams 1992"
"""Sources that are no paper of arXiv."""


def has_a_source(slot, name):
    """Whether a part names the paper or the code that it is from."""
    made_by = FIELDS[slot].get(name)
    told = f"{made_by.__doc__}\n{sys.modules[made_by.__module__].__doc__}"
    return part_info(name, made_by, given=GIVEN.get(slot, ())).paper or re.search(UNNUMBERED, told)


def test_every_part_names_the_paper_or_the_code_that_it_is_from():
    assert [part for part in PARTS if part not in OURS and not has_a_source(*part)] == []


def files_of_one_part():
    """The modules that hold one part alone."""
    found = Counter(FIELDS[slot].get(name).__module__ for slot, name in PARTS)
    return [module for module, parts in found.items() if parts == 1]


def test_a_part_of_more_than_80_lines_says_why_and_no_other():
    faults = []
    for name in files_of_one_part():
        source = Path(sys.modules[name].__file__).read_text("utf-8")
        lines = source.count("\n")
        reasons = re.findall(r"[Ll]onger\s+than\s+(?:most|other)\s+parts", source)
        if len(reasons) != (lines > 80):
            faults.append((name, lines))
    assert faults == []


def test_every_part_and_recipe_has_a_section_and_its_options_are_there():
    for family in FAMILIES:
        sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", MADE[family.file], re.MULTILINE | re.DOTALL))
        assert list(sections) == list(own_parts(family.slot))
        for name, section in sections.items():
            info = part_info(name, FIELDS[family.slot].get(name), given=GIVEN.get(family.slot, ()))
            assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [one.name for one in info.options]
    files = {path.stem for path in (ROOT / "trainers/recipes").glob("[a-z]*.py")}
    assert set(re.findall(r"^## `(\w+)`$", MADE[RECIPES], re.MULTILINE)) == files


def test_links_lead_to_files_and_sections():
    faults = []
    for file, page in MADE.items():
        for target, section in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page):
            path = FOLDER / (target or file)
            inside = section and path.parent == FOLDER
            if not path.exists() or (inside and f"\n## `{section}`\n" not in MADE[path.name]):
                faults.append((file, target, section))
    assert faults == []


CITATION = r"^[^\n]*File: \[[^\n]*"
"""The line that names the source, the files and the recipes of a part."""
ELSEWHERE = re.compile(
    rf"{CITATION}|<!--.*?-->|`[^`]*`|'[^'\s]*'|{FORMULA}|\[[^\]]*\]\([^)\s]*\)|https?://\S+|[\w/]+\.(?:py|toml|sh)\b",
    re.DOTALL | re.MULTILINE,
)
"""Parts of a page that may look like a formula: code, values of options, links and names of files; and formulas."""
CODE = re.compile(r"`([^`\n]* [-+*/] [^`\n]*)`")
"""Arithmetic in code."""
LEFT = re.compile(
    r"""
    [=^<>≤≥±×·√]|[α-ωΑ-Ω]                 # operators and Greek letters
    | (?<=\S)\ [-+*/]\ (?=\S)             # arithmetic
    | [A-Za-z]\((?!s\))                   # a function, but not a plural such as "row(s)"
    | \b[A-Za-z]\w*_\w+                  # an index
    | \b(?:alpha|beta|gamma|delta|epsilon|lambda|mu|pi|rho|sigma|tau|phi|omega)\b
    | (?<![\w@'./-])[b-z](?![\w'./:-])   # a variable
    """,
    re.VERBOSE,
)


def formulas_as_text(page: str) -> list[str]:
    """The places of a page that are a formula, but are not marked as one."""
    outside = ELSEWHERE.sub(" ", page)
    marks = [re.sub(r"^\s*(?:[-*]|#+) ", "", line) for line in outside.split("\n")]
    return CODE.findall(re.sub(rf"{FORMULA}", " ", page)) + [line for line in marks if LEFT.search(line)]


@pytest.mark.parametrize("file", sorted(set(MADE) - {INDEX}))
def test_no_formula_is_left_as_text(file: str):
    assert formulas_as_text(MADE[file]) == []


@pytest.mark.parametrize(
    "text",
    ["-A log pi", "the ratio / 2", "A_t is", "min(ratio, 1)", "where n is", "x^2", "`1 - cost`", "    a = b", "π is"],
)
def test_a_formula_as_text_is_found(text: str):
    assert formulas_as_text(f"In words, {text}") != []
    assert formulas_as_text(f"In words, ${text.replace('`', '').strip()}$") == []


@pytest.mark.parametrize("slot", ["advantage", "loss", "aggregation", "correction"])
def test_every_part_that_computes_a_number_has_a_formula(slot: str):
    (family,) = [one for one in FAMILIES if one.slot == slot]
    sections = re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", MADE[family.file], re.MULTILINE | re.DOTALL)
    assert [name for name, section in sections if not re.search(FORMULA, section)] == []


def test_the_index_counts_what_the_registries_hold():
    page = MADE[INDEX]
    counted = {slot: int(number) for slot, number in re.findall(r"^\| `(\w+)` \| .*? \| (\d+) \|", page, re.MULTILINE)}
    assert counted == {slot: sum(part[0] == slot for part in PARTS) for slot in FIELDS}
    assert f"| all slots | {len(PARTS)} |" in page
    assert f"{MADE[RECIPES].count(chr(10) + '## ')} [recipes]" in page


def test_recipes_are_named_by_the_parts_that_they_use():
    assert "[`grpo_roc`](recipes.md#grpo_roc)" in MADE["selectors.md"].partition("## `roc`")[2]
    assert "| `parts.selector` | [`roc`](selectors.md#roc) |" in MADE[RECIPES].partition("## `grpo_roc`")[2]
    assert "| `rollout.oversample` | `2` |" in MADE[RECIPES].partition("## `grpo_roc`")[2]


def test_a_docstring_is_read_in_its_sections_and_a_base_fills_in_what_it_leaves_out():
    @dataclass
    class Base:
        """A base.

        Attributes:
            width: In tokens,
                over two lines.
            name: Of the base.
        """

        width: int = 1
        name: str = ""

    @dataclass
    class Derived(Base):
        """First line.

        A formula:

            a + b

        Args:
            name: Of the derived.

        Raises:
            ValueError: Never an option.
        """

    words = words_of(Derived)
    assert (words.summary, words.text) == ("First line.", "A formula:\n\n    a + b")
    assert words.meanings == {"width": "In tokens, over two lines.", "name": "Of the derived."}
