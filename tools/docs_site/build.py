"""Build the site: ``python tools/docs_site/build.py [--serve]``, which is ``make docs`` and ``make docs-serve``.

First the sources are laid out in ``build/docs-site``, then MkDocs builds ``build/site`` from them, strictly: a warning
fails the build, and so does a page that the navigation of ``mkdocs.yml`` does not name exactly once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import address
import gallery
import notebooks
import reference
import search_words
import yaml
from stage import ROOT, Stage

BUILD = ROOT / "build" / "docs-site"
PAGES = BUILD / "pages"
HOOKS = [Path(__file__).parent / name for name in ("edit_links.py", "search_order.py", "table_corners.py")]
"""Programs that MkDocs calls for each page."""


class NavigationError(Exception):
    """The navigation does not name every page exactly once."""


def lay_out() -> Path:
    """Lay out everything that MkDocs needs, and return its configuration.

    Raises:
        BrokenLinkError: A document links to a missing file.
        CalledProcessError: The page of runs cannot be written.
        NavigationError: The navigation does not name every page exactly once.
    """
    os.environ["COLUMNS"] = "120"  # what describes itself may look at the terminal
    shutil.rmtree(BUILD, ignore_errors=True)
    stage = Stage(PAGES)
    demo = demo_run(stage.add_file("demo-run.html"))
    stage.documents()
    made = {**gallery.pages(), **reference.pages(), **notebooks.pages()}
    for place, text in made.items():
        stage.add(place, text)
    stage.write()
    reference.links(BUILD / "python", ROOT)
    for name in ("site.css", "names.js", "iframe-worker.js"):
        shutil.copyfile(Path(__file__).parent / name, PAGES / name)
    (PAGES / "search-words.js").write_text(search_words.script(), "utf-8")
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=_Loader)
    config = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(PAGES),
        "site_dir": str(ROOT / "build" / "site"),
        "nav": navigation(settings["nav"], stage.pages),
        "repo_url": address.address(),
        "hooks": list(map(str, HOOKS)),
        "extra": {"origins": stage.origins},
        "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": [str(BUILD / "python")]}}}},
    }
    if demo and (code := demo.wait()):
        raise subprocess.CalledProcessError(code, demo.args)
    path = BUILD / "mkdocs.yml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    return path


def demo_run(out: Path) -> subprocess.Popen[bytes] | None:
    """Begin to write the page of runs to which the tutorials link, and return the process that writes it.

    If the viewer's page is not built, a sentence is written instead, and printed.

    Args:
        out: The file.
    """
    if not (ROOT / "rstar2_env" / "view" / "static" / "index.html").is_file():
        text = "The page of rstar2 view is not built: make view"
        out.write_text(f"<!doctype html><title>Not built</title>{text}\n", "utf-8")
        print(f"The tutorials' page of runs is empty. {text}")
        return None
    return subprocess.Popen([sys.executable, str(Path(__file__).parent / "demo_page.py"), "write", str(out)])


def navigation(named: list[dict[str, Any]], pages: list[str]) -> list[dict[str, Any]]:
    """Return the navigation, with the pages of each folder that it names.

    Args:
        named: The navigation of ``mkdocs.yml``. A value is a page, a folder that ends with ``/``, or a list of entries.
        pages: Every page of the site that readers should find.

    Raises:
        NavigationError: A page is in no part or in several, or a named page or folder does not exist.
    """
    found = [_entry(entry, pages) for entry in named]
    times = Counter(page for entry in found for page in pages_of(entry))
    faults = {
        "missing from the navigation": [page for page in pages if page not in times],
        "named more than once": [page for page, count in times.items() if count > 1],
        "named, but not there": [page for page in times if page not in pages],
    }
    told = [f"{what}: {', '.join(sorted(them))}" for what, them in faults.items() if them]
    if told:
        raise NavigationError(f"mkdocs.yml, nav: {'; '.join(told)}. Name each page of the site once.")
    return found


def _entry(entry: dict[str, Any], pages: list[str]) -> dict[str, Any]:
    ((title, value),) = entry.items()
    if isinstance(value, list):
        return {title: [_entry(one, pages) for one in value]}
    return {title: _folder(value, pages) or value} if value.endswith("/") else {title: value}


def _folder(folder: str, pages: list[str]) -> list[dict[str, str]]:
    """Return the pages of a folder as entries: an index first, then the others in the order of their creation."""
    found = [page for page in pages if page.startswith(folder)]
    return [{_title(page): page} for page in sorted(found, key=lambda page: not page.endswith("/index.md"))]


def pages_of(entry: dict[str, Any]) -> Iterator[str]:
    """Yield the pages of an entry of a navigation."""
    (value,) = entry.values()
    if isinstance(value, str):
        yield value
    else:
        for one in value:
            yield from pages_of(one)


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
    # mkdocs imports formulas.py, and formulas.py the package of this folder.
    kept["PYTHONPATH"] = os.pathsep.join(map(str, (Path(__file__).parent, ROOT)))
    code = subprocess.run([sys.executable, "-m", "mkdocs", *what, "--config-file", str(config)], env=kept).returncode
    if not code and not address:
        print(f"The site is in {(ROOT / 'build' / 'site' / 'index.html').relative_to(ROOT)}.")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
