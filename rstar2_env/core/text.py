"""Makes text from outside safe for tokenizers and files."""

from __future__ import annotations


def encodable(text: str) -> str:
    """The text with each lone surrogate replaced by ``?``: neither tokenizers nor UTF-8 files accept one."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
