"""Keeps text that came from outside fit for tokenizers and files."""

from __future__ import annotations


def encodable(text: str) -> str:
    """The text with each lone surrogate replaced by ``?``: no tokenizer and no file in UTF-8 takes one."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
