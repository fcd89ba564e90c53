"""When Chromium shows what, of a run of many episodes: the part of ``benchmarks/view.py`` that ``--browser`` adds.

Every time is taken in the page, up to the frame that shows it: a curve is a stroke of a path on a plot, a row is one
that holds its episode. Each address is opened in a new context (nothing of the page is in the browser's cache) of a
browser that runs already, from a server of its own process. Without an index each address has a server that begins to
read then; the order is asked for while it still reads, the row far below once every episode is known.

What it does not show: the start of the browser, other browsers, and a slow line between them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_MS = 120_000
_MARK = """
window.marks = {};
const mark = (name) => requestAnimationFrame(() => { window.marks[name] ??= performance.now(); });
const stroke = CanvasRenderingContext2D.prototype.stroke;
CanvasRenderingContext2D.prototype.stroke = function (...given) {
  if (given[0] instanceof Path2D) mark("curve");
  return stroke.apply(this, given);
};
new MutationObserver(() => document.querySelector(".table-body [role=row] a") && mark("row"))
  .observe(document, { childList: true, subtree: true });
window.shown = (holds) => new Promise((done, fail) => {
  const begun = performance.now();
  const look = () => {
    const taken = performance.now() - begun;
    if (holds()) done(taken);
    else if (taken > PATIENCE) fail(new Error(`not shown within ${taken} ms`));
    else requestAnimationFrame(look);
  };
  look();
});
""".replace("PATIENCE", str(PATIENCE_MS))
_SORT = """() => {
  const heads = [...document.querySelectorAll("[role=columnheader]")];
  const at = heads.findIndex((head) => head.innerText.startsWith("Tokens"));
  const rows = () => [...document.querySelectorAll(".table-body [role=row]")].filter((row) => row.querySelector("a"));
  const first = rows()[0].innerText;
  heads[at].querySelector("button").click();
  return window.shown(() => {
    const shown = rows();
    const tokens = shown.map((row) => Number(row.children[at].innerText.replaceAll(",", "")));
    const falls = tokens.every((value, place) => place === 0 || value <= tokens[place - 1]);
    return shown.length > 5 && falls && shown[0].innerText !== first;
  });
}"""
_SCROLL = """(row) => {
  const grid = document.querySelector("[role=grid]");
  grid.scrollTop = (row - 1) * document.querySelector(".table-body [role=row]").offsetHeight;
  return window.shown(() => document.querySelector(`.table-body [aria-rowindex="${row + 1}"] a`));
}"""


def measure_pages(run: Path, base: Path, row: int) -> dict[str, Any]:
    """Seconds until the browser shows a curve, a row, a sorted table and a row far below.

    Args:
        run: Folder of the run.
        base: An empty folder, for indexes.
        row: The row to scroll to, from 1; the last one where there are fewer.

    Returns:
        By what is shown, the seconds without an index and with one; and the number of the ``row``.
    """
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from chromium import Chromium

    chromium = Chromium()
    try:
        with _server(run, base / "curve") as begun:
            curve = _curve(chromium.browser, begun)
        with _server(run, base / "table") as begun:
            table, row = _table(chromium.browser, begun, row)
        with _server(run, base / "table") as begun:
            curve_again = _curve(chromium.browser, begun)
            table_again, _ = _table(chromium.browser, begun, row)
    finally:
        chromium.close()
    first, again = curve | table, curve_again | table_again
    return {"row": row, "seconds": {name: [round(first[name], 2), round(again[name], 2)] for name in first}}


@contextmanager
def _server(run: Path, cache: Path) -> Iterator[str]:
    """A server in a process of its own; gives the address of the run's page."""
    cache.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "rstar2_env.cli", "view", str(run), "--port", "0", "--no-browser"]
    environment = os.environ | {"RSTAR2_VIEW_CACHE": str(cache)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as serving:
        try:
            said, link = "", None
            while link is None:
                line = serving.stderr.readline() if serving.stderr else ""
                if not line:
                    raise SystemExit(f"The server did not start: {said}")
                said, link = said + line, re.search(r"http://[^/\s]+/", line)
            yield f"{link[0]}#/runs/{_ask(link[0])['run']}"
        finally:
            serving.send_signal(signal.SIGINT)


def _ask(server: str) -> dict[str, Any]:
    """What the list of runs says of the only one."""
    with urllib.request.urlopen(f"{server}api/runs", timeout=120) as answer:
        row: dict[str, Any] = json.loads(answer.read())["runs"][0]
    return row


@contextmanager
def _page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(_MARK)
    try:
        page = context.new_page()
        page.goto(address)
        yield page
    finally:
        context.close()


def _marked(page: Any, name: str) -> float:
    """Seconds from the navigation to a mark."""
    page.evaluate("name => window.shown(() => name in window.marks)", name)
    return float(page.evaluate("name => window.marks[name]", name)) / 1000


def _curve(browser: Any, run: str) -> dict[str, float]:
    with _page(browser, run) as page:
        return {"curve": _marked(page, "curve")}


def _table(browser: Any, run: str, row: int) -> tuple[dict[str, float], int]:
    with _page(browser, f"{run}/episodes") as page:
        found = {"first row": _marked(page, "row"), "sorted": page.evaluate(_SORT) / 1000}
        server, begun = run.partition("#")[0], time.monotonic()
        while (told := _ask(server))["indexing"] is not None or told["searchable"] is not None:
            if time.monotonic() - begun > 3600:
                raise SystemExit("The server is still reading after an hour.")
            time.sleep(0.2)
        row = min(row, sum(told["episodes"].values()))
        shown = "row => window.shown(() => +document.querySelector('[role=grid]').ariaRowCount > row)"
        page.evaluate(shown, row)
        found["far row"] = page.evaluate(_SCROLL, row) / 1000
    return found, row


def page_table(figures: dict[str, Any]) -> list[str]:
    """What ``measure_pages`` found, as lines of Markdown."""
    words = {
        "curve": "first curve drawn, after the navigation",
        "first row": "first row of the table of episodes, after the navigation",
        "sorted": "the table sorted by tokens, after the click",
        "far row": f"row {figures['row']:,}, after the scroll",
    }
    return [
        "| in Chromium | nothing indexed yet, s | index there, s |",
        "|---|---|---|",
        *(f"| {words[name]} | {first:g} | {again:g} |" for name, (first, again) in figures["seconds"].items()),
    ]
