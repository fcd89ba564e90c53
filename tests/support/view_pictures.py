"""Draws the pictures of docs/pictures/view: ``python tests/support/view_pictures.py [NAME ...]``."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from chromium import Watched
from demo_runs import write_runs
from made_runs import write_evaluation, write_training
from pictures import Picture, main, take
from places import DOCS
from planted_folders import FOLDERS, write_folder
from waiting import wait_for

from rstar2_env.core.run_folder import EpisodeEntry, read_run
from rstar2_env.view.server import ViewServer

OUT = DOCS / "pictures" / "view"

_OVERVIEW = "overview?runs=roc-0,roc-1,grpo-0"
_ONE = "runs/roc-0?smooth=0.6"
_COMPARE = "compare?a=eval-before&b=eval-after"
_WATCHED = "runs/collapse"
PICTURES = {
    "run": Picture(_WATCHED, height=900),
    "run-dark": Picture(_WATCHED, dark=True, height=900),
    "run-narrow": Picture(_WATCHED, 390, height=900),
    "run-narrow-dark": Picture(_WATCHED, 390, dark=True, height=900),
    "overview": Picture(_OVERVIEW),
    "overview-dark": Picture(_OVERVIEW, dark=True),
    "overview-tools": Picture(_ONE, at="Tools", height=900),
    "overview-trains": Picture(_ONE, at="Training data", height=510),
    "overview-time": Picture(_ONE, at="Time", height=484, dark=True),
    "episodes": Picture("runs/roc-0/episodes?split=train&step=30-&status=error"),
    "episode": Picture("runs/roc-0/episodes/{kept}", height=900),
    "episode-narrow-dark": Picture("runs/roc-0/episodes/{kept}", 390, dark=True, height=900),
    "tokens": Picture("runs/roc-0/episodes/{kept}?tab=tokens", click=".tokens .token >> nth=42", height=900),
    "groups": Picture("runs/roc-0/groups", dark=True),
    "group": Picture("runs/roc-0/groups/{group}", height=1080),
    "group-card": Picture("runs/roc-0/groups/{group}", 440, at="Step {step}, group {number}", height=720),
    "group-narrow": Picture("runs/roc-0/groups/{group}", 390, height=1080),
    "sampler": Picture("runs/curriculum/sampler"),
    "problems": Picture("runs/roc-0/problems?sort=success"),
    "compare": Picture(_COMPARE),
    "compare-narrow-dark": Picture(_COMPARE, 390, dark=True, height=900),
    "terminal": Picture(
        "", 1240, height=636, keys=("enter", "f", *"split=train&status=error", "enter", "down", "down")
    ),
}
"""The pictures, by name. ``{kept}`` stands for an episode of ``roc-0`` that trains, ``{group}`` for its group."""
_NO_PATHS = "document.querySelectorAll('.path, .run-path').forEach((one) => { one.hidden = true; })"


def draw(browser: Any, chosen: Sequence[str], out: Path, *, steps: int = 60) -> None:
    """Make runs, look at them, and write pictures.

    Args:
        browser: Playwright's browser.
        chosen: Names of pictures.
        out: Folder of the pictures.
        steps: Steps of the runs of training.
    """
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        _make(runs, steps)
        named = _named(runs / "roc-0")
        with ViewServer([runs], cache=Path(folder) / "cache") as server:
            wait_for(lambda: not any(row["indexing"] or row["searchable"] for row in server.answers.runs()["runs"]))
            pages = Watched(browser)
            for name in chosen:
                picture = PICTURES[name]
                if picture.keys:
                    _draw_terminal(pages, runs / "roc-0", picture, out / f"{name}.png")
                    continue
                address = f"{server.link}#/{picture.view.format(**named)}"
                page = pages.open(address, width=picture.width, height=picture.height, dark=picture.dark)
                page.evaluate(_NO_PATHS)
                take(page, replace(picture, at=picture.at.format(**named)), out / f"{name}.png")
            pages.close()


def _draw_terminal(pages: Watched, run: Path, picture: Picture, file: Path) -> None:
    from walked import Walker, walk  # textual is needed for this picture alone

    async def act(walker: Walker) -> None:
        await walker.until("training episodes")
        for key in picture.keys:
            await walker.press(key)
        await walker.until(lambda: bool(walker.keys()))
        drawn.write_text(walker.app.export_screenshot(title=f"rstar2 view --text {run.name}"), "utf-8")

    drawn = file.with_suffix(".svg")
    # Playwright's event loop runs in this thread.
    with ThreadPoolExecutor(1) as beside:
        beside.submit(walk, act, run, cache=run.parent.parent / "cache", size=(100, 24)).result()
    page = pages.browser.new_page(viewport={"width": picture.width, "height": picture.height})
    page.goto(drawn.as_uri())
    page.screenshot(path=file)
    page.close()
    drawn.unlink()


def _make(runs: Path, steps: int) -> None:
    made = write_runs(runs, steps=steps)
    write_folder(runs / "collapse", FOLDERS["entropy collapses"], strength=0.01)
    sampler = {"parts": {"sampler": {"name": "curriculum", "window": 48}}}
    write_training(runs / "curriculum", made, options=sampler)
    write_evaluation(runs / "eval-before")
    write_evaluation(runs / "eval-after", seed=1, right=0.9)


def _named(run: Path) -> dict[str, str]:
    """An episode that trains and is right, with a call that failed, of a group that is mixed; and that group."""
    found = read_run(run)
    steps = found.steps[len(found.steps) // 10 :]
    places = [(step, at, one) for step in steps for at, one in enumerate(found.episodes(step)) if one.kept]
    right = Counter((step, one.episode.group) for step, _, one in places if one.episode.correct)

    def fitness(place: tuple[int, int, EpisodeEntry]) -> tuple[bool, bool, int]:
        step, _, one = place
        told = one.episode.correct and bool(one.episode.error_share) and not one.episode.injected
        return told, one.episode.task == "products", -abs(right[step, one.episode.group] - 5)

    step, at, one = max(places, key=fitness)
    number = str(one.episode.group)
    return {"kept": f"train-{step}-{at}", "group": f"{step}/{number}", "step": str(step), "number": number}


if __name__ == "__main__":
    main(draw, PICTURES, OUT)
