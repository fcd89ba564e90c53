"""The tables in docs/diagnosis.md are generated from the checks and from their measurement."""

from __future__ import annotations

import re

from checks_table import with_checks
from places import DOCS

from rstar2_env.diagnosis.base import CHECKS


def test_the_table_of_checks_is_that_of_the_code() -> None:
    page = (DOCS / "diagnosis.md").read_text("utf-8")
    assert page == with_checks(page), "run: python tools/docs_site/checks_table.py docs/diagnosis.md"
    assert "![The figures that a finding of duplicates reports](pictures/checks/duplicates.svg)" in page
    assert "![kl: kl_runs_away fires on the left, and is silent on the right](pictures/checks/kl_runs_away.svg)" in page
    assert sorted(re.findall(r"^### `(\w+)`$", page, re.MULTILINE)) == CHECKS.names()
