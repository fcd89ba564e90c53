"""The site has six parts; each page of it is in one of them, once, and has names that no other page has."""

import re
from collections import defaultdict

import build
import gallery
import items
import notebooks
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


def test_every_page_of_the_start_has_a_small_picture():
    (start,) = [
        entry
        for entry in yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=build._Loader)["nav"]
        if "Start" in entry
    ]
    outside = {place: ROOT / path for path, place in PLACES.items()}
    pages = [outside.get(page, DOCS / page) for page in build.pages_of(start)]
    assert len(pages) == 3
    for page in pages:
        pictures = re.findall(r"!\[[^\]]+\]\((\S+\.(?:png|svg))\)", page.read_text("utf-8"))
        sizes = [(page.parent / picture).stat().st_size for picture in pictures]
        assert sizes, page.name
        assert max(sizes) < 300_000, page.name


def named_pages(entry):
    """Yield the title and the page of each entry of a navigation that is a page."""
    ((title, value),) = entry.items()
    if isinstance(value, str):
        yield title, value
    else:
        for one in value:
            yield from named_pages(one)


def names_of_several(titles):
    """The names that several pages have, with these pages; case and mark-up do not distinguish names.

    Args:
        titles: Pairs of a title, as a heading or as an entry of the navigation, and the page that has it.
    """
    found = defaultdict(set)
    for title, page in titles:
        found[title.replace("`", "").strip().casefold()].add(page)
    return {name: sorted(pages) for name, pages in found.items() if len(pages) > 1}


def test_every_page_has_a_title_and_an_entry_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "PAGES", tmp_path)
    texts = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    texts |= {place: (ROOT / path).read_text("utf-8") for path, place in PLACES.items()}
    texts |= {**gallery.pages(), **reference.pages(), **notebooks.pages()}
    for place, text in texts.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text, "utf-8")
    nav = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=build._Loader)["nav"]
    entries = [named for entry in build.navigation(nav, list(texts)) for named in named_pages(entry)]
    headings = {place: re.search(r"^# (.+)$", text, re.MULTILINE) for place, text in texts.items()}
    assert [place for place, found in headings.items() if not found] == []
    titles = [(found[1], place) for place, found in headings.items()]
    titles += [(one.title, one.place) for place in items.KINDS for one in items.split(place, texts[place])[1]]
    assert len(titles) > 600
    assert names_of_several([*titles, *entries]) == {}


def test_a_name_of_two_pages_is_found():
    titles = [("`Engines`", "gallery/engines.md"), ("The scheduler", "scheduler.md"), ("engines", "engines.md")]
    assert names_of_several([*titles, ("The scheduler", "scheduler.md")]) == {
        "engines": ["engines.md", "gallery/engines.md"]
    }
