"""The page's own unit tests pass, which are in TypeScript beside it; `make lint` checks the rules of its sources."""

import gzip
import shutil
import subprocess

import pytest
from places import ROOT

from rstar2_env.view.built_page import FOLDER

WEB = ROOT / "rstar2_env" / "view" / "web"
MOST_BYTES = 110_000
"""Budget of the compressed page."""
LATER = {"text.js": 85_000}
"""Budgets of compressed files that the page loads when they are needed."""


def test_the_pages_own_tests_pass():
    if not shutil.which("npm") or not (WEB / "node_modules").is_dir():
        pytest.skip("what the page is built of is not there: run `make view`, which needs Node")
    done = subprocess.run(["npm", "run", "test"], cwd=WEB, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_small_enough_for_a_slow_network():
    if not (FOLDER / "index.html").is_file():
        pytest.skip("the page is not built (make view)")
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in FOLDER.rglob("*") if path.is_file()}
    assert {name: size for name, size in LATER.items() if sizes.pop(name) > size} == {}
    assert sum(sizes.values()) < MOST_BYTES, f"the compressed page is too large: {sizes}"


def test_no_lock_file_names_a_registry():
    lock = (WEB / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "registry" not in lock


def test_no_source_puts_text_into_the_page_as_html():
    sources = [path for path in (WEB / "src").rglob("*") if path.suffix in (".ts", ".tsx")]
    assert len(sources) > 30
    for path in sources:
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "dangerouslySet", "eval("):
            assert word not in path.read_text(), f"{path.relative_to(ROOT)} uses {word}"


def test_no_source_file_of_the_page_is_longer_than_is_allowed():
    files = [path for folder in ("src", "tests") for path in (WEB / folder).rglob("*") if path.is_file()]
    assert [path.name for path in files if len(path.read_text().splitlines()) > 400] == []
