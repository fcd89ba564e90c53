"""Build the site: ``python tools/docs_site/build.py [--serve]``, which is ``make docs`` and ``make docs-serve``.

First the sources are laid out in ``build/docs-site``, then MkDocs builds ``build/site`` from them, strictly: a warning
fails the build. Pages that the navigation of ``mkdocs.yml`` does not name join the how-to guides, and names of missing
pages are left out.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import address
import gallery
import notebooks
import reference
import yaml
from stage import ROOT, Stage

BUILD = ROOT / "build" / "docs-site"
PAGES = BUILD / "pages"
_REST = "How-to guides"
"""The section that takes in pages that the navigation does not name."""


def lay_out() -> Path:
    """Lay out everything that MkDocs needs, and return its configuration.

    Raises:
        BrokenLinkError: A document links to a missing file.
    """
    os.environ["COLUMNS"] = "120"  # what describes itself may look at the terminal
    shutil.rmtree(BUILD, ignore_errors=True)
    stage = Stage(PAGES)
    stage.documents()
    made = {**gallery.pages(), **reference.pages(), **notebooks.pages()}
    for place, text in made.items():
        stage.add(place, text)
    reference.links(BUILD / "python", ROOT)
    for name in ("site.css", "names.js", "iframe-worker.js"):
        shutil.copyfile(Path(__file__).parent / name, PAGES / name)
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=_Loader)
    config = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(PAGES),
        "site_dir": str(ROOT / "build" / "site"),
        "nav": navigation(settings["nav"], stage.pages),
        "repo_url": address.address(),
        "hooks": [str(Path(__file__).parent / "edit_links.py")],
        "extra": {"origins": stage.origins},
        "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": [str(BUILD / "python")]}}}},
    }
    path = BUILD / "mkdocs.yml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    return path


def navigation(named: list[dict[str, Any]], pages: list[str]) -> list[dict[str, Any]]:
    """Return the navigation: the existing pages that are named, folders with their pages, and then all other pages.

    Args:
        named: The navigation of ``mkdocs.yml``. A value that ends with ``/`` means the pages of that folder.
        pages: Every page of the site that is to be found.
    """
    found: list[dict[str, Any]] = []
    used: set[str] = set()
    for entry in named:
        ((title, value),) = entry.items()
        if isinstance(value, str):
            value = _folder(value, pages) if value.endswith("/") else value
        else:
            value = [one for one in value if next(iter(one.values())) in pages]
        used.update(_pages_of(value))
        if value:
            found.append({title: value})
    rest = [page for page in pages if page not in used]
    section = next(entry[_REST] for entry in found if _REST in entry)
    section += [{_title(page): page} for page in sorted(rest)]
    return found


_GALLERY = ("environments.md", "trainers/recipes.md", "trainers/", "gallery/")
"""Pages of the section Gallery, in this order."""


def _folder(folder: str, pages: list[str]) -> list[dict[str, str]]:
    """Return the pages of a folder as entries: an index first, then the others in the order of their creation."""
    wanted = _GALLERY if folder == "gallery/" else (folder,)
    found = dict.fromkeys(page for place in wanted for page in pages if page == place or _within(page, place))
    return [{_title(page): page} for page in sorted(found, key=lambda page: not page.endswith("/index.md"))]


def _within(page: str, folder: str) -> bool:
    return folder.endswith("/") and page.startswith(folder)


def _pages_of(value: Any) -> set[str]:
    return {value} if isinstance(value, str) else {next(iter(one.values())) for one in value}


def _title(page: str) -> str:
    """Return the heading of a page, without Markdown."""
    found = re.search(r"^# (.+)$", (PAGES / page).read_text("utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else page


class _Loader(yaml.SafeLoader):
    """Reads the navigation of ``mkdocs.yml``; values that name Python objects are read as ``None``."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


def main() -> int:
    """Build the site, or serve it until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", metavar="ADDRESS", nargs="?", const="127.0.0.1:8000", help="serve it, at HOST:PORT")
    address: str | None = parser.parse_args().serve
    config = lay_out()
    what = ["serve", "--dev-addr", address] if address else ["build", "--quiet"]
    kept = {**os.environ, "DISABLE_MKDOCS_2_WARNING": "true", "NO_MKDOCS_2_WARNING": "1"}
    kept["PYTHONPATH"] = str(Path(__file__).parent)  # mkdocs imports formulas.py
    code = subprocess.run([sys.executable, "-m", "mkdocs", *what, "--config-file", str(config)], env=kept).returncode
    if not code and not address:
        print(f"The site is in {(ROOT / 'build' / 'site' / 'index.html').relative_to(ROOT)}.")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
