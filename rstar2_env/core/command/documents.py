"""Reads the documentation pages and their sections by topic, from a checkout or an installed wheel.

A topic is a page (``training``, ``trainers/recipes``), a section of a page (``troubleshooting#options``), or, without a
page, a section of the troubleshooting page (``options``). Not covered: the display (``rstar2_env.cli.help``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rstar2_env.core.errors import UnknownNameError

ERRORS_PAGE = "troubleshooting"
_HEADING = re.compile(r"(#{1,6}) +(.+?) *#*$")
_COMMENT = re.compile(r"(?<=[\d%])<!-- [\w.]+ -->|^<!-- (?:table [\w.]+|/table) -->\n{1,2}", re.MULTILINE)
"""Pattern of the HTML comments that mark numbers and tables taken from ``docs/data`` (see ``tools/figures.py``)."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]*)\)")


def pages() -> dict[str, str]:
    """Return the title of each documentation page, by the page's name."""
    folder = _folder()
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    return {name: next(_headings(path.read_text("utf-8")), (0, 0, name))[2] for name, path in found.items()}


def error_sections() -> list[str]:
    """Return the anchors of the troubleshooting page's sections; ``rstar2 help`` needs no page name for them."""
    text = (_folder() / f"{ERRORS_PAGE}.md").read_text("utf-8")
    return [_anchor(title) for _, level, title in _headings(text) if level > 1]


def read_topic(topic: str, *, others: Iterable[str] = ()) -> str:
    """Return the Markdown text of a page or section; links are replaced by the commands that print their targets.

    Args:
        topic: The page or the section.
        others: Further topics to suggest if there is no such page or section, such as the commands.

    Raises:
        UnknownNameError: There is no such page or section; the message suggests the nearest.
    """
    known = pages()
    page, mark, section = topic.strip().removeprefix("docs/").partition("#")
    page = page.removesuffix(".md")
    if not mark and page not in known:
        page, section = ERRORS_PAGE, page
    if page not in known:
        raise UnknownNameError("page", page, known, listed_by="rstar2 help")
    text = (_folder() / f"{page}.md").read_text("utf-8")
    return _with_commands(_section(text, page, section, others) if section else text, page).strip()


def _folder() -> Path:
    """Return the folder of the pages: inside the package in an installation, next to the package in a checkout."""
    package = Path(__file__).resolve().parents[2]
    return next((folder for folder in (package / "docs", package.parent / "docs") if folder.is_dir()), package / "docs")


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the line (from 0), level (1 to 6) and text of each heading; lines in code blocks are not headings."""
    fenced = False
    for number, line in enumerate(text.splitlines()):
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else _HEADING.fullmatch(line)
        if match:
            yield number, len(match[1]), match[2]


def _section(text: str, page: str, section: str, others: Iterable[str]) -> str:
    headings = list(_headings(text))
    by_anchor = {_anchor(title): place for place, (_, _, title) in reversed(list(enumerate(headings)))}
    if _anchor(section) not in by_anchor:
        if page == ERRORS_PAGE:
            raise UnknownNameError(
                "command, page or section",
                section,
                {*others, *pages(), *by_anchor},
                cutoff=0.6,
                listed_by="rstar2 help",
            )
        raise UnknownNameError(f"section of {page}", section, by_anchor, listed_by=f"rstar2 help {page}")
    place = by_anchor[_anchor(section)]
    begin, level, _ = headings[place]
    end = next((line for line, other, _ in headings[place + 1 :] if other <= level), None)
    return "\n".join(text.splitlines()[begin:end])


def _anchor(title: str) -> str:
    """Return the anchor of a heading, as the documentation site generates it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def _with_commands(text: str, page: str) -> str:
    """Replace each link to a page with the link's text and the command that prints the page.

    Comments that match ``_COMMENT`` are removed.
    """

    def replaced(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        path, mark, anchor = target.partition("#")
        if picture:
            return ""
        if "://" in path or (path and not path.endswith(".md")):
            return match[0]
        other = os.path.normpath(Path(page).parent / path.removesuffix(".md")) if path else page
        if other.startswith("../"):
            return label
        return f"{label} (`rstar2 help {other}{mark}{anchor}`)"

    return _LINK.sub(replaced, _COMMENT.sub("", text))
