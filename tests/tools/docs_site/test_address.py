"""The address of the repository is written in one place, and copied to the documents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import address
import pytest
from edit_links import edit_url
from places import ROOT

URL = "https://git.example.org/people/rstar2-env"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with two documents that are cloned from somewhere, and one that is not."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "rstar2-env"\n[project.urls]\n')
    (tmp_path / "CITATION.cff").write_text("title: rstar2-env\nlicense: MIT\n")
    (tmp_path / "README.md").write_text("git clone <this repository> rstar2-env && cd rstar2-env\n")
    (tmp_path / "old.md").write_text("git clone https://other.example.org/rstar2-env rstar2-env\n")
    (tmp_path / "page.md").write_text("git clone https://other.example.org/trl trl\n")
    (tmp_path / "extra.ipynb").write_text(r'"    %pip install --quiet \"../..[train]\""')
    (tmp_path / "plain.ipynb").write_text(r'"    %pip install --quiet \"../..\""')
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def named(checkout: Path, url: str = URL) -> Path:
    """The same, with an address in its one place."""
    with (checkout / "pyproject.toml").open("a") as file:
        file.write(f'Repository = "{url}"\n')
    return checkout


def test_the_address_is_copied_from_its_one_place(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["address.py"])
    assert address.main(named(checkout)) == 0
    assert (checkout / "README.md").read_text() == f"git clone {URL} rstar2-env && cd rstar2-env\n"
    assert (checkout / "old.md").read_text() == f"git clone {URL} rstar2-env\n"
    assert (checkout / "page.md").read_text() == "git clone https://other.example.org/trl trl\n"
    assert (checkout / "extra.ipynb").read_text() == r'"    %pip install --quiet \"rstar2-env[train]\""'
    assert (checkout / "plain.ipynb").read_text() == r'"    %pip install --quiet \"rstar2-env\""'
    assert (checkout / "CITATION.cff").read_text() == f'title: rstar2-env\nrepository-code: "{URL}"\nlicense: MIT\n'
    monkeypatch.setattr(sys, "argv", ["address.py", "--check"])
    assert address.main(checkout) == 0


def test_without_an_address_a_tutorial_installs_its_checkout(checkout: Path) -> None:
    notebook = checkout / "extra.ipynb"
    was = notebook.read_text()
    notebook.write_text(was.replace("../..", "rstar2-env"))
    assert address.copies(checkout)[notebook] == was


def test_the_check_fails_without_an_address_and_with_a_copy_that_differs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["address.py", "--check"])
    assert address.main(checkout) == 1
    assert "pyproject.toml has no address" in capsys.readouterr().out
    assert address.main(named(checkout)) == 1
    assert "README.md has another address" in capsys.readouterr().out


@pytest.mark.parametrize("url", ["git.example.org/a/b", "https://git.example.org", "http://git.example.org/a/b"])
def test_an_address_that_is_not_one_of_a_repository_is_refused(checkout: Path, url: str) -> None:
    with pytest.raises(ValueError, match="expected https://HOST/OWNER/NAME"):
        address.address(named(checkout, url))


def test_the_documents_name_the_address_of_pyproject() -> None:
    assert address.differing() == [], "run `python tools/docs_site/address.py`"
    assert {path.relative_to(ROOT).as_posix() for path in address.copies()} >= {
        "README.md",
        "CITATION.cff",
        "docs/tutorials/faults.ipynb",
    }


def test_no_other_file_names_an_address_of_the_repository() -> None:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours = re.compile(rf"https?://(?!{re.escape(URL[8:])})[\w.-]+(?:/[\w.-]+)+/rstar2[-_]env(?![\w-])")
    copied = re.compile(r"git clone \S+ rstar2-env|^repository-code: .*$", re.MULTILINE)
    others = {ROOT / "pyproject.toml", Path(__file__)}
    files = [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file() and path not in others]
    texts = {path: copied.sub("", path.read_text("utf-8", "replace")) for path in files}
    assert len(texts) > 1000
    assert [path.relative_to(ROOT).as_posix() for path, text in texts.items() if ours.search(text)] == []


def test_a_page_is_edited_in_the_file_from_which_it_is_made() -> None:
    origins = {"index.md": "README.md"}
    assert edit_url("index.md", URL, origins) == f"{URL}/edit/main/README.md"
    assert edit_url("reference/cli.md", URL, origins) is None
    assert edit_url("index.md", "", origins) is None
