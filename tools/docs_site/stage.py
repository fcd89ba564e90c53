"""Lay out the sources of the site: the documents of the repository, with links that hold inside the site.

The documents are written to be read in the repository, where a link may lead to any file. Here every document gets its
place in the site, and a source file that one of them links to gets a page that shows it. So the site is whole without
the repository, and without a network.

Covered: copying, links, source pages, and lists as GitHub reads them. Not covered: the pages made from code
(``gallery``, ``api``, ``commands``), and what is in the navigation (``navigation``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

from markdown_links import is_elsewhere, outside_code, with_targets

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
_LANGUAGES = {
    ".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".jsonl": "json",
    ".md": "markdown", ".cff": "yaml", ".sh": "sh",
}  # fmt: skip
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s")
_FRONT = "---\nhide:\n  - navigation\n---\n"
"""Give the front page the whole width: its navigation would have one entry, the page itself."""
_HIDDEN = "---\nsearch:\n  exclude: true\nhide:\n  - navigation\n  - toc\n---\n"


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
        self.pages: list[str] = []
        """The documents that were laid out, by their place in the site."""
        self.origins: dict[str, str] = {}
        """The file of the repository from which a document was laid out, by its place in the site."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def documents(self) -> None:
        """Lay out every document, its pictures and the source files that it links to.

        Raises:
            BrokenLinkError: A link leads nowhere.
        """
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
        """Write a page.

        Args:
            place: Its path in the site.
            text: Its Markdown.
            origin: The file in the repository from which its relative links lead; without one they are left alone.

        Raises:
            BrokenLinkError: A link leads nowhere.
        """
        if origin is not None:
            self.origins[place] = str(origin)
            text = with_targets(text, lambda target: self._target(target, origin, place))
        page = self._folder / place
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(_with_room_for_lists(text), "utf-8")
        self.pages.append(place)

    def _target(self, target: str, origin: PurePosixPath, place: str) -> str:
        """Return the target in the site for a link of a document."""
        path, hash_, anchor = target.partition("#")
        if is_elsewhere(target) or not path:
            return target
        there = os.path.normpath(origin.parent / path)
        if there in PLACES:
            found = PLACES[there]
        elif there.startswith("docs/") and (ROOT / there).is_file():
            found = there.removeprefix("docs/")
            if found.endswith(".ipynb"):  # a notebook is a page in the site
                found = f"{found.removesuffix('.ipynb')}.md"
        elif (ROOT / there).exists() and not there.startswith(".."):
            found = self._source(there)
        else:
            raise BrokenLinkError(f"{origin} links to {target}, which is not there")
        return os.path.relpath(found, PurePosixPath(place).parent) + hash_ + anchor

    def _source(self, path: str) -> str:
        """Return the path of the page that shows a file or lists a folder of the repository; create it if necessary."""
        place = f"source/{path}.md"
        if path not in self._shown:
            self._shown.add(path)
            page = self._folder / place
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f"{_HIDDEN}# `{path}`\n\n{_listing(path)}\n", "utf-8")
        return place


def _listing(path: str) -> str:
    if (ROOT / path).is_dir():
        return "\n".join(f"- `{name}`" for name in sorted(_tracked(path)))
    text = (ROOT / path).read_text("utf-8").rstrip()
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{_LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n{fence}"


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
