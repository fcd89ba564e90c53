"""Where the built page is, and what to do where it is not.

Covered: the folder that ``make view`` writes, which a wheel made after it has too. Not covered: serving the page
(``server.page``) and putting it into one file (``export.page``).
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "static"
"""Where ``make view`` builds the page."""
INDEX = "index.html"


def not_built(missing: Path = FOLDER / INDEX) -> str:
    """What to do where the page has not been built.

    Args:
        missing: The file that is not there.
    """
    return (
        f"The viewer's page has not been built: {missing} is not there. Two steps in a clone of the repository: "
        "`make view` builds the page (it needs npm and Node 20.19 or newer); then install the package again, "
        "`pip install '.[view]'`, unless it is installed with --editable. `rstar2 view --text RUN` works without it."
    )
