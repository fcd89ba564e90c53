"""The list of the checks and their measurement are generated pages, and the how-to repeats neither."""

from __future__ import annotations

import json
import re

from checks_table import FILE, MEASURED, PAGE, pages
from places import DOCS

from rstar2_env.diagnosis.base import CHECKS

MADE = pages()


def test_the_pages_are_those_of_the_code() -> None:
    stale = [file for file, page in MADE.items() if (DOCS / file).read_text("utf-8") != page]
    assert stale == [], "run: python tools/docs_site/checks_table.py docs"


def test_every_check_has_a_section_with_its_texts_and_its_picture() -> None:
    page = MADE[PAGE]
    assert "![The figures that a finding of duplicates reports](pictures/checks/duplicates.svg)" in page
    assert "![kl: kl_runs_away fires on the left, and is silent on the right](pictures/checks/kl_runs_away.svg)" in page
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == CHECKS.names()
    for name, section in sections.items():
        check = CHECKS.get(name)
        assert section.startswith(f"\n{check.title} ({check.severity}).\n")
        assert all(text in section for text in (check.looks_at, check.cause, check.otherwise, *check.change))
        assert [effect for effect in check.effects if f"[`{effect}`](#{effect})" not in section] == []


def test_every_measured_fault_has_a_row_that_leads_to_its_check() -> None:
    rows = re.findall(rf"^\| .+? \| (run|folder) \| \[`(\w+)`\]\({PAGE}#\2\) \|", MADE[MEASURED], re.MULTILINE)
    measured = json.loads(FILE.read_text("utf-8"))["measured"]
    planted = {
        (place.split()[1], one["check"])
        for place, own in measured.items()
        for name, one in own["results"].items()
        if name != "clean"
    }
    assert set(rows) == planted


def test_the_how_to_leads_to_both_pages_and_has_no_section_of_a_check() -> None:
    how_to = (DOCS / "diagnosis.md").read_text("utf-8")
    assert [page for page in MADE if f"]({page})" not in how_to] == []
    assert re.findall(r"^#+ `", how_to, re.MULTILINE) == []
