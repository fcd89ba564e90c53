"""Pages that show files of the repository, to which documents link: plain HTML, apart from MkDocs.

There are hundreds of them. As pages of the theme, they would take most of the time and of the size of the site.

Covered: the text of a file in colours, the list of a folder, light and dark. Not covered: which files are shown
(``stage``).
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

STYLE = "source.css"
"""Name of the file of styles at the top of the site."""
_LANGUAGES = {
    ".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".jsonl": "json",
    ".md": "markdown", ".cff": "yaml", ".sh": "sh",
}  # fmt: skip
_LIGHT, _DARK = "default", "github-dark"
_FORMAT: HtmlFormatter[str] = HtmlFormatter(cssclass="source")
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path} - rstar2-env</title>
<link rel="stylesheet" href="{top}/{style}">
<header><a href="{top}/index.html">rstar2-env</a></header>
<main>
<h1><code>{path}</code></h1>
{shown}
</main>
</html>
"""
_FRAME = """\
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.4; }
body { max-width: 76rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; }
pre { padding: 1rem; overflow-x: auto; font-size: .85rem; }
a { color: LinkText; }
"""


def place(path: str) -> str:
    """Return the path in the site of the page for a path of the repository."""
    return f"source/{path}.html"


def page(root: Path, path: str, names: Sequence[str] | None = None) -> str:
    """Return a page.

    Args:
        root: The repository.
        path: The file or the folder in it.
        names: The files of a folder; ``None`` for a file.
    """
    shown = _text(root / path) if names is None else _list(names)
    top = os.path.relpath(".", PurePosixPath(place(path)).parent)
    return _PAGE.format(path=html.escape(path), top=top, style=STYLE, shown=shown)


def style() -> str:
    """Return the styles of all pages, by what the reader's system prefers."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".source") for name in (_LIGHT, _DARK))
    return f"{_FRAME}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _list(names: Sequence[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li><code>{html.escape(name)}</code></li>" for name in names) + "\n</ul>"


def _text(file: Path) -> str:
    return highlight(file.read_text("utf-8"), _lexer(_LANGUAGES.get(file.suffix, "text")), _FORMAT)


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False)
