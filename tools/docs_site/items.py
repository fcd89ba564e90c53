"""Pages of one thing each: a recipe, part, environment, status, metric, check, option, command or kind of error.

In the repository, and in what ``gallery`` and ``reference`` make, these are sections of long pages. In the site, each
section is a page, and the long page is their index: it keeps its text before and between them, and the anchors of the
sections.

Covered: which sections become pages, their titles, the links to their code and to related pages. Not covered: their
text, which belongs to the long pages, and the target of each link (``stage``).
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import gallery
from markdown_links import outside_code, slug

from rstar2_env.core import errors
from rstar2_env.core.command.error_pages import MODULES
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.env.named import find_env
from rstar2_env.trainers.options.config import GROUPS

_HEADING = re.compile(r"^(#{2,6})\s+(.*?)\s*$")
_ENTRY = re.compile(r"(?:\| |- )\[[^\]]*\]\(#([^)\s]+)\)")
"""A row of a table or an entry of a list that begins with a link to a section."""
_CELL = r"((?:[^|\\]|\\.)*?)"
_OPTION = re.compile(rf"\| `(\w+\.\w+)` \| {_CELL} \| {_CELL} ?\| {_CELL} \|$")
"""A row of a table of options: name, default, values, meaning."""
_SENTENCE = re.compile(r"(.+?\.)(?:\s|$)")
_OURS = "rstar2_env"
_FOLDERS = ("agents", "envs_registry", "trainers")
"""Packages below ``rstar2_env`` that have folders of their own in the repository."""


def _no_files(name: str) -> list[str]:
    return []


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True)
class Kind:
    """The sections of a page that become pages.

    Attributes:
        word: Singular noun for an item, as in the title.
        heading: Pattern of the whole heading of such a section.
        files: Returns the files of the repository that hold the code, by the name in the heading; for kinds whose
            sections do not name them.
        see: Documents about all of the kind, by their path in ``docs/``.
        rows: Whether a page repeats the rows of the long page's tables that lead to its section.
        boost: Factor of a page's score in the search.
        name: Returns the name of an item in its title, given the heading of its section.
        prepare: Returns the text of the long page with a section for each item.
    """

    word: str
    heading: str = r"`[^`]+`"
    files: Callable[[str], Iterable[str]] = _no_files
    see: tuple[str, ...] = ()
    rows: bool = False
    boost: float = 0.5
    name: Callable[[str], str] = _as_it_is
    prepare: Callable[[str], str] = _as_it_is


@dataclass
class Item:
    """A page of one thing.

    Attributes:
        place: Its path in the site.
        kind: Singular noun for the item, such as "recipe".
        heading: The heading of its section, in Markdown.
        anchors: Anchors of its headings on the long page; the first is that of ``heading``.
        lines: The lines of its section below the heading, with headings of the levels of a page.
    """

    place: str
    kind: Kind
    heading: str
    anchors: list[str]
    lines: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Its title."""
        return f"{self.kind.word}: {self.kind.name(self.heading)}"

    @property
    def summary(self) -> str:
        """Its first sentence."""
        text = " ".join(" ".join(self.lines).split())
        found = _SENTENCE.match(text)
        return found[1] if found else text


def _of_module(module: str) -> str:
    """Return the file of a module, or the folder of a package, in the repository."""
    parts = module.removeprefix(f"{_OURS}.").split(".")
    path = "/".join(parts if parts[0] in _FOLDERS else [_OURS, *parts])
    spec = importlib.util.find_spec(module)  # imports its parents alone: some modules take seconds
    return path if spec and spec.submodule_search_locations else f"{path}.py"


def _environment(name: str) -> list[str]:
    maker: Any = find_env(name).creator
    return [_of_module(maker.__module__)]


def _part(family: gallery.Family) -> Callable[[str], list[str]]:
    def files(name: str) -> list[str]:
        return [_of_module(gallery.documented(name, family.parts().get(name))[1].__module__)]

    return files


def _error(name: str) -> list[str]:
    """Return the code whose errors a section of docs/troubleshooting.md explains."""
    section = slug(name)
    named = any(getattr(one, "section", "") == section for one in vars(errors).values() if isinstance(one, type))
    modules = [f"{_OURS}.{module}" for module in MODULES.get(section, ())]
    return [_of_module(module) for module in ([errors.__name__] if named else []) + modules]


def _with_sections(text: str) -> str:
    """Return docs/options.md with a section for each row of its tables of options."""
    lines: list[str] = []
    sections: list[str] = []
    for line in text.split("\n"):
        if found := _OPTION.match(line):
            name, default, values, meaning = found.groups()
            lines.append(line.replace(f"`{name}`", f"[`{name}`](#{slug(name)})", 1))
            sections += [f"### `{name}`", meaning.replace("\\|", "|"), "", "| default | values |", "|---|---|"]
            sections += [f"| {default} | {values} |", ""]
            continue
        if sections:
            lines, sections = [*lines, "", *sections], []
        lines.append(line)
    return "\n".join(lines)


