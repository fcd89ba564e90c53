"""Documents are laid out so that every link holds inside the site, and lists are read as GitHub reads them."""

import re
from pathlib import PurePosixPath

import pytest
from stage import BrokenLinkError, Stage, _with_room_for_lists


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path / "pages")


def test_a_link_to_a_document_leads_to_its_place_and_one_to_code_to_a_page_that_shows_it(stage, tmp_path):
    text = "[a](../README.md#see) [b](sandbox.md) [c](../trainers/base.py) [d](#here) [e](https://x.y) [f](../examples)"
    text += " [g](tutorials/gsm8k.ipynb)"
    stage.add("trainers/page.md", text, PurePosixPath("docs/page.md"))
    stage.write()
    written = (tmp_path / "pages/trainers/page.md").read_text()
    assert written == (
        "[a](../index.md#see) [b](../sandbox.md) [c](../source/trainers/base.py.html) [d](#here) [e](https://x.y) "
        "[f](../source/examples.html) [g](../tutorials/gsm8k.md)"
    )
    assert {"source/trainers/base.py.html", "source/examples.html", "source.css"} <= {
        path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*")
    }
    assert "first_episode.py" in (tmp_path / "pages/source/examples.html").read_text()


def test_a_link_that_leads_nowhere_is_refused(stage):
    stage.add("page.md", "[a](gone.md)", PurePosixPath("docs/page.md"))
    with pytest.raises(BrokenLinkError, match=r"docs/page\.md links to gone\.md"):
        stage.write()


def test_a_link_may_not_leave_the_repository(stage):
    stage.add("page.md", "[a](../../../../../../../../etc/passwd)", PurePosixPath("docs/page.md"))
    with pytest.raises(BrokenLinkError, match="is not there"):
        stage.write()


def test_the_front_page_alone_has_no_navigation_beside_it(stage, tmp_path, monkeypatch):
    monkeypatch.setattr("source_page.page", lambda *_: "")  # hundreds of files, which take seconds
    stage.documents()
    stage.write()
    hidden = [page for page in stage.pages if "hide:\n  - navigation" in (tmp_path / "pages" / page).read_text()]
    assert hidden == ["index.md"]


def test_a_link_to_a_section_with_a_page_of_its_own_leads_to_that_page(stage, tmp_path):
    long = "# Metrics\n\n| metric |\n|---|\n| [`loss`](#loss) |\n\n"
    long += "### `loss`\n\nSum. [Up](#more), [guide](training.md).\n\n## More\n"
    stage.add("metrics.md", long)
    for guide in ("training.md", "diagnosis.md", "viewer.md", "reference/made.md"):
        stage.add(
            guide, f"# About {guide}\n\n[x](../docs/metrics.md#loss)", PurePosixPath(f"docs/{guide.rpartition('/')[2]}")
        )
    stage.write()

    def written(place):
        return (tmp_path / "pages" / place).read_text()

    assert '| <a id="loss"></a>[`loss`](metrics/loss.md) |' in written("metrics.md")
    assert "Sum." not in written("metrics.md")
    assert written("reference/made.md").endswith("[x](../metrics/loss.md)")
    page = written("metrics/loss.md")
    assert "\n# Metric: `loss`\n\nSum. [Up](../metrics.md#more), [guide](../training.md).\n" in page
    related = ["metrics", "diagnosis", "viewer", "training", "reference/made"]
    assert re.findall(r"\(\.\./([\w/]+)\.md\)", page.partition("See also")[2]) == related
    assert "metrics/loss.md" not in stage.pages


def test_a_list_after_a_paragraph_gets_room_and_nothing_else_changes():
    assert _with_room_for_lists("text\n- a\n  b\n- c") == "text\n\n- a\n  b\n- c"
    same = "# Head\n- a\n- b\n\n1. one\n   more\n2. two\n\n```md\ntext\n- a\n```\n"
    assert _with_room_for_lists(same) == same
