"""The text between two lines of a page is replaced; a page without these lines is refused."""

from __future__ import annotations

import pytest
from marked import with_text

from rstar2_env.core.errors import ConfigurationError


def test_only_the_text_between_the_lines_is_replaced() -> None:
    assert with_text("a\n<b>\nold\n<e>\nc\n", "<b>", "new\n", "<e>") == "a\n<b>\nnew\n<e>\nc\n"


@pytest.mark.parametrize("page", ["<e><b>", "<b>", "<e>", ""])
def test_a_page_without_a_place_for_the_text_is_refused(page: str) -> None:
    with pytest.raises(ConfigurationError, match="has no place for the text: expected the lines '<b>' and '<e>'"):
        with_text(page, "<b>", "new", "<e>")
