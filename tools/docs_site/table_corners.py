"""A hook of MkDocs: an empty cell of a table's head is an ordinary cell, because a heading without text names nothing.

A screen reader announces the heading of a column with each of its cells. Covered: every table of Markdown, such as one
whose first column holds the names of its rows. Not covered: the text of the other headings.
"""

from __future__ import annotations

import re
from typing import Any

_EMPTY = re.compile(r"<th(\s[^>]*)?>\s*</th>")


def on_page_content(html: str, **_: Any) -> str:
    """Return the HTML of a page with ``<td>`` for each ``<th>`` without text.

    Args:
        html: The HTML of the page's content.
        **_: Further arguments of MkDocs.
    """
    return _EMPTY.sub(lambda found: f"<td{found[1] or ''}></td>", html)
