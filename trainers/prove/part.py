"""``part.py NAME MODEL OUT``: runs one part of ``rstar2 doctor --prove``, and writes its finding as JSON."""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

from .findings import PartFinding

PARTS = {
    "kernels": ("machine_speed", ("torch",)),
    "engine": ("engines", ("torch", "transformers", "peft")),
    "sharded": ("ranks", ("torch", "transformers", "peft")),
    "sandbox": ("learning", ("torch", "transformers")),
    "grpo": ("learning", ("torch", "transformers", "peft", "trl", "accelerate", "datasets")),
    "vllm": ("engines", ("torch", "transformers", "peft", "vllm")),
    "speed": ("machine_speed", ("torch",)),
}
"""The parts of ``rstar2 doctor --prove``, most important first: the module of each part, and the packages that the part
needs."""


def run_part(name: str, model: str | None) -> PartFinding:
    """Run one part of ``rstar2 doctor --prove`` in this process, and return its finding.

    If the part raises an exception, the finding has the level ``problem`` and quotes the exception.

    Args:
        name: Name of the part.
        model: Folder of a model; ``None`` for a random one.
    """
    module, needed = PARTS[name]
    if missing := [package for package in needed if find_spec(package) is None]:
        return PartFinding(name, "skipped", f"{', '.join(missing)} not installed")
    try:
        found: PartFinding = getattr(import_module(f".{module}", __package__), name)(model)
    except Exception:
        return PartFinding(name, "problem", traceback.format_exc()[-1500:].strip())
    return found


def main(name: str, model: str, out: str) -> None:
    """Run one part of ``rstar2 doctor --prove``, and write its ``PartFinding`` to a JSON file.

    Args:
        name: Name of the part, a key of ``PARTS``.
        model: Folder of a model; empty for a random one.
        out: The JSON file to write.
    """
    began = monotonic()
    found = run_part(name, model or None).record()
    Path(out).write_text(json.dumps({**found, "seconds": monotonic() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
