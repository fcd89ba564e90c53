"""The sentences that the viewer's page has for selectors, samplers, reasons and numbers, read from its source."""

from __future__ import annotations

import json
import re

from places import ROOT

FILE = ROOT / "rstar2_env" / "view" / "web" / "src" / "pages" / "groups" / "words.ts"
_ENTRY = re.compile(r'^  (\w+): ("(?:[^"\\]|\\.)*"),$')


def page_words(table: str) -> dict[str, str]:
    """A table of the file, by name: ``SELECTORS``, ``SAMPLERS``, ``REASONS``, ``NUMBERS``.

    Raises:
        AssertionError: There is no such table, or it has a line of another form.
    """
    found = re.search(rf"^export const {table}: Record<string, string> = {{\n(.*?)^}};$", FILE.read_text(), re.M | re.S)
    assert found, f"{FILE.name} has no table {table}"
    entries = [(line, _ENTRY.match(line)) for line in found[1].splitlines()]
    assert [line for line, entry in entries if entry is None] == []
    return {entry[1]: json.loads(entry[2]) for _, entry in entries if entry}
