"""Read the results of one run of ``pipelines/smollm2_cpu.yaml`` (``make train-real``), and write their page.

    python benchmarks/real_run.py read runs/smollm2/run --commit COMMIT --load "two otherwise idle cores"
    python benchmarks/real_run.py page

``read`` writes ``docs/data/smollm2_cpu.json`` from the folder of the run: where it was made (command, commit, load,
versions), the figures of each evaluation and of the training, and the verdict on each problem. ``page`` writes
``docs/smollm2.md`` and ``docs/pictures/real-model.png`` from that file. Other documents quote the file;
``tools/figures.py`` compares.

What it does not show: other seeds, other recipes, or anything about larger models.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "data" / "smollm2_cpu.json"
PICTURE = ROOT / "docs" / "pictures" / "real-model.png"
PAGE = "smollm2.md"
"""Name of the page in ``docs/``."""
HEAD = """<!-- Made by `python benchmarks/real_run.py page`. Change benchmarks/real_run.py instead. -->

# SmolLM2 learns to use Python

`make train-real` fine-tunes SmolLM2 (135 million parameters) on tool-use traces of worked problems, and continues with
GRPO-RoC. The test sentences are in neither the traces nor the training problems. This page shows one run; it does not
rank algorithms.
"""
NAMES = {
    "data": "problems",
    "before": "evaluation before",
    "traces": "traces",
    "cold_start": "cold start",
    "after_start": "evaluation after the cold start",
    "train": "GRPO-RoC",
    "after": "evaluation after GRPO-RoC",
}
"""Stages of the pipeline in words."""
MODELS = {"before": "as it is", "after_start": "after the cold start", "after": "after GRPO-RoC"}
"""Stages of the pipeline that evaluate, and what was done to the model by then."""
ENDS = 4
"""Steps at either end of the training over which a mean is taken."""


def results(run: Path, commit: str, load: str) -> dict[str, Any]:
    """Read the folder of a run of the pipeline.

    Args:
        run: The folder.
        commit: Commit of the code that made the run.
        load: The cores that the run had, and other work on the machine.

    Returns:
        ``command``, ``commit``, ``load``, ``seed``, ``versions``; ``figures`` of each stage that evaluates (shares
        between 0 and 1, that of right answers with its 95 % interval after Wilson, and ``tokens`` per episode), of the
        ``gain`` of GRPO-RoC (paired by problem, as ``rstar2 compare`` computes it), of ``train`` and of ``cold_start``,
        and the ``minutes`` of each stage and of ``all``; ``steps``, the share of right episodes in each training step;
        ``right``, a 1 or a 0 for each held-out problem; ``episodes``, two of them, from before and after the training.
    """
    from rstar2_env.core.run_folder import read_run
    from rstar2_env.evaluation.comparison.compare import compare
    from rstar2_env.evaluation.figures.statistics import wilson
    from rstar2_env.evaluation.stored.runs import find_stored

    events = [json.loads(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]
    # A stage that ran again has its last time.
    minutes = {event["stage"]: event["seconds"] / 60 for event in events if event["event"] == "stage_ended"}
    right: dict[str, str] = {}
    stored = {stage: find_stored(str(run / "stages" / stage)) for stage in MODELS}
    figures: dict[str, dict[str, float]] = {}
    for stage in MODELS:
        folder = run / "stages" / stage
        summary = json.loads((folder / "summary.json").read_text("utf-8"))
        share = wilson(summary["pass_rate"]["value"], summary["pass_rate"]["count"])
        figures[stage] = {
            "right": share.value,
            "low": share.low,
            "high": share.high,
            "episodes": summary["episodes"],
            "code": summary["code_share"]["value"],
            "failed": summary["tool_error_share"]["value"],
            "calls": summary["tool_error_share"]["count"],
            "tokens": summary["tokens"]["value"],
        }
        episodes = sorted(stored[stage], key=lambda entry: entry.episode.group)
        right[stage] = "".join(str(int(one.episode.correct)) for one in episodes if one.episode.available)
    (compared,) = compare([stored[stage] for stage in ("after_start", "after")])
    gain = compared.figures["pass@1"]
    ends = {"low": gain.difference.low, "high": gain.difference.high}
    figures["gain"] = {"right": gain.difference.value, **ends, "p": gain.p_value}
    trained = read_run(run / "stages" / "train").metrics()
    steps = [entry["rollout/pass_rate"] for entry in trained if "rollout/pass_rate" in entry]
    figures["train"] = {"steps": len(steps), "first": mean(steps[:ENDS]), "last": mean(steps[-ENDS:])}
    started = list(read_run(run / "stages" / "cold_start").metrics())
    figures["cold_start"] = {
        "traces": len((run / "stages" / "traces" / "traces.jsonl").read_text("utf-8").splitlines()),
        "steps": max(entry["step"] for entry in started),
        "peak_gib": max(entry.get("memory/peak_gib", 0.0) for entry in started),
    }
    figures["minutes"] = {**minutes, "all": sum(minutes.values())}
    return {
        "command": "make train-real",
        "commit": commit,
        "load": load,
        "seed": json.loads((run / "pipeline.json").read_text("utf-8"))["seed"],
        "versions": events[0]["versions"],
        "figures": {name: {key: round(value, 6) for key, value in found.items()} for name, found in figures.items()},
        "steps": steps,
        "right": right,
        "episodes": _two_episodes(stored["before"], stored["after"]),
    }


def _two_episodes(untrained: Iterable[Any], trained: Iterable[Any]) -> dict[str, Any]:
    """Return the texts of the first problem that the model solves only after the training, before and after it.

    Args:
        untrained: The stored episodes before the training.
        trained: Those after it.
    """
    before, after = ({one.episode.problem_id: one.episode for one in entries} for entries in (untrained, trained))
    for name, first in before.items():
        last = after.get(name)
        if last is not None and last.correct and last.statuses and not first.correct:
            told = {"before": first, "after": last}
            return {
                stage: [message.record() for message in episode.messages if message.role != "system"]
                for stage, episode in told.items()
            }
    return {}


def drawn_from(told: Mapping[str, Any]) -> str:
    """Return the digest of the results in the picture, which the picture's file contains."""
    return hashlib.sha256(json.dumps([told["figures"], told["steps"]]).encode()).hexdigest()


