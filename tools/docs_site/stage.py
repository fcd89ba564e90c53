"""Lay out the sources of the site: the documents of the repository, with links that hold inside the site.

The documents are written to be read in the repository, where a link may lead to any file. Here every document gets its
place in the site, and a source file that one of them links to gets a page that shows it. So the site is whole without
the repository, and without a network.

Covered: copying, links, source pages, pages of single things (``items``), and lists as GitHub reads them. Not covered:
the pages made from code (``gallery``, ``reference``), and the navigation (``build``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import source_page
from items import KINDS, Item, page, split
from markdown_links import is_elsewhere, outside_code, targets, with_targets

ROOT = Path(__file__).resolve().parents[2]

PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "configs/README.md": "configs.md",
    "examples/README.md": "examples.md",
}
"""Documents outside ``docs/`` that are pages of the site, and where."""

_COPIED = {".png", ".svg", ".css", ".ico", ".json"}
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s")
_FRONT = "---\nhide:\n  - navigation\n---\n"
"""Give the front page the whole width: its navigation would have one entry, the page itself."""


class BrokenLinkError(Exception):
    """A document links to a missing file."""


class Stage:
    """Builds the folder of the site's sources.

    Args:
        folder: Where the sources go. What is there is replaced.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: set[str] = set()
        self._texts: dict[str, str] = {}
        self._files: set[str] = set()
        self._moved: dict[tuple[str, str], tuple[str, str]] = {}
        self.pages: list[str] = []
        """The pages for the navigation, by their place in the site; the pages of items are found from their index."""
        self.origins: dict[str, str] = {}
        """The file of the repository from which a document was laid out, by its place in the site."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def documents(self) -> None:
        """Add every document, and lay out its pictures."""
        tracked = _tracked()
        found = {path: place for path, place in PLACES.items() if path in tracked}
        found |= {path: path.removeprefix("docs/") for path in tracked if path.startswith("docs/")}
        for path, place in found.items():
            if path.endswith(".md"):
                text = (ROOT / path).read_text("utf-8")
                self.add(place, _FRONT + text if place == "index.md" else text, PurePosixPath(path))
            elif Path(path).suffix in _COPIED:
                target = self._folder / place
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, target)

    def add(self, place: str, text: str, origin: PurePosixPath | None = None) -> None:
        """Add a page, which ``write`` writes.

        Args:
            place: Its path in the site.
            text: Its Markdown.
            origin: The file in the repository from which its relative links lead; without one, the file in ``docs/``
                with this path.
        """
        self._texts[place] = text
        self.pages.append(place)
        if origin is not None:
            self.origins[place] = str(origin)

    def add_file(self, place: str) -> Path:
        """Add a file that is not a page, to which pages may link, and return the path at which it must be written.

        Args:
            place: Its path in the site.
        """
        self._files.add(place)
        return self._folder / place

    def write(self) -> None:
        """Write all pages, and those of the sections that have pages of their own (``items``).

        Raises:
            BrokenLinkError: A link leads nowhere.
        """
        found: dict[str, list[Item]] = {}
        for place in self._texts.keys() & KINDS.keys():
            self._texts[place], found[place] = split(place, self._texts[place])
            for item in found[place]:
                self._moved |= {(place, anchor): (item.place, anchor) for anchor in item.anchors[1:]}
                self._moved[place, item.anchors[0]] = (item.place, "")
        (self._folder / source_page.STYLE).write_text(source_page.style(), "utf-8")
        mentions = self._mentions()
        for place, text in self._texts.items():
            self._write(place, text, place)
            for item in found.get(place, []):
                related = dict.fromkeys([place, *item.kind.see, *mentions.get(item.place, [])])
                origin = self._origin(place)
                links = {os.path.relpath(f"docs/{one}", origin.parent): self._title(one) for one in related}
                self._write(item.place, page(item, origin, links), place)
                if place in self.origins:
                    self.origins[item.place] = self.origins[place]

    def _origin(self, place: str) -> PurePosixPath:
        return PurePosixPath(self.origins.get(place, f"docs/{place}"))

    def _mentions(self) -> dict[str, list[str]]:
        """Return the guides that link to each page of an item, by the page's path in the site."""
        found: dict[str, list[str]] = {}
        for place in self.origins.keys() - KINDS.keys():
            for target in dict.fromkeys(targets(self._texts[place])):
                if not is_elsewhere(target) and not place.startswith(("project/", "trainers/")):
                    found.setdefault(self._found(target, place)[0], []).append(place)
        return {place: sorted(set(guides), key=self.pages.index) for place, guides in found.items()}

    def _title(self, place: str) -> str:
        found = re.search(r"^# (.+)$", self._texts[place], re.MULTILINE)
        return found[1] if found else place

    def _write(self, place: str, text: str, source: str) -> None:
        """Write a page whose text is, or was a part of, the page ``source``."""

        def changed(target: str) -> str:
            if is_elsewhere(target):
                return target
            there, anchor = self._found(target, source)
            path = "" if there == place and anchor else os.path.relpath(there, PurePosixPath(place).parent)
            return path + (f"#{anchor}" if anchor else "")

        page = self._folder / place
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(_with_room_for_lists(with_targets(text, changed)), "utf-8")

    def _found(self, target: str, source: str) -> tuple[str, str]:
        """Return the path and the anchor in the site to which a link of a page leads."""
        path, _, anchor = target.partition("#")
        found = self._place(path, self._origin(source)) if path else source
        return self._moved.get((found, anchor), (found, anchor))

    def _place(self, path: str, origin: PurePosixPath) -> str:
        """Return the path in the site to which a path in a document leads."""
        there = os.path.normpath(origin.parent / path)
        if there in PLACES:
            return PLACES[there]
        if there.startswith("docs/"):
            found = re.sub(r"\.ipynb$", ".md", there.removeprefix("docs/"))  # a notebook is a page in the site
            if found in self._texts or found in self._files or (ROOT / there).is_file():
                return found
        if (ROOT / there).exists() and not there.startswith(".."):
            return self._source(there)
        raise BrokenLinkError(f"{origin} links to {path}, which is not there")

    def _source(self, path: str) -> str:
        """Return the path of the page that shows a file or lists a folder of the repository; create it if necessary."""
        place = source_page.place(path)
        if path not in self._shown:
            self._shown.add(path)
            page = self._folder / place
            page.parent.mkdir(parents=True, exist_ok=True)
            listed = sorted(_tracked(path)) if (ROOT / path).is_dir() else None
            page.write_text(source_page.page(ROOT, path, listed), "utf-8")
        return place


def _tracked(*paths: str) -> list[str]:
    """Return the files of the repository, including new files, without files that git ignores."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in dict.fromkeys(listed.stdout.splitlines()) if (ROOT / path).exists()]


def _with_room_for_lists(text: str) -> str:
    """Insert an empty line before a list that directly follows a paragraph, which Python-Markdown requires."""
    lines = text.split("\n")
    starts = []
    in_list = False
    previous = ""
    for number, line in outside_code(text):
        if _ITEM.match(line):
            if previous.strip() and not in_list and not previous.startswith("#") and lines[number - 1] == previous:
                starts.append(number)
            in_list = True
        elif not line.strip() or line.startswith("#"):
            in_list = False
        previous = line
    for number in reversed(starts):
        lines.insert(number, "")
    return "\n".join(lines)
