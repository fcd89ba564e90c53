"""Claims about the documents that ``rstar2 help`` prints: every topic that an error names exists."""

from __future__ import annotations

import re

import pytest
from cli_runner import run

from rstar2_env.core import errors
from rstar2_env.core.command import documents
from rstar2_env.core.command.documents import pages, read_topic
from rstar2_env.core.command.error_pages import MODULES
from rstar2_env.core.errors import UnknownNameError


def named_sections() -> set[str]:
    """Every section that an exception or a module of the package names."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.Rstar2Error)]
    return {kind.section for kind in kinds if kind.section} | MODULES.keys()


@pytest.mark.parametrize("section", sorted(named_sections()))
def test_the_section_of_every_error_is_printed(section):
    text = read_topic(f"troubleshooting#{section}")
    assert text.startswith("## ")
    assert text.count("\n## ") == 0
    assert read_topic(section) == text or section in pages()


def test_a_page_is_printed_whole_and_a_section_ends_at_the_next_heading_of_its_level(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_folder", lambda: tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "page.md").write_text(
        "# A page\n\n## First one\ntext\n### Below\n```sh\n# no heading\n```\n## `second`, again\nend\n"
    )
    (tmp_path / "sub" / "other.md").write_text("# Other\n[back](../page.md#below), [here](#x), [far](https://x.y)\n")
    assert pages() == {"page": "A page", "sub/other": "Other"}
    assert read_topic("page").startswith("# A page")
    assert read_topic("page#first-one") == "## First one\ntext\n### Below\n```sh\n# no heading\n```"
    assert read_topic("docs/page.md#second-again") == "## `second`, again\nend"
    with pytest.raises(UnknownNameError, match="Did you mean 'first-one'"):
        read_topic("page#frist-one")
    with pytest.raises(UnknownNameError, match="page named 'pgae'"):
        read_topic("pgae#x")


def test_a_link_becomes_the_command_that_prints_its_target(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_folder", lambda: tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text(
        "[x](b.md#y) [t](../top.md) [own](#z) [out](../../README.md) [w](https://w.w)"
    )
    assert read_topic("sub/a") == (
        "x (`rstar2 help sub/b#y`) t (`rstar2 help top`) own (`rstar2 help sub/a#z`) out [w](https://w.w)"
    )


def test_the_file_of_a_figure_is_not_printed(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(
        "# Page\nIt is .46<!-- run.right --> or 46 %<!-- run.right -->, not <!-- this -->.\n"
    )
    monkeypatch.setattr(documents, "_folder", lambda: tmp_path)
    assert read_topic("page") == "# Page\nIt is .46 or 46 %, not <!-- this -->."
    (tmp_path / "page.md").write_text("# Page\n<!-- table run.all -->\n\n| a |\n|---|\n\n<!-- /table -->\n\nEnd.\n")
    assert read_topic("page") == "# Page\n| a |\n|---|\n\nEnd."


def test_the_line_below_an_error_is_a_command_that_works():
    refused = run("list", "parts", "selectr")
    (line,) = (line for line in refused.stderr.splitlines() if line.startswith("docs: "))
    match = re.fullmatch(r"docs: rstar2 (help troubleshooting#[a-z-]+)", line)
    assert match
    shown = run(*match[1].split())
    assert shown.exit_code == 0
    assert shown.stdout.startswith("## Unknown name")


def test_help_prints_the_help_of_a_command_and_lists_the_topics():
    assert run("help", "list", "envs").output == run("list", "envs", "--help").output
    assert "Usage: rstar2 eval" in run("help", "eval").output
    listed = run("help").output
    assert "troubleshooting" in listed
    assert "validate" in listed
    assert run("help", "problems.md").output.startswith("# Train on your own problems")
    assert run("help", "nothing-like-it").exit_code == 2
