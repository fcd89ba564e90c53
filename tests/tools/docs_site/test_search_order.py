"""The search ranks a page by the part of the navigation to which it belongs."""

from types import SimpleNamespace

import build
import pytest
import yaml
from places import ROOT
from search_order import BOOSTS, on_page_markdown


def factor(title, *above, **search):
    page = SimpleNamespace(title=title, ancestors=[SimpleNamespace(title=one) for one in above], meta={**search})
    assert on_page_markdown("text", page=page) == "text"
    return page.meta["search"]["boost"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("Train on a CPU", "Machines", "How-to"), 2.0),
        (("Metrics of training", "Reference"), 1.0),
        (("Losses", "Parts of a trainer", "Reference"), 0.5),
        (("Changelog", "Reference"), 0.25),
        (("Release a version", "Contribute", "Explanation"), 0.5),
        (("Proofs", "Evidence"), 0.5),
    ],
)
def test_the_nearest_part_with_a_factor_decides(path, expected):
    assert factor(*path) == expected


def test_a_page_keeps_its_own_factor():
    assert factor("rstar2_env", "How-to", search={"boost": 0.3}) == 0.3


def test_every_part_with_a_factor_is_in_the_navigation():
    named = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=build._Loader)["nav"]

    def titles(entries):
        for entry in entries:
            ((title, value),) = entry.items()
            yield title
            if isinstance(value, list):
                yield from titles(value)

    assert set(BOOSTS) <= set(titles(named))
