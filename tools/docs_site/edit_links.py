"""A hook of MkDocs: "Edit this page" leads to the file of the repository from which the page is made.

Pages made from code have no such file, and no link. Without the address of the repository, no page has a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def on_page_context(context: dict[str, Any], *, page: Any, config: Any, **_: object) -> dict[str, Any]:
    """Set the link of a page; MkDocs calls this before it writes the page."""
    page.edit_url = edit_url(page.file.src_uri, config.repo_url, config.extra.get("origins", {}))
    return context


def edit_url(place: str, repository: str | None, origins: Mapping[str, str]) -> str | None:
    """Return the address at which a page of the site is edited.

    Args:
        place: The page, by its place in the site.
        repository: Address of the repository; empty if it is not known.
        origins: The file of the repository of each page that is made from one.
    """
    return f"{repository}/edit/main/{origins[place]}" if repository and place in origins else None
