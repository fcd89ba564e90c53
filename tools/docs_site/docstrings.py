"""Parse a Google-style docstring into its summary, its text, and the meaning of each option.

Covered: classes, whose options may be described in a base, and functions. Not covered: where the options come from
(``slots``, ``config``).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SECTION = re.compile(r"^(Args|Arguments|Attributes|Raises|Returns|Yields):$", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Words:
    """A docstring.

    Attributes:
        summary: Its first line.
        text: The text after the first line, up to the first section.
        meanings: The text on each name under ``Args:`` or ``Attributes:``, in one line.
    """

    summary: str
    text: str
    meanings: Mapping[str, str]


def words_of(documented: Any) -> Words:
    """Read the docstring of a class, a function or a module; a class has the meanings of its bases too."""
    own = _read(inspect.getdoc(documented) or "")
    bases = documented.__mro__[:0:-1] if inspect.isclass(documented) else ()
    meanings = {
        name: meaning for base in bases if base.__doc__ for name, meaning in _read(base.__doc__).meanings.items()
    }
    return Words(own.summary, own.text, {**meanings, **own.meanings})


def _read(docstring: str) -> Words:
    text, *sections = _SECTION.split(inspect.cleandoc(docstring))
    meanings: dict[str, str] = {}
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title in ("Args", "Arguments", "Attributes"):
            entries = _ENTRY.split(body)
            meanings |= {name: " ".join(said.split()) for name, said in zip(entries[1::2], entries[2::2], strict=True)}
    summary, _, rest = text.partition("\n")
    return Words(summary, rest.strip("\n"), meanings)
