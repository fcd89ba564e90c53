"""``benchmarks/view.py --browser``: what it measures in Chromium is there, each time without an index and with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from chromium import missing
from made_runs import write_many

from rstar2_env.view.server.page import FOLDER


@pytest.mark.slow
def test_a_curve_rows_an_order_and_a_row_far_below_are_timed(
    benchmark_named: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    if why := missing():
        pytest.skip(why)
    if not (FOLDER / "index.html").exists():
        pytest.skip("the page is not built (make view)")
    there = write_many(tmp_path / "many", 1500, processes=1)
    program = benchmark_named("view_page")
    found = program.measure_pages(tmp_path / "many", tmp_path, 50_000)
    assert found["row"] == there
    assert set(found["seconds"]) == {"curve", "first row", "sorted", "far row"}
    assert all(len(times) == 2 and min(times) >= 0 for times in found["seconds"].values())
    assert min(found["seconds"]["curve"] + found["seconds"]["first row"]) > 0
    assert f"| row {there:,}, after the scroll |" in "\n".join(program.page_table(found))
