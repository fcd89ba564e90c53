"""Which of the preloaded modules a program will import, as far as its text tells.

The text is not compiled: what a model wrote may take a compiler seconds and gigabytes, or crash it, and this runs in
the warden. A name counts wherever it stands as a word of its own outside a comment, so that an ``import`` in a
function, in a branch or in a string for ``exec`` counts too. A guess may be wrong either way: a program whose parent
lacks a module imports it, and one whose parent has too much pays for a heavier fork.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..wire import Frame

_MOST_BYTES = 1 << 18
"""How much is looked at, so that the time is bounded."""


def program_texts(frame: Frame) -> Iterator[bytes]:
    """The source of a job, and the modules that come with it."""
    yield frame.blobs[0]
    for name, content in zip(frame.header["files"], frame.blobs[2:], strict=False):
        if name.endswith(".py"):
            yield content


class Imports:
    """Finds names of modules in programs.

    Args:
        names: Modules by their full names ("numpy", "scipy.stats"); the name of the package decides.
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
        """Those of the modules that any of the texts names, in the order in which they were given."""
        heads, room = [], _MOST_BYTES
        for text in texts:
            heads.append(text[:room])
            room -= len(heads[-1])
            if room <= 0:
                break
        return tuple(
            name for name, word, pattern in self._words if any(word in head and pattern.search(head) for head in heads)
        )
