"""A task folder of Harbor that the sandbox can play, with files that a test may replace or leave out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TASK: Mapping[str, str] = {
    "task.toml": (
        'schema_version = "1.4"\n[task]\nname = "sums/numbers"\n[metadata]\ndifficulty = "easy"\n'
        "[verifier]\ntimeout_sec = 30.0\n[environment]\n"
    ),
    "instruction.md": "# canary 1234\n\nWrite the sum of /app/data/numbers.txt into /app/sum.txt.\n",
    "environment/Dockerfile": (
        "FROM python:3.12-slim\n# the data\nWORKDIR /app\nCOPY numbers.txt \\\n  data/\nENV GREETING=hello\n"
    ),
    "environment/numbers.txt": "1\n2\n39\n",
    "tests/test.sh": "#!/bin/bash\npython3 /tests/check.py\n",
    "tests/check.py": (
        "from pathlib import Path\n"
        "said = Path('/app/sum.txt')\n"
        "right = said.exists() and said.read_text().strip() == '42'\n"
        "Path('/logs/verifier/reward.txt').write_text(str(int(right)))\n"
    ),
    "solution/solve.sh": "#!/bin/bash\nawk '{s += $1} END {print s}' data/numbers.txt > sum.txt\n",
}


def write_task(folder: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """Write the task; ``changes`` replace files, or leave out those that are ``None``. Returns the folder."""
    for name, text in {**TASK, **(changes or {})}.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    return folder
