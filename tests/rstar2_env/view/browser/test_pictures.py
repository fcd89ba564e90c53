"""The program of the pictures draws them, and those in the documents are the ones that it draws."""

from __future__ import annotations

import pytest
from pictures import MOST_BYTES, check, size_of
from places import DOCS
from view_pictures import OUT, PICTURES, draw


def test_the_pictures_of_the_documents_are_those_that_are_drawn_and_small():
    check(OUT, PICTURES)
    page = (DOCS / "viewer.md").read_text()
    assert all(word in PICTURES for word in _shown(page))
    assert "tests/support/view_pictures.py" in page


def _shown(page):
    """Names of the pictures that a page shows."""
    names = [part.partition(".png")[0] for part in page.split("pictures/view/")[1:] if ".png" in part.split(")")[0]]
    assert len(names) > 3
    return names


@pytest.mark.slow
def test_pictures_of_every_kind_are_drawn(chromium, tmp_path):
    chosen = ("overview-tools", "episode-narrow-dark", "tokens", "group", "terminal")
    draw(chromium.browser, chosen, tmp_path, steps=8)
    for name in chosen:
        assert size_of(tmp_path / f"{name}.png") == (PICTURES[name].width, PICTURES[name].height)
        # An empty page of this size is a few thousand bytes.
        assert 20_000 < (tmp_path / f"{name}.png").stat().st_size < MOST_BYTES
