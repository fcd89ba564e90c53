"""The links and headings of Markdown, as GitHub reads them.

Covered: inline links and images outside code, ATX headings and the anchors that GitHub gives them, HTML anchors.
Not covered: links by reference (``[text][name]``), which no document here uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

_FENCE = re.compile(r"^ {0,3}(?:[-*] |\d+\. )?\s*(`{3,}|~{3,})(.*)$")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_LINK = re.compile(r"(\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines of a text outside of fenced code, each with its number from 0."""
    fence = ""
    for number, line in enumerate(text.split("\n")):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found:
            fence = found[1]
        else:
            yield number, line


def targets(text: str) -> list[str]:
    """Return the targets of the links of a text, in order: relative paths, anchors and addresses."""
    return [found[2] for _, line in outside_code(text) for found in _LINK.finditer(_without_code(line))]


def with_targets(text: str, change: Callable[[str], str]) -> str:
    """Return the text with every target of a link replaced; code does not change."""
    lines = text.split("\n")
    for number, line in outside_code(text):
        hidden = _without_code(line)
        for found in reversed(list(_LINK.finditer(hidden))):
            start, end = found.span(2)
            lines[number] = lines[number][:start] + change(found[2]) + lines[number][end:]
    return "\n".join(lines)


def is_elsewhere(target: str) -> bool:
    """Return whether a target is an address (``https:``, ``mailto:``), not a path or an anchor in the repository."""
    return bool(_ELSEWHERE.match(target))


def anchors(text: str) -> set[str]:
    """Return the anchors of a text: GitHub's anchors of the headings, and anchors in HTML."""
    seen: Counter[str] = Counter()
    found = set()
    for _, line in outside_code(text):
        found.update(_ANCHOR.findall(line))
        if heading := _HEADING.match(line):
            anchor = slug(heading[1])
            found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
    return found


def slug(heading: str) -> str:
    """Return GitHub's anchor of a heading: its text in lower case, without punctuation, with hyphens for spaces."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def broken(document: Path, root: Path) -> list[str]:
    """Return a line with the reason for each broken link of a document.

    Args:
        document: A Markdown file.
        root: The repository; a link may not leave it.
    """
    found, text = [], document.read_text("utf-8")
    for target in targets(text):
        if is_elsewhere(target):
            continue
        path, _, anchor = target.partition("#")
        there = (document.parent / path).resolve() if path else document
        if not there.is_relative_to(root):
            found.append(f"{target} leaves the repository")
        elif not there.exists():
            found.append(f"{target}: there is no such file")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text("utf-8")):
            found.append(f"{target}: there is no such heading")
    return found


def _without_code(line: str) -> str:
    """Return the line with inline code replaced by blanks, since code does not contain links."""
    return _CODE.sub(lambda code: " " * len(code[0]), line)
