"""A pretrained model learns to use Python: the experiment over policies and seeds, its table, and speed comparisons.

    python benchmarks/real_model.py experiment --model FOLDER [--world word_arithmetic] [--seeds 3] [--minutes 120]
    python benchmarks/real_model.py table [--write NAME]        # the table of the results so far, and for documents
    python benchmarks/real_model.py plot --out real_model.png
    python benchmarks/real_model.py speed ...                   # benchmarks/real_model_speed.py
    python benchmarks/real_model.py engines ...                 # benchmarks/real_model_engines.py

``experiment`` makes the missing results, one policy of one seed after another, and stops after ``--minutes``: a part
that was interrupted continues from its last checkpoint or episode in the next call. ``--only grpo+grpo_roc`` makes
these policies and what they need. A result is one line of ``--results``, with its command. The policies are described
in ``real_model_experiment.py``.

What it does not show: anything about models larger than the given one.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

import real_model_experiment as experiment  # noqa: E402
import real_model_table as table  # noqa: E402
from figures import write_results  # noqa: E402

OTHER = {"speed": "real_model_speed.py", "engines": "real_model_engines.py"}
"""Parts with a file and options of their own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part; return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in OTHER:
        sys.argv = [OTHER[given[0]], *given[1:]]
        runpy.run_path(str(HERE / OTHER[given[0]]), run_name="__main__")
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    experiment.add_arguments(parts.add_parser("experiment", help="make the missing results"))
    for name, help_line in (("table", "print the table"), ("plot", "draw success by policy")):
        part = parts.add_parser(name, help=help_line)
        part.add_argument("--results", type=Path, default=experiment.RESULTS)
        if name == "table":
            part.add_argument("--write", metavar="NAME", help="also write docs/data/NAME.json, for the documents")
        if name == "plot":
            part.add_argument("--out", type=Path, default=Path("real_model.png"))
    asked = parser.parse_args(given)
    if asked.part == "experiment":
        return experiment.run(asked)
    results = experiment.read_results(asked.results)
    if asked.part == "table":
        print(table.table_of(results))
        if asked.write:
            write_results(asked.write, **table.data_of(results, experiment.sentences_of(results)))
    else:
        table.plot(results, asked.out)
        print(f"Written to {asked.out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
