"""Evaluate a checkpoint and compare two, paired by problem.

Run: python examples/compare_checkpoints.py BEFORE AFTER
(folders of models, such as the start of a run and its `best`; the same from the shell: rstar2 eval, rstar2 compare)
"""

import sys
import tempfile
from pathlib import Path

from rstar2_env import evaluate
from rstar2_env.evaluation.comparison.compare import compare
from rstar2_env.evaluation.stored.runs import find_stored

before, after = sys.argv[1:3]
kept = Path(tempfile.mkdtemp(prefix="rstar2-compare-"))
for name, model in (("before", before), ("after", after)):
    result = evaluate(
        "rstar2/MathTool-v0",
        model=model,
        problems="arithmetic:level=1",
        episodes=8,  # problems; take hundreds for a figure that says something
        n=2,  # samples of each
        model_options={"max_episode_tokens": 48},  # of all turns; as in the run that trained it
        env_options={"max_turns": 3},
        out=kept / name,
    )
    print(f"{name}:\n{result}\n")

(found,) = compare([find_stored(f"{kept}/before"), find_stored(f"{kept}/after")])
passed = found.figures["pass@1"]
print(f"pass@1: difference {passed.difference.value:+.3f}, p = {passed.p_value:.3f}")
print("runs kept in", kept)
