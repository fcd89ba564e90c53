"""Runs that were made, the server over them, and a browser that looks at them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from chromium import Chromium, missing, watched
from made_runs import MadeRun, write_evaluation, write_training
from spelled_tokens import write_spelled
from waiting import wait_for

from rstar2_env.view.built_page import FOLDER
from rstar2_env.view.server import ViewServer

HERE = Path(__file__).parent
_CHROMIUM = Chromium()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the browser before a test of another folder."""
    if nextitem is None or HERE not in nextitem.path.parents:
        _CHROMIUM.close()


@pytest.fixture(scope="session")
def chromium():
    """The browser; where something is missing that it needs, the tests are skipped and say what."""
    if why := missing():
        pytest.skip(why)
    if not (FOLDER / "index.html").exists():
        pytest.skip("the page is not built (make view)")
    return _CHROMIUM


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    """A folder with runs: GRPO-RoC with two seeds, GRPO, a curriculum, and two evaluations of the same problems.

    The first, ``roc-0``, has the tokens of its rows, the tokenizer that spells them, and the drift of its engine.
    """
    folder = tmp_path_factory.mktemp("view") / "runs"
    made = MadeRun(steps=8, problems=24)
    for seed in (0, 1):
        write_training(folder / f"roc-{seed}", made, seed=seed)
    write_spelled(folder / "roc-0")
    drift = ({"step": step, "mismatch/logp_difference": 0.002 + 1e-5 * step} for step in range(1, made.steps + 1))
    with (folder / "roc-0" / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in drift)
    write_training(folder / "grpo-0", made, trainer="grpo_clip_higher", slips=(0.3, 0.28))
    sampler = {"parts": {"sampler": {"name": "curriculum", "window": 8}}}
    write_training(folder / "curriculum", made, options=sampler, end="")
    write_evaluation(folder / "eval-before", seed=0, problems=20)
    write_evaluation(folder / "eval-after", seed=1, problems=20, right=0.9)
    return folder


def _read(run) -> bool:
    return run["indexing"] is None and run["searchable"] is None and sum(run["episodes"].values()) > 0


@pytest.fixture(scope="session")
def server(runs, tmp_path_factory):
    """The server over these runs."""
    with ViewServer([runs], cache=tmp_path_factory.mktemp("cache")) as started:
        wait_for(lambda: all(_read(run) for run in started.answers.runs()["runs"]), 300)
        yield started


@pytest.fixture
def serve(tmp_path):
    """Starts servers, which end after the pages that look at them: ``serve([folder])``."""
    with ExitStack() as running:

        def start(roots):
            cache = tmp_path / f"cache-{len(serving)}"
            serving.append(running.enter_context(ViewServer(roots, cache=cache)))
            return serving[-1]

        serving: list[ViewServer] = []
        start.serving = serving
        yield start


@pytest.fixture
def pages(chromium, serve, server):
    """Opens pages of the servers of a test, and checks what they did: ``pages.open(server.link)``."""

    def here(url):
        return any(url.startswith(one.address) for one in (server, *serve.serving))

    with watched(chromium.browser, here) as opened:
        yield opened


@pytest.fixture
def look(pages, server):
    """Opens a view of the server over the runs: ``look("runs/roc-0/groups")``."""

    def open_view(view: str = "", **options):
        return pages.open(f"{server.link}#/{view}", **options)

    return open_view


@pytest.fixture
def from_disk(chromium):
    """Opens pages of files, which may ask for nothing else: ``from_disk(file, "runs/roc-0")``."""
    opened_files: list[str] = []
    with watched(chromium.browser, lambda url: url.partition("#")[0] in opened_files) as pages:

        def open_file(file, view=""):
            opened_files.append(file.as_uri())
            return pages.open(f"{file.as_uri()}#/{view}")

        yield open_file
