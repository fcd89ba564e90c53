"""The program of the pictures draws them, and those in the documents are the ones that it draws."""

from __future__ import annotations

import struct

import pytest
from places import DOCS
from view_pictures import MOST_BYTES, OUT, PICTURES, draw


def size_of(file):
    """Width and height of a PNG."""
    begin = file.read_bytes()[:24]
    assert begin[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", begin[16:24])


def test_the_pictures_of_the_documents_are_those_that_are_drawn_and_small():
    files = {file.stem: file for file in OUT.iterdir()}
    assert set(files) == set(PICTURES)
    for name, picture in PICTURES.items():
        assert size_of(files[name]) == (picture.width, picture.height), name
        assert files[name].stat().st_size < MOST_BYTES, name
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
