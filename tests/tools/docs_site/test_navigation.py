"""The site has six parts, and each page of it is in one of them, once."""

import build
import gallery
import pytest
import reference
import yaml
from places import DOCS, ROOT
from stage import PLACES

PARTS = ["Start", "Tutorials", "How-to", "Reference", "Explanation", "Evidence"]


@pytest.fixture
def titled(tmp_path, monkeypatch):
    """Writes pages with their names as headings."""
    monkeypatch.setattr(build, "PAGES", tmp_path)

    def write(*pages):
        for page in pages:
            (tmp_path / page).parent.mkdir(exist_ok=True)
            (tmp_path / page).write_text(f"# `{page}`\n")
        return list(pages)

    return write


def test_a_folder_is_its_pages_with_its_index_first(titled):
    pages = titled("index.md", "tutorials/b.md", "tutorials/a.md", "tutorials/index.md")
    named = [{"Start": [{"Home": "index.md"}]}, {"Tutorials": "tutorials/"}]
    assert build.navigation(named, pages) == [
        {"Start": [{"Home": "index.md"}]},
        {"Tutorials": [{page: page} for page in ("tutorials/index.md", "tutorials/b.md", "tutorials/a.md")]},
    ]


ONE, TWO = {"One": "one.md"}, {"Two": "two.md"}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([{"Start": [ONE]}], "missing from the navigation: two.md"),
        ([{"Start": [ONE, TWO]}, {"End": [{"Below": [ONE]}]}], "named more than once: one.md"),
        ([{"Start": [ONE, TWO, {"Gone": "gone.md"}]}], "not there: gone.md"),
        ([{"Start": [ONE, TWO]}, {"Empty": "empty/"}], "not there: empty/"),
    ],
)
def test_a_page_that_is_not_named_once_is_refused(titled, named, message):
    with pytest.raises(build.NavigationError, match=message):
        build.navigation(named, titled("one.md", "two.md"))


def test_the_site_has_six_parts_and_each_page_is_in_one(titled):
    documents = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    notebooks = [path.relative_to(DOCS).with_suffix(".md").as_posix() for path in DOCS.rglob("*.ipynb")]
    pages = titled(*PLACES.values(), *documents, *notebooks, *gallery.pages(), *reference.pages())
    named = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=build._Loader)["nav"]
    assert [next(iter(entry)) for entry in build.navigation(named, pages)] == PARTS