def draw(told: Mapping[str, Any], out: Path) -> None:
    """Draw the share of right episodes: on held-out problems by model, and in each step of the training.

    Args:
        told: Results, as ``results`` returns them.
        out: The picture.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figures, steps = told["figures"], told["steps"]
    with plt.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True}):
        plt.rcParams.update({"grid.alpha": 0.3})
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(6.4, 3.1), gridspec_kw={"width_ratios": [1, 1.1]}, sharey=True
        )
        for place, stage in enumerate(MODELS):
            found = figures[stage]
            apart = [[max(0.0, found["right"] - found["low"])], [max(0.0, found["high"] - found["right"])]]
            left.errorbar(place, found["right"], yerr=apart, fmt="o", color="#1f5fbf", capsize=4)
            left.annotate(f"{found['right']:.2f}", (place, found["right"]), (9, 4), textcoords="offset points")
        left.set_xticks(range(len(MODELS)), [fill(name, 10) for name in MODELS.values()])
        left.set_xlim(-0.4, len(MODELS) - 0.4)
        left.set_title(f"{figures['after']['episodes']} held-out problems\n(95 % interval)", fontsize=11, loc="left")
        left.set_ylabel("share of right answers")
        at = range(1, len(steps) + 1)
        right.plot(at, steps, "o-", color="#1f5fbf", linewidth=1, markersize=3.5)
        for first, name in ((0, "first"), (len(steps) - ENDS, "last")):
            right.hlines(figures["train"][name], first + 1, first + ENDS, color="#c0392b", linewidth=2.5)
        right.set_title(f"training problems, by step\n(red: means of {ENDS} steps)", fontsize=11, loc="left")
        right.set_xlabel("step")
        right.xaxis.get_major_locator().set_params(integer=True)
        left.set_ylim(-0.05, 1.03)
        figure.tight_layout()
        figure.savefig(out, dpi=140, metadata={"Source": drawn_from(told)})
        plt.close(figure)


def page(told: Mapping[str, Any]) -> str:
    """Return the page of a run as Markdown.

    Args:
        told: Results, as ``results`` returns them.
    """
    figures, minutes = told["figures"], told["figures"]["minutes"]
    gain, start, train = figures["gain"], figures["cold_start"], figures["train"]
    head = ["model", "right (95 % interval)", "uses Python", "failed calls", "tokens an episode"]
    names = {
        "before": "as it is",
        "after_start": f"after {start['steps']} steps on {start['traces']:,} traces",
        "after": f"after {train['steps']} steps of GRPO-RoC",
    }
    rows = [
        [
            name,
            f"{found['right']:.2f} ({found['low']:.2f} to {found['high']:.2f})",
            f"{found['code']:.2f}",
            f"{found['failed']:.2f} of {found['calls']}",
            f"{found['tokens']:.0f}",
        ]
        for name, found in ((name, figures[stage]) for stage, name in names.items())
    ]
    stages = [[NAMES[stage], f"{spent:.1f}"] for stage, spent in minutes.items() if stage != "all"]
    said = [
        HEAD,
        f"Commit {told['commit']}, seed {told['seed']}. The stages took {minutes['all']:.0f} minutes ({told['load']}), "
        f"and needed at most {start['peak_gib']:.1f} GiB of memory until the end of the cold start.",
        "![Left: right answers to held-out problems before and after each training. Right: right answers in each step "
        "of GRPO-RoC](pictures/real-model.png)",
        _table(head, rows),
        f"Right answers are counted on {figures['after']['episodes']} test problems, with one sample per problem at "
        f"temperature 1. GRPO-RoC changes the cold start's share of right answers by {gain['right']:+.3f} (95 % "
        f"interval {gain['low']:+.3f} to {gain['high']:+.3f}, paired by problem). Of the episodes in training, "
        f"{train['first']:.2f} are right in the first {ENDS} steps and {train['last']:.2f} in the last {ENDS}.",
        _table(["stage", "minutes"], stages),
    ]
    for stage, title in (("before", "One problem before training"), ("after", "The same problem after training")):
        turns = told["episodes"].get(stage, [])
        said += [f"## {title}", *(f"{turn['role']}:\n\n{_block(turn['content'])}" for turn in turns)] if turns else []
    return "\n\n".join(text.strip() for text in said) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _block(text: str) -> str:
    """Return a text as a block of code; its fence is of another kind than those of turns."""
    return f"~~~~text\n{text.strip()}\n~~~~"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a run, or write the page and its picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    read = parts.add_parser("read", help="write the file of results")
    read.add_argument("run", type=Path, help="folder of the run")
    read.add_argument("--commit", required=True, help="commit of the code that made it")
    read.add_argument("--load", required=True, help="the cores that the run had, and other work on the machine")
    read.add_argument("--out", type=Path, default=DATA)
    parts.add_parser("page", help="write the page and draw its picture")
    asked = parser.parse_args(arguments)
    if asked.part == "read":
        told = results(asked.run, asked.commit, asked.load)
        asked.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
        print(f"Written to {asked.out}.")
    else:
        told = json.loads(DATA.read_text("utf-8"))
        draw(told, PICTURE)
        (ROOT / "docs" / PAGE).write_text(page(told), "utf-8")
        print(f"Written to {PICTURE} and docs/{PAGE}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