_TRAINERS = {
    "rollouts": "Rollout",
    "rewards": "Reward",
    "selectors": "Selector",
    "advantages": "Advantage",
    "losses": "Loss",
    "aggregations": "Aggregation",
    "corrections": "Correction",
    "samplers": "Sampler",
    "hooks": "Hook",
}
_PARTS_SEE = ("mix-a-recipe.md", "part-interfaces.md")
_NOT_AN_ERROR = ("By symptom", "By message", "Ask for help")
KINDS: dict[str, Kind] = {
    "trainers/recipes.md": Kind("Recipe", see=("training.md", "mix-a-recipe.md")),
    **{f"trainers/{file}.md": Kind(word, see=_PARTS_SEE) for file, word in _TRAINERS.items()},
    **{f"gallery/{one.file}": Kind(one.word, files=_part(one)) for one in gallery.FAMILIES},
    "gallery/statuses.md": Kind("Status", files=lambda name: ["rstar2_env/core/status.py"]),
    "gallery/ends.md": Kind("End", files=lambda name: ["rstar2_env/core/episode.py"]),
    "environments.md": Kind("Environment", r"rstar2/\S+", _environment, ("environment-contract.md", "validation.md")),
    "metrics.md": Kind(
        "Metric",
        files=lambda name: ["rstar2_env/diagnosis/metric_table.py"],
        see=("diagnosis.md", "viewer.md"),
        boost=0.3,
    ),
    "diagnosis-checks.md": Kind(
        "Check",
        files=lambda name: [_of_module(CHECKS.get(name).look.__module__)],
        see=("diagnosis.md",),
        boost=0.6,
        name=lambda heading: f"{CHECKS.get(heading.strip('`')).title} ({heading})",
    ),
    "options.md": Kind(
        "Option",
        r"`\w+\.\w+`",
        lambda name: [_of_module(GROUPS[name.partition(".")[0]].__module__)],
        ("training.md", "mix-a-recipe.md"),
        prepare=_with_sections,
    ),
    "reference/commands.md": Kind(
        "Command",
        files=lambda name: [f"rstar2_env/cli/{name.split()[1].replace('-', '_')}.py"],
        see=("how-to.md",),
        boost=1.0,
    ),
    "troubleshooting.md": Kind("Errors", rf"(?!(?:{'|'.join(_NOT_AN_ERROR)})$).+", _error, rows=True),
}
"""The long pages, by their path in the site."""


def split(place: str, text: str) -> tuple[str, list[Item]]:
    """Split a long page into its index and the pages of its sections.

    Args:
        place: A page of ``KINDS``.
        text: Its Markdown.

    Returns:
        The index, where the row or the entry of each section has its anchors, and the items in their order. Links are
        those of the long page.

    Raises:
        ValueError: Two sections get the same file.
    """
    kind = KINDS[place]
    text = kind.prepare(text)
    headings = {at: _HEADING.match(line) for at, line in outside_code(text)}
    seen: Counter[str] = Counter()
    items: list[Item] = []
    index: list[str] = []
    first, level = 0, 0  # line of the index where the first section was; level of the section of an item, 0 outside
    for at, line in enumerate(text.split("\n")):
        found, anchor = headings.get(at), ""
        if found:
            anchor = slug(found[2])
            seen[anchor] += 1
            anchor += f"-{seen[anchor] - 1}" if seen[anchor] > 1 else ""
            level = 0 if len(found[1]) <= level else level
        if found and not level and re.fullmatch(kind.heading, found[2]):
            level, first = len(found[1]), first or len(index)
            file = re.sub(r"[^\w.-]+", "-", found[2]).strip("-").lower()
            items.append(Item(f"{place.removesuffix('.md')}/{file}.md", kind, found[2], [anchor]))
        elif level:
            items[-1].anchors += [anchor] if found else []
            items[-1].lines.append(line[level - 1 :] if found else line)
        else:
            index.append(line)
    if twice := [one for one, times in Counter(item.place for item in items).items() if times > 1]:
        raise ValueError(f"{place}: several sections would be the page {twice[0]}.")
    if kind.rows:
        for item in items:
            rows = [line for line in index if line.startswith("|") and f"](#{item.anchors[0]})" in line]
            item.lines += ["| message or symptom | what to do |", "|---|---|", *rows] if rows else []
    return _index(index, first, items), items


def _index(lines: list[str], first: int, items: list[Item]) -> str:
    """Return the index with the anchors of all sections, and with a list of them if it does not link to each."""
    entries = {found[1]: at for at, line in reversed(list(enumerate(lines))) if (found := _ENTRY.match(line))}
    if any(item.anchors[0] not in entries for item in items):
        listed = [f"- [{item.heading}](#{item.anchors[0]}): {item.summary}" for item in items]
        lines = [*lines[:first], *listed, "", *lines[first:]]
        entries = {item.anchors[0]: first + at for at, item in enumerate(items)}
    for item in items:
        at = entries[item.anchors[0]]
        ids = "".join(f'<a id="{anchor}"></a>' for anchor in item.anchors)
        lines[at] = lines[at].replace("[", f"{ids}[", 1)
    return "\n".join(lines)


def page(item: Item, origin: PurePosixPath, related: Mapping[str, str]) -> str:
    """Return the Markdown of an item's page, with links relative to the long page.

    Args:
        item: The item.
        origin: The file of the long page in the repository.
        related: Title of each related page, by its target.
    """
    files = dict.fromkeys(item.kind.files(item.heading.replace("`", "")))
    code = [f"[{path}]({os.path.relpath(path, origin.parent)})" for path in files]
    parts = [f"---\nsearch:\n  boost: {item.kind.boost}\n---\n# {item.title}", "\n".join(item.lines).strip()]
    parts += [f"Code: {', '.join(code)}."] if code else []
    parts.append(f"See also: {', '.join(f'[{title}]({target})' for target, title in related.items())}.")
    return "\n\n".join(parts) + "\n"
