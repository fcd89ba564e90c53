"""Which gradient each part and each recipe computes: ``python benchmarks/atlas.py run | table | write``.

``run`` computes the cases that ``atlas.jsonl`` lacks and adds them to it; it may be stopped and continued. ``table``
prints the record, and ``write`` writes ``docs/atlas.md`` and its figure from the record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from results import commit, source

RECORD = Path(__file__).parent / "atlas.jsonl"
CURVES = Path(__file__).parent / "atlas_curves.jsonl"
"""The cases on the axes of group size, failure rate, updates and turns that ``RECORD`` lacks."""
LOAD = "angles and scales, which other work on the machine does not change"


def read(*paths: Path) -> dict[str, dict[str, Any]]:
    """Return the recorded cases by their keys; the last line of a key counts. Without paths, read both records.

    The first line of a record says how it was made (``tools/results.py``).
    """
    lines = [line for path in paths or (RECORD, CURVES) if path.exists() for line in path.read_text().splitlines()]
    found = [one for line in lines if "family" in (one := json.loads(line))]
    return {f"{one['family']}/{one['name']}/{one['case']}": one for one in found}


def run(path: Path = RECORD, seconds: float = 300.0, cases: Iterable[Any] | None = None) -> int:
    """Compute cases that the record lacks, for at most about ``seconds``; return the number that is left.

    Args:
        path: The record.
        seconds: No case begins later.
        cases: The cases; ``None`` for all cases of parts and recipes, and then for repaired recipes.
    """
    import torch
    from atlas_cases import CASES, part_cases, recipe_cases, repair_cases
    from atlas_update import rows_of

    torch.set_num_threads(1)
    until = time.monotonic() + seconds
    record = read(path)
    given = [*part_cases(), *recipe_cases()] if cases is None else list(cases)
    given.sort(key=lambda case: (list(CASES).index(case.case), *rows_of(case.recipe)))  # sharing rows of groups

    def missing() -> list[Any]:
        found = [case for case in given if case.key not in record]
        return found or ([*repair_cases(record)] if cases is None else [])

    with path.open("a") as file:
        if not path.stat().st_size:
            file.write(json.dumps(source("python benchmarks/atlas.py run", LOAD)) + "\n")
            file.flush()
        while (left := missing()) and time.monotonic() <= until:
            for case in left:
                if time.monotonic() > until:
                    break
                record = read(path)  # another process may add cases
                if case.key in record:
                    continue
                record[case.key] = {**case.figures(), "commit": commit()}
                file.write(json.dumps(record[case.key]) + "\n")
                file.flush()
    return len(missing())


def table(record: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each case."""
    for key, one in record.items():
        if "reason" in one:
            yield f"{key}: {one['reason']}"
        else:
            own = f"cosine {one['cosines']['return']:.6f} scale {one['scales']['return']:.4g}"
            yield f"{key}: {own}" + (f" within {one['within']:.1g}" if "within" in one else "")


def main(arguments: list[str] | None = None) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "table", "write"))
    parser.add_argument("--seconds", type=float, default=300.0, help="for run: stop after about this time")
    parser.add_argument("--only", choices=("parts", "recipes", "curves"), help="for run: only these cases")
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        from atlas_cases import curve_cases, part_cases, recipe_cases

        until, left = time.monotonic() + chosen.seconds, 0
        if chosen.only != "curves":
            only = {"parts": part_cases, "recipes": recipe_cases}
            left = run(seconds=chosen.seconds, cases=only[chosen.only]() if chosen.only else None)
        if chosen.only in (None, "curves"):
            left += run(CURVES, until - time.monotonic(), curve_cases())
        print(f"{left} cases are left" if left else "all cases are recorded")
    elif chosen.command == "table":
        print(*table(read()), sep="\n")
    else:
        from atlas_page import write

        print(*write(read()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
