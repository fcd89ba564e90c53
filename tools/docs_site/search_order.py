"""A hook of MkDocs: the search ranks tasks above explanations, and pages of evidence and of parts below them.

A page that sets ``search.boost`` in its front matter keeps it.
"""

from __future__ import annotations

from typing import Any

BOOSTS = {"How-to": 2.0, "Evidence": 0.5, "Parts of a trainer": 0.5, "Contribute": 0.5, "Changelog": 0.25}
"""Factor of the score of a page, by the title of a part of the navigation above it, or of its own entry there."""


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Set the factor of a page; MkDocs calls this before it reads the page."""
    above = [page.title, *(section.title for section in page.ancestors)]
    factor = next((BOOSTS[title] for title in above if title in BOOSTS), 1.0)
    page.meta["search"] = {"boost": factor, **(page.meta.get("search") or {})}
    return markdown
