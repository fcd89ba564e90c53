"""Every link and anchor of every document leads somewhere; the reader of Markdown reads it as GitHub does."""

import pytest
from markdown_links import anchors, broken, slug, targets, with_targets
from places import ROOT
from stage import _tracked

DOCUMENTS = [path for path in _tracked() if path.endswith(".md")]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_links_and_anchors_of_a_document_lead_somewhere(document):
    assert broken(ROOT / document, ROOT) == []


def test_a_missing_file_heading_and_a_way_out_of_the_repository_are_found(tmp_path):
    (tmp_path / "out.md").write_text("# One\n")
    root = tmp_path / "repository"
    root.mkdir()
    (root / "there.md").write_text("# One\n\n```md\n# Not a heading\n```\n")
    page = root / "page.md"
    page.write_text(
        "[a](there.md#one) [b](gone.md) [c](there.md#not-a-heading) [d](../out.md) [e](#here) [f](https://x.y)"
    )
    assert broken(page, root) == [
        "gone.md: there is no such file",
        "there.md#not-a-heading: there is no such heading",
        "../out.md leaves the repository",
        "#here: there is no such heading",
    ]


def test_code_holds_no_links():
    text = "[a](one.md) `[b](two.md)`\n\n```md\n[c](three.md)\n```\n[d](four.md)"
    assert targets(text) == ["one.md", "four.md"]
    assert with_targets(text, str.upper) == text.replace("one.md", "ONE.MD").replace("four.md", "FOUR.MD")


def test_a_fence_is_closed_by_one_as_long_as_it():
    assert targets("````text\n```\n[a](one.md)\n```\n````\n[b](two.md)") == ["two.md"]


@pytest.mark.parametrize("fences", [("~~~", "~~~"), ("- ```md", "  ```"), ("1. ```md", "   ```")])
def test_a_fence_may_be_of_tildes_or_in_a_list(fences):
    assert targets(f"{fences[0]}\n  [a](one.md)\n{fences[1]}\n[b](two.md)") == ["two.md"]


def test_a_link_may_have_a_title():
    assert targets('![a](one.png "One") [b](two.md)') == ["one.png", "two.md"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("rstar2/Alphametic-v0", "rstar2alphametic-v0"),
        ("`entropy_branching`", "entropy_branching"),
        ("What is promised, and by what", "what-is-promised-and-by-what"),
        ("A - b", "a---b"),
        ("[Link](there.md) und Öl", "link-und-öl"),
    ],
)
def test_an_anchor_is_githubs(heading, anchor):
    assert slug(heading) == anchor


def test_the_second_heading_of_a_name_gets_a_number():
    assert anchors('# One\n\n## One\n\n<a id="two"></a>') == {"one", "one-1", "two"}
