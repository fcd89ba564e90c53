"""The program of the site's pictures draws them of the site that is built."""

from pictures import size_of
from site_pictures import PICTURES, draw


def test_pictures_of_every_kind_are_drawn(browser, tmp_path):
    chosen = ("search", "tutorial", "gallery-narrow", "statuses-dark")
    draw(browser, chosen, tmp_path)
    for name in chosen:
        assert size_of(tmp_path / f"{name}.png") == (PICTURES[name].width, PICTURES[name].height)
        # An empty page of this size is a few thousand bytes.
        assert (tmp_path / f"{name}.png").stat().st_size > 15_000
