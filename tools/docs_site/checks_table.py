"""Write the table of the checks of ``rstar2 diagnose`` in docs/diagnosis.md from the checks themselves.

``python tools/docs_site/checks_table.py docs/diagnosis.md`` rewrites the table in the page, between its markers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.diagnosis.base import SEVERITIES, RunCheck
from rstar2_env.diagnosis.examination import every_check

BEGIN = "<!-- checks: made by `python tools/docs_site/checks_table.py docs/diagnosis.md` -->"
END = "<!-- end of checks -->"


def checks_table() -> str:
    """Return the checks as sections, errors first: what each reads, its rule, its cause, and what to change."""
    checks = sorted(every_check(), key=lambda one: (SEVERITIES.index(one.severity), one.name))
    rows = ["| check | finding | severity | runs |", "|---|---|---|---|"]
    rows += [
        f"| [`{one.name}`](#{one.name}) | {one.title} | {one.severity} | {', '.join(sorted(one.kinds))} |"
        for one in checks
    ]
    return "\n".join(rows) + "\n\n" + "\n".join(map(_section, checks))


def _section(check: RunCheck) -> str:
    change = "; ".join(f"`{one}`" for one in check.change)
    return (
        f"### `{check.name}`\n"
        f"{check.title} ({check.severity}).\n\n"
        f"- **Looks at** {check.looks_at}.\n"
        f"- **Rule:** {check.rule}.\n"
        f"- **Usual cause:** {check.cause}\n"
        f"- **Change:** {change}.\n"
        f"- **Other explanations:** {check.otherwise}\n"
    )


def with_checks(page: str) -> str:
    """Return the page with the current table between its markers.

    Raises:
        ConfigurationError: The markers are missing in the page.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigurationError(f"The page has no place for the checks: expected the lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n{checks_table()}{END}{after}"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_checks(path.read_text("utf-8")), "utf-8")
