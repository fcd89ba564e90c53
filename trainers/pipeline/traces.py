"""``write_traces``: a file of traces that appears whole or not at all, for stages that make some."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_traces(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write traces, a line each.

    Args:
        path: The file; one that is there is replaced.
        records: Each with ``messages``, as ``rstar2 sft`` reads them.
    """
    beside = path.with_name(f"{path.name}.part")
    with beside.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    beside.replace(path)
