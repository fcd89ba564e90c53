"""The sentences of the viewer for selectors, samplers, reasons and numbers."""

from __future__ import annotations

from collections.abc import Mapping

from rstar2_env.view.words import words


def page_words(table: str) -> Mapping[str, str]:
    """A table of the viewer's words: ``SELECTORS``, ``SAMPLERS``, ``REASONS``, ``NUMBERS``."""
    return words()[table.lower()]
