"""Find constructions that stop a native reader: ``python tools/plain_words.py [--counts] PATH...``.

Reads prose: docstrings, comments and strings with a space in Python files, Markdown outside code, Markdown cells of
notebooks, and comments of TOML and YAML files. Prints ``file:line: "phrase": suggestion`` for each finding and exits
with 1 if there are any. A line with ``plain: ok`` in a comment is skipped, and so are the lines from ``plain: off`` to
``plain: on``. docs/contributing-style.md explains the style.

Covered: causes that a pattern of ``plain_rules.py`` finds with few false positives. Not covered: whether a sentence is
clear.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from plain_rules import DOCSTRING, RULES, Rule

CODE = "\0"
"""Stands in the masked text for each character that is not prose; no pattern matches across it."""

SUFFIXES = (".py", ".md", ".ipynb", ".toml", ".yaml", ".yml")

MARKER = "plain: ok"


# plain: off (the phrases)
ALLOWED = {
    ("rstar2_env/dialects/prompts.py", "stands there"): "a prompt: its words are part of the environment",
    ("docs/proof.md", "beside"): "a recorded result",
    ("agents/reflect.py", "was said about"): "a prompt: its words are part of the agent",
    ("envs_registry/negotiate.py", "nobody"): "a prompt: its words are part of the environment",
}
"""Phrases that may stay, by the end of the file's path, with the reason."""
# plain: on


@dataclass(frozen=True)
class Finding:
    """A phrase of a file that a rule finds."""

    path: Path
    line: int
    phrase: str
    rule: Rule

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.phrase}": {self.rule.suggestion} ({self.rule.name})'


def findings(path: Path, rules: Iterable[Rule] = RULES) -> list[Finding]:
    """Findings of one file, in the order of its lines."""
    source = path.read_text(encoding="utf-8")
    prose = re.sub(r"plain: off.*?plain: on", _masked, _PROSE[path.suffix](source), flags=re.DOTALL)
    prose = re.sub(rf"{CODE}[ {CODE}]*{CODE}", CODE, prose)
    lines = source.splitlines()
    found = []
    for rule in rules:
        for match in rule.compiled.finditer(prose):
            first = match.start() + len(match[0]) - len(match[0].lstrip(DOCSTRING + " \n"))
            line = prose.count("\n", 0, first)
            phrase = " ".join(match[0].strip(DOCSTRING + " \n").split())
            if not (line < len(lines) and MARKER in lines[line]) and not _allowed(path, phrase):
                found.append(Finding(path, line + 1, phrase, rule))
    return sorted(found, key=lambda finding: finding.line)


def _allowed(path: Path, phrase: str) -> bool:
    return any(path.as_posix().endswith(end) and phrase == allowed for end, allowed in ALLOWED)


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files of known kinds in ``paths``; of a folder those that git does not ignore."""
    for path in paths:
        if path.is_dir():
            command = ["git", "-C", str(path), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
            below = (path / name for name in sorted(listed) if name)
            yield from (each for each in below if each.suffix in SUFFIXES and each.is_file())
        else:
            yield path


def _python(source: str) -> str:
    """Mask everything but comments and strings that hold a space."""
    masked = _blank(source)
    starts = _starts(source)
    docstrings = _docstrings(source)
    inside = False  # an f-string of Python 3.12 and later, whose text has tokens of its own
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        first, last = (starts[row - 1] + column for row, column in (token.start, token.end))
        kind = tokenize.tok_name[token.type]
        inside = (inside or kind == "FSTRING_START") and kind != "FSTRING_END"
        if kind == "COMMENT":
            masked[first:last] = token.string.replace("#", " ")
        elif kind == "FSTRING_MIDDLE":
            masked[first:last] = _without_escapes(source[first:last])
        elif kind == "STRING" and not inside and " " in token.string:
            masked[first:last] = _string(token.string, is_docstring=token.start in docstrings)
    return _without_spans("".join(masked))


def _string(token: str, is_docstring: bool) -> str:
    """The masked text of one string literal: its quotes and prefix are spaces, so that parts of a message join."""
    opening = re.match(r"([A-Za-z]*)(\"\"\"|'''|\"|')", token)
    assert opening is not None
    quotes = len(opening[2])
    body = token[opening.end() : -quotes]
    if "r" not in opening[1].lower():
        body = _without_escapes(body)
    if "f" in opening[1].lower():
        body = re.sub(r"\{[^{}]*\}", lambda match: re.sub(r"[^\n]", CODE, match[0]), body)
    return " " * (opening.end() - 1) + (DOCSTRING if is_docstring else " ") + body + " " * quotes


def _docstrings(source: str) -> set[tuple[int, int]]:
    """Positions of strings that are statements: docstrings of modules, classes, functions and attributes."""
    return {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def _markdown(source: str) -> str:
    """Mask fenced code, comments, addresses of links, and code within lines."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2`* *$", _masked, source, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(
        r"<!--(?! plain: o[nf]).*?-->|\]\([^)\s]*\)|https?://[^\s)>]+|<[^<>!\n][^<>\n]*>",
        _masked,
        text,
        flags=re.DOTALL,
    )
    return _without_spans(text)


