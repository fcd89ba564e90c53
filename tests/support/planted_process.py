"""One of the processes of planted runs, which torchrun starts: ``planted_process.py RUNS``.

RUNS is a JSON list of the arguments of ``planted_runs.train_here``, with the name of a fault or a look-alike.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import blind_runs  # noqa: F401 - its faults are among those of every half
import later_clean  # noqa: F401
import opened2_runs  # noqa: F401
import opened_runs  # noqa: F401
from planted_runs import EVERY, train_here

if __name__ == "__main__":
    for model, folder, fault, more in json.loads(sys.argv[1]):
        train_here(Path(model), Path(folder), EVERY[fault], **more)
