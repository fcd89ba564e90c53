"""Write two pages about the checks of ``rstar2 diagnose``: docs/diagnosis-checks.md and docs/diagnosis-measured.md.

``python tools/docs_site/checks_table.py docs`` writes both: the list of checks, from the checks and the titles of their
pictures (``tests/support/check_pictures.py``), and their measurement, from benchmarks/diagnosis.json.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from rstar2_env.diagnosis.base import SEVERITIES, RunCheck
from rstar2_env.diagnosis.examination import every_check

PAGE = "diagnosis-checks.md"
"""List of the checks."""
MEASURED = "diagnosis-measured.md"
"""Measurement of the checks."""
DOCS = Path(__file__).resolve().parents[2] / "docs"
FILE = DOCS.parent / "benchmarks" / "diagnosis.json"
_MADE = "<!-- Made by `python tools/docs_site/checks_table.py docs`. Change {} instead. -->"
ABOUT = """\
`python tests/support/detector.py HALF run|folder` plants each fault below in three runs with different recipes, seeds
and strengths: in real runs of a tiny model, by options, environments, engines or a change of the code
([runs](../tests/support/planted_runs.py)), or in recorded folders, whose episodes or figures are changed before they
are written ([folders](../tests/support/planted_folders.py)). If a recorded figure, such as the entropy, was changed,
the result shows only that the check reads this figure; a real collapse may look different.

A fault is named in time if its [check](diagnosis-checks.md) finds it within 3 steps of the first step at which it can
be seen. The rule that determines this step was fixed before the measurement, and uses no threshold of a check. A clean
run counts as a false alarm if any check finds something after any step. The checks were corrected on one half of the
runs (*tried*). The other half (*aside*) has randomly drawn seeds and strengths of the faults, and was measured after
the corrections; the ranges of the strengths were chosen when the thresholds were known.

Four further sets were written and committed by an author who had not seen a threshold. Three have other forms of the
faults, and *later* has only clean runs: *opened* ([runs](../tests/support/opened_runs.py),
[folders](../tests/support/opened_folders.py)), *opened2* ([runs](../tests/support/opened2_runs.py),
[folders](../tests/support/opened2_folders.py); the author knew the threshold of `lag_beyond_bound`), *blind*
([runs](../tests/support/blind_runs.py), [folders](../tests/support/blind_folders.py)) and *later* ([runs and
folders](../tests/support/later_clean.py)). The rows that end in *-first* are the first measurements, before a check
was corrected on the set: *opened-first* lacks some runs, and before *blind-first*, an incomplete measurement had
ended because a check raised an exception. The five false alarms of *blind-first* have one cause: padding tokens
counted as markup of a template. One run of *blind-first* has a second false alarm (`cut_by_tokens`). *opened-first*
and *blind-first* were measured before their commits were rebased; the table names the rebased commits. After
*later-first*, `weights_stale` was corrected on *tried*.

Faults of several processes are planted in two processes of one machine; faults of several machines are not planted.
"""
_CHECKS = """\
The faults that [`rstar2 diagnose`](diagnosis.md) finds, the most severe first.
[diagnosis.md](diagnosis.md#what-to-do-with-a-finding) explains the pictures, and the words in capitals.
"""
_OFTEN = 0.5
_SVG = "{http://www.w3.org/2000/svg}"


def pages() -> dict[str, str]:
    """Return both pages by the name of their file."""
    checks = _MADE.format("the checks in the code")
    measurement = _MADE.format("benchmarks/diagnosis.json or the program")
    return {
        PAGE: f"{checks}\n\n# Checks of rstar2 diagnose\n\n{_CHECKS}\n{checks_table()}",
        MEASURED: f"{measurement}\n\n# How well diagnosis works\n\n{measured_table()}",
    }


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
    picture = f"pictures/checks/{check.name}.svg"
    title = ElementTree.parse(DOCS / picture).findtext(f"{_SVG}title")
    change = "; ".join(f"`{one}`" for one in check.change)
    listed = ", ".join(f"[`{one}`](#{one})" for one in check.effects)
    effects = f"- **Often causes:** {listed}.\n" if check.effects else ""
    condition, _, threshold = check.rule.partition(": ")
    reason = f"- **Reason:** {threshold}.\n" if threshold else ""
    return (
        f"## `{check.name}`\n\n"
        f"{check.title} ({check.severity}).\n\n"
        f"![{title}]({picture})\n\n"
        f"- **Looks at** {check.looks_at}.\n"
        f"- **Rule:** {condition}.\n"
        f"{reason}"
        f"- **Usual cause:** {check.cause}\n"
        f"{effects}"
        f"- **Change:** {change}.\n"
        f"- **Other explanations:** {check.otherwise}\n"
    )


def measured_table() -> str:
    """Return the measurement of the checks: by half, and by fault with what else was named in half of its runs.

    What was not measured has a dash.
    """
    measured = json.loads(FILE.read_text("utf-8"))["measured"]
    results = {place: {**own["results"]} for place, own in measured.items()}
    rows = [ABOUT, "| half | planted in a | named in time | false alarms in clean runs | commit | date |"]
    rows.append(f"|{6 * '---|'}")
    for place, own in measured.items():
        clean = results[place].pop("clean", None)
        alarms = f"{len(clean['false_alarms'])} of {clean['runs']}" if clean else "–"
        counts = [sum(one[name] for one in results[place].values()) for name in ("in_time", "runs")]
        in_time = f"{counts[0]} of {counts[1]}" if counts[1] else "–"
        rows.append(f"| {' | '.join(place.split())} | {in_time} | {alarms} | {own['commit']} | {own['date']} |")
    halves = list(dict.fromkeys(place.split()[0] for place in measured if results[place]))
    rows += ["", f"| fault | planted in a | named by | {' | '.join(halves)} | often named too |"]
    rows += [f"|{(4 + len(halves)) * '---|'}"]
    for planted in dict.fromkeys(place.split()[1] for place in measured):
        of_halves = [results.get(f"{half} {planted}", {}) for half in halves]
        for name in dict.fromkeys(name for faults in of_halves for name in faults):
            own = [faults[name] for faults in of_halves if name in faults]
            counts = [f"{one[name]['in_time']} of {one[name]['runs']}" if name in one else "–" for one in of_halves]
            also = sum((Counter(one["also"]) for one in own), Counter[str]())
            often = [f"`{check}`" for check, times in also.items() if times >= _OFTEN * sum(one["runs"] for one in own)]
            fault = name.replace("paid", "rewarded")  # the name itself seeds the draws of the fault
            check = own[0]["check"]
            linked = f"[`{check}`]({PAGE}#{check})"
            rows.append(f"| {fault} | {planted} | {linked} | {' | '.join(counts)} | {', '.join(often)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        for file, page in pages().items():
            (folder / file).write_text(page, "utf-8")
