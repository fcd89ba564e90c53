"""``write_traces``: writes a file of traces atomically."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.files.json_lines import begin_lines


def write_traces(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write traces, one per line.

    Args:
        path: The file; an existing file is replaced.
        records: Records with ``messages``, as ``rstar2 sft`` reads them.
    """
    begin_lines(path, (f"{json.dumps(record)}\n" for record in records)).close()