def _notebook(source: str) -> str:
    """Mask everything but the sources of Markdown cells."""
    cells = json.loads(source)["cells"]
    lines = source.splitlines()
    wanted = {json.dumps(line) for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"]}
    kept = (line.strip().rstrip(",") for line in lines)
    return _without_spans("\n".join(json.loads(line).rstrip() if line in wanted else CODE for line in kept))


def _comments(source: str) -> str:
    """Mask everything but the comments of a TOML or YAML file."""
    return _without_spans(
        re.sub(r"^([^#\n]*)(#?)", lambda match: CODE * len(match[1]) + " ", source, flags=re.MULTILINE)
    )


_PROSE = {
    ".py": _python,
    ".md": _markdown,
    ".ipynb": _notebook,
    ".toml": _comments,
    ".yaml": _comments,
    ".yml": _comments,
}


def _blank(source: str) -> list[str]:
    return list(re.sub(r"[^\s]", CODE, source))


def _masked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", CODE, match[0])


def _starts(source: str) -> list[int]:
    """Offset of each line."""
    offsets = [0]
    for line in io.StringIO(source):
        offsets.append(offsets[-1] + len(line))
    return offsets


def _without_escapes(text: str) -> str:
    return re.sub(r"\\[nt\"'\\]", "  ", text)


def _without_spans(text: str) -> str:
    """Mask code in backticks, short constants aside."""
    constant = re.compile(r"`+(?:None|True|False|0|0\.0|-1|\"\"|\(\)|\[\])`+")
    span = r"``[^`\n]+``|`[^`\n]+`"
    return re.sub(span, lambda match: match[0] if constant.fullmatch(match[0]) else _inner(match[0]), text)


def _inner(span: str) -> str:
    """A code span whose content is masked, and whose backticks stay."""
    ticks = len(span) - len(span.lstrip("`"))
    return "`" * ticks + CODE * (len(span) - 2 * ticks) + "`" * ticks


def _folder(path: Path) -> str:
    """The first two folders of a path, by which counts are shown."""
    return "/".join(path.parts[:-1][:2]) or path.name


def main(arguments: list[str] | None = None) -> int:
    """Print the findings of the paths; return 1 if there are any, else 0."""
    parser = argparse.ArgumentParser(description="Find constructions that stop a native reader.")
    parser.add_argument("paths", nargs="+", type=Path, help="files, or folders whose files are checked")
    parser.add_argument("--counts", action="store_true", help="print the number of findings by folder instead")
    parser.add_argument("--rules", nargs="*", metavar="NAME", help="apply only these rules")
    options = parser.parse_args(arguments)
    unknown = set(options.rules or ()) - {rule.name for rule in RULES}
    if unknown:
        parser.error(f"unknown rules: {', '.join(sorted(unknown))}; there are: {', '.join(r.name for r in RULES)}")
    rules = [rule for rule in RULES if options.rules is None or rule.name in options.rules]
    found = [finding for path in files(options.paths) for finding in findings(path, rules)]
    if options.counts:
        counts = Counter(_folder(finding.path) for finding in found)
        for folder, count in sorted(counts.items()):
            print(f"{count:5}  {folder}")
        print(f"{len(found):5}  in all")
    else:
        for finding in found:
            print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
