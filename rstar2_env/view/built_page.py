"""The folder of the viewer's built web page, and the error message if the page has not been built.

Covered: the folder that ``make view`` writes; a wheel built afterwards includes it. Not covered: serving the page
(``server.page``) and embedding it in one file (``export.page``).
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "static"
"""Output folder of ``make view``."""
INDEX = "index.html"


def not_built(missing: Path = FOLDER / INDEX) -> str:
    """Return the error message for a page that has not been built.

    Args:
        missing: Path of the missing file.
    """
    return (
        f"The web page of the viewer has not been built: {missing} is missing. In a clone of the "
        "repository, run `make view` (it needs npm and Node 20.19 or newer), then reinstall the package "
        "with `pip install '.[view]'` unless it is installed with --editable. `rstar2 view --text RUN` "
        "works without the page."
    )
