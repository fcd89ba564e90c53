"""The tables in docs/diagnosis.md are generated from the checks and from their measurement."""

from __future__ import annotations

import re

import pytest
from checks_table import BEGIN, END, with_checks
from places import DOCS

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.diagnosis.base import CHECKS


def test_the_table_of_checks_is_that_of_the_code() -> None:
    page = (DOCS / "diagnosis.md").read_text("utf-8")
    assert page == with_checks(page), "run: python tools/docs_site/checks_table.py docs/diagnosis.md"
    assert sorted(re.findall(r"^### `(\w+)`$", page, re.MULTILINE)) == CHECKS.names()


def test_a_page_without_a_place_for_the_checks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no place for a table"):
        with_checks(f"{END}{BEGIN}")
