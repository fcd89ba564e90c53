"""README as a package index shows it, as the long description of the distributions (``setup.py``).

A package index has no other file of the repository. Links to files therefore become absolute, to the files of this
version below the address of the repository (``address.py``). Before the address is known, a link becomes its text, and
pictures are left out. Comments that name files of results are removed.

Covered: inline links and pictures outside code. Not covered: other documents, which a package index does not show.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from address import ROOT, address
from markdown_links import is_elsewhere, with_targets

_PICTURES = {".png", ".svg"}
_VERSION = re.compile(r'^__version__ = "(.+)"', re.MULTILINE)


def index_page(root: Path = ROOT) -> str:
    """Return the text of README whose links lead to files of the repository at the tag of this version.

    Args:
        root: The repository, or an unpacked source distribution.

    Raises:
        ValueError: The address in pyproject.toml is not one of HTTPS, or the package has no version.
    """
    known = address(root)
    found = _VERSION.search((root / "rstar2_env" / "core" / "version.py").read_text("utf-8"))
    if not found:
        raise ValueError('rstar2_env/core/version.py: expected a line __version__ = "X.Y.Z".')

    def absolute(target: str) -> str:
        if is_elsewhere(target):
            return target
        if not known:
            return ""
        kind = "raw" if PurePosixPath(target.partition("#")[0]).suffix in _PICTURES else "blob"
        return f"{known}/{kind}/v{found[1]}/{target}"

    text = with_targets((root / "README.md").read_text("utf-8"), absolute)
    text = re.sub(r"<!-- .*? -->", "", text)
    text = re.sub(r"!\[[^\]]*\]\(\)\n*", "", text)
    return re.sub(r"\[([^\]]*)\]\(\)", r"\1", text)
