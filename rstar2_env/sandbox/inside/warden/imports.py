"""Guesses from a program's text which preloaded modules it will import.

The text is not compiled, because the warden must not be slowed down: a model's text can cost the compiler seconds and
gigabytes, or crash it. A name counts if it occurs as a separate word outside a comment, so that an ``import`` in a
function, in a branch or in a string for ``exec`` counts too. The guess may be wrong: a program whose parent lacks a
module imports the module itself, and a fork takes longer if the parent has modules that the program does not need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..wire import Frame

_MOST_BYTES = 1 << 18
"""Largest number of bytes of a program's texts that are searched for module names, which limits the time."""


def program_texts(frame: Frame) -> Iterator[bytes]:
    """Yield the beginning of a job's source, and of each Python file that comes with the job."""
    yield frame.blob(0, _MOST_BYTES)
    for place, name in enumerate(frame.header["files"], 2):
        if name.endswith(".py"):
            yield frame.blob(place, _MOST_BYTES)


class Imports:
    """Finds the names of preloaded modules in programs.

    Args:
        names: Full module names ("numpy", "scipy.stats"); programs are searched for the top-level names only.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._words = [
            (
                name,
                word := name.partition(".")[0].encode(),
                re.compile(rb"(?m)^[^#\n]*(?<![\w.])%b\b" % re.escape(word)),
            )
            for name in names
        ]

    def named(self, texts: Iterable[bytes]) -> tuple[str, ...]:
        """Return the modules whose names occur in any of the texts, in the order of ``names``."""
        heads, room = [], _MOST_BYTES
        for text in texts:
            heads.append(text[:room])
            room -= len(heads[-1])
            if room <= 0:
                break
        return tuple(
            name for name, word, pattern in self._words if any(word in head and pattern.search(head) for head in heads)
        )
