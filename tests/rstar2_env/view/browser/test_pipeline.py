"""A pipeline as the browser shows it: its stages with their states, live, and the run of a stage."""

from __future__ import annotations

import re
import shutil

import pytest
from chromium import barriers
from letter_stages import CHAIN, ORDER, run, written
from made_runs import write_evaluation
from playwright.sync_api import expect


@pytest.mark.slow
def test_the_stages_of_a_pipeline_are_shown_while_it_runs(pages, serve, tmp_path):
    pipeline, folder = written(tmp_path, CHAIN), tmp_path / "runs" / "chain"
    run(pipeline, folder, until="b")
    write_evaluation(tmp_path / "evaluation", problems=4)
    shutil.copytree(tmp_path / "evaluation", folder / "stages" / "b", dirs_exist_ok=True)
    page = pages.open(f"{serve([folder.parent]).link}#/runs/chain")
    stages = page.get_by_role("region", name="Stages").get_by_role("listitem")
    expect(stages.nth(0)).to_contain_text("letters")
    done = stages.filter(has_text="finished")
    expect(done).to_have_count(2)
    run(pipeline, folder)
    expect(done).to_have_count(len(ORDER))
    assert [stage.get_by_role("heading").inner_text() for stage in stages.all()] == list(ORDER)
    expect(stages.nth(1)).to_contain_text("length 3")
    assert barriers(page) == []
    page.get_by_role("link", name="b", exact=True).click()
    expect(page).to_have_url(re.compile(r"#/runs/chain-stages-b$"))
    expect(page.get_by_label("Figures", exact=True)).to_contain_text("4 problems")
