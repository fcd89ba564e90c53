"""A run with a finding: its figures are rewritten from a step on."""

from __future__ import annotations

import json
from pathlib import Path

from made_runs import MadeRun, write_training

SINCE = 5


def write_faulty(folder: Path, steps: int = 8, until: int = 8) -> Path:
    """Write a run whose gradient is 0 in the steps ``SINCE`` to ``until``."""
    write_training(folder, MadeRun(steps=steps, problems=12, eval_every=0))
    file = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for line in lines:
        line["grad_norm"] = 0.0 if SINCE <= line["step"] <= until else 0.5
        line["tokens/trained"] = 100.0
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder
