"""Make external text safe for tokenizers and files."""

from __future__ import annotations


def encodable(text: str) -> str:
    """Replace each lone surrogate by ``?``, since neither tokenizers nor UTF-8 files accept lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
