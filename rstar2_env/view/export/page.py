"""Builds the HTML file of an export: the built page with its script, style and data inlined.

The data is encoded in base64, so that no text from a model can act as HTML. A content security policy allows only the
page's own scripts and style, by digest, and forbids all requests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.built_page import INDEX, not_built
from rstar2_env.view.plain_json import to_json

_SCRIPT = re.compile(r'\s*<script\b[^>]*\bsrc="([^"]+)"[^>]*>\s*</script>')
_STYLE = re.compile(r'<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]+)"[^>]*>')
_ICON = re.compile(r'\s*<link\b(?=[^>]*\brel="icon")[^>]*>')
_FORMATTER = "text.js"
_CHARSET = re.compile(r"<meta\b[^>]*\bcharset[^>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EmptyPage:
    """The built page without data, as written by ``make view``.

    Scripts and style are escaped, so that they cannot close the HTML element that contains them.

    Attributes:
        page: Content of ``index.html``.
        formatter: Script that formats messages; a served page loads it only when it shows a message.
        script: Main script of the page.
        style: Style sheet of the page.
    """

    page: str
    formatter: str
    script: str
    style: str


def empty_page(static: Path) -> EmptyPage:
    """Read the built page without data, from the output of ``make view``.

    Args:
        static: Folder of the built page.

    Raises:
        ConfigurationError: The page has not been built, or its format does not match this version.
    """
    index = static / INDEX
    try:
        page = index.read_text("utf-8")
        script = "".join(_script_text(_inside(static, name)) for name in _SCRIPT.findall(page))
        formatter = _script_text(_inside(static, _FORMATTER))
        style = "".join(_style_text(_inside(static, name)) for name in _STYLE.findall(page))
    except OSError as error:
        raise ConfigurationError(not_built(Path(error.filename))) from error
    if not script or "</body>" not in page or _CHARSET.search(page) is None:
        raise ConfigurationError(
            f"The file {index} is not the web page of the viewer: build it again with `make view`."
        )
    return EmptyPage(page, formatter, script, style)


def page_of(data: Mapping[str, Any], empty: EmptyPage) -> str:
    """Return the HTML of the page, with the data embedded.

    Args:
        data: Data to show, from ``packed.pack``.
        empty: The page without data.
    """
    page, script, style = empty.page, empty.script, empty.style
    scripts = (empty.formatter, script)
    allowed = " ".join(f"'{_digest(one)}'" for one in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    body = f'<script type="application/json" id="embedded">{_packed(data)}</script>\n'
    body += "".join(f"<script>{one}</script>\n" for one in scripts) + "</body>"
    page = _ICON.sub("", _SCRIPT.sub("", page))
    page = _replaced(_STYLE, f"<style>{style}</style>", page)
    page = _replaced(_CHARSET, f'<meta charset="utf-8">\n    {meta}', page)
    before, _, after = page.rpartition("</body>")
    return before + body + after


def _inside(static: Path, name: str) -> str:
    return (static / name).read_text("utf-8")


def _replaced(pattern: re.Pattern[str], by: str, page: str) -> str:
    """Replace the first match and remove all other matches; ``by`` is inserted literally."""
    first = pattern.search(page)
    if first is None:
        return page
    return page[: first.start()] + by + pattern.sub("", page[first.end() :])


def _script_text(text: str) -> str:
    """Escape ``<`` so that a script cannot end its HTML element; strings and regular expressions keep their meaning."""
    return re.sub(r"<(?=/script|!--|script)", r"\\x3c", text, flags=re.IGNORECASE)


def _style_text(text: str) -> str:
    return re.sub(r"</(?=style)", r"<\\/", text, flags=re.IGNORECASE)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def _packed(data: Mapping[str, Any]) -> str:
    return base64.b64encode(gzip.compress(to_json(data).encode("utf-8", "replace"), 9, mtime=0)).decode()
