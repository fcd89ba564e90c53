"""How fast the viewer is over many episodes: the tables of docs/viewer-reference.md.

    python benchmarks/view.py [--episodes 100000] [--run FOLDER] [--json FILE] [--write]

Makes a run of so many episodes in a temporary folder (or takes one), indexes it in a fresh process, and times questions
as the page asks them, through the server. ``first`` is a question that was not asked before, ``again`` the same one, as
when a user pages through its answer. ``--write`` writes docs/data/view.json and the tables.

What it does not show: disks that others share.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from figures import write_results  # noqa: E402
from results import machine  # noqa: E402

SUPPORT = ROOT / "tests" / "support"
QUESTIONS = {
    "list of runs": "runs",
    "overview of the run": "runs/{run}",
    "figures of the run by step": "runs/{run}/metrics",
    "statuses by step": "runs/{run}/statuses?split=train",
    "table of episodes": "runs/{run}/episodes?limit=100",
    "table of episodes, from row 50,000": "runs/{run}/episodes?offset=50000&limit=100",
    "table of episodes, sorted by reward": "runs/{run}/episodes?sort=-reward&limit=100",
    "dropped correct episodes": "runs/{run}/episodes?split=train&kept=0&correct=1&limit=100",
    "episodes with a failed call, sorted by tokens": "runs/{run}/episodes?status=error&sort=-policy_tokens&limit=100",
    "search of a common word": "runs/{run}/episodes?q=answer&limit=100",
    "search of a phrase": "runs/{run}/episodes?q=" + quote('"the final answer"') + "&limit=100",
    "one episode": "runs/{run}/episodes/{key}",
    "groups": "runs/{run}/groups?limit=100",
    "problems, sorted by success rate": "runs/{run}/problems?sort=success&limit=100",
    "sampler": "runs/{run}/sampler",
}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", nargs=2, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(*asked.measure)))
        return
    with tempfile.TemporaryDirectory() as base:
        run = asked.run or make(Path(base) / "runs" / "many", asked.episodes)
        command = [sys.executable, __file__, "--measure", str(run), base]
        first = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        again = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    figures = {**first, "reopened": again["started"], "reopened_peak_mb": again["peak_mb"], "machine": machine()}
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    found = tables(figures)
    for rows in found.values():
        print(*(" | ".join(row) for row in rows), "", sep="\n")
    if asked.write:
        sizes = {name: figures[name] for name in ("episodes", "run_mb")}
        write_results("view", "python benchmarks/view.py --write", figures=sizes, tables=found)


def make(folder: Path, episodes: int) -> Path:
    """A run of so many episodes."""
    sys.path.insert(0, str(SUPPORT))
    from made_runs import write_many

    write_many(folder, episodes)
    return folder


def measure(run: Path, base: Path) -> dict[str, object]:
    """Index a run while it is asked, then ask everything twice."""
    sys.path.insert(0, str(SUPPORT))
    from viewed import write_page

    from rstar2_env.view.server import ViewServer

    begun, cpu = time.perf_counter(), time.process_time()
    server = ViewServer([run], cache=base / "cache", static=write_page(base / "page"))

    def ask(path: str) -> dict[str, object]:
        with contextlib.closing(urllib.request.urlopen(f"{server.address}api/{path}", timeout=120)) as answer:
            found: dict[str, object] = json.loads(answer.read())
        return found

    with server:
        name = ask("runs")["runs"][0]["run"]
        listed = time.perf_counter() - begun
        ask(f"runs/{name}")
        ask(f"runs/{name}/metrics")
        painted = time.perf_counter() - begun
        table_s = search_s = None
        while search_s is None:
            row = ask("runs")["runs"][0]
            now = time.perf_counter() - begun
            if row["indexing"] is None and sum(row["episodes"].values()):
                table_s = table_s or (now, time.process_time() - cpu)
                search_s = (now, time.process_time() - cpu) if row["searchable"] is None else None
            time.sleep(0.05)
        key = ask(f"runs/{name}/episodes?limit=1&sort=-policy_tokens")["rows"][0]["key"]
        times = {}
        for label, path in QUESTIONS.items():
            path, taken = path.format(run=name, key=key), []
            for _ in range(2):
                at = time.perf_counter()
                ask(path)
                taken.append(round(1000 * (time.perf_counter() - at), 1))
            times[label] = taken
        episodes = sum(row["episodes"].values())
    size = sum(file.stat().st_size for file in (base / "cache").iterdir())
    return {
        "episodes": episodes,
        "run_mb": round(sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) / 1e6, 1),
        "index_mb": round(size / 1e6, 1),
        "started": {"list": round(listed, 2), "first_page": round(painted, 2)},
        "table": [round(one, 1) for one in table_s],
        "search": [round(one, 1) for one in search_s],
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "milliseconds": times,
    }


def tables(figures: dict[str, Any]) -> dict[str, list[list[str]]]:
    """Return the tables of the page, with the header first."""
    started, reopened = figures["started"], figures["reopened"]
    whole = [
        ["", ""],
        ["list of runs after the start, nothing indexed yet", f"{started['list']} s"],
        ["overview of the run after the start, nothing indexed yet", f"{started['first_page']} s"],
        ["overview of the run after the start, with an existing index", f"{reopened['first_page']} s"],
        ["all episodes in the table", f"{figures['table'][0]} s ({figures['table'][1]} s of CPU)"],
        ["all words searchable", f"{figures['search'][0]} s ({figures['search'][1]} s of CPU)"],
        ["index on disk", f"{figures['index_mb']} MB"],
        ["peak memory while indexing and answering queries", f"{figures['peak_mb']} MB"],
        ["peak memory with an existing index", f"{figures['reopened_peak_mb']} MB"],
    ]
    asked = [["query, through the server", "first time, ms", "repeated, ms"]]
    asked += [[label, f"{first:g}", f"{again:g}"] for label, (first, again) in figures["milliseconds"].items()]
    return {"whole": whole, "queries": asked}


if __name__ == "__main__":
    main()
