"""Made-up runs that show all that the viewer has: for its pictures, and for the page of runs on the site.

``python tests/support/demo_runs.py FILE`` writes the page of the site: four runs, with a sample of their episodes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from made_runs import MadeRun, write_training
from planted_folders import FOLDERS, write_folder
from spelled_tokens import write_spelled

from rstar2_env.view.built_page import FOLDER, INDEX
from rstar2_env.view.export.write import write_export

EPISODES = 120
"""Episodes of each run on the page."""
NOTICE = (
    "An example: a program made up these runs. No model was trained, so the curves and the episodes are not results."
)
"""Text of the page of the site above each view."""


def write_runs(runs: Path, *, steps: int = 60) -> MadeRun:
    """Write two seeds of GRPO-RoC, the first with the tokens of its rows, and one of GRPO; return what they share.

    Args:
        runs: Their folder.
        steps: Optimizer steps of each.
    """
    every = max(1, steps // 6)
    made = MadeRun(
        steps=steps, problems=60, problems_per_step=4, size=8, refill=3, eval_every=every, checkpoint_every=2 * every
    )
    for seed in (0, 1):
        write_training(runs / f"roc-{seed}", made, seed=seed)
    write_spelled(runs / "roc-0")
    write_training(runs / "grpo-0", made, trainer="grpo", slips=(0.3, 0.28))
    return made


def write_page(out: Path, *, steps: int = 60) -> None:
    """Write the page of the site, with a fourth run whose entropy collapses.

    Args:
        out: The file.
        steps: Optimizer steps of the runs.
    """
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        write_runs(runs, steps=steps)
        write_folder(runs / "collapse", FOLDERS["entropy collapses"], strength=0.01)
        static = Path(shutil.copytree(FOLDER, Path(folder) / "static"))
        page = (static / INDEX).read_text("utf-8")
        notice = f'<aside class="notes" aria-label="Example"><p>{NOTICE}</p></aside>'
        (static / INDEX).write_text(page.replace("<body>", f"<body>{notice}"), "utf-8")
        write_export([runs], out, episodes=EPISODES, cache=Path(folder) / "cache", static=static, overwrite=True)


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
