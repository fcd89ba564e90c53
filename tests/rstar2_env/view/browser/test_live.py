"""What a run writes appears by itself: of a writer in another process, and of a real training run with its tokens."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from places import SUPPORT
from playwright.sync_api import expect
from waiting import wait_for

from rstar2_env.core.run_folder import read_run

_WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from made_runs import MadeRun, MadeTraining
training = MadeTraining(Path(sys.argv[1]), MadeRun(steps=9, problems=12, end="finished", eval_every=0))
for step in range(1, 10):
    sys.stdin.readline()
    training.step(step)
    print(step, flush=True)
training.end()
"""


def test_the_page_follows_a_run_that_another_process_writes(pages, serve, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    command = [sys.executable, "-c", _WRITER, str(runs / "live"), str(SUPPORT)]
    server = serve([runs])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:

        def write(step):
            writer.stdin.write("\n")
            writer.stdin.flush()
            assert writer.stdout.readline().strip() == str(step)

        page = pages.open(server.link)
        write(1)
        page.get_by_role("link", name="live", exact=True).click()
        facts = page.locator(".page-facts")
        expect(facts).to_contain_text("step 1 of 9")
        table = pages.open(f"{server.link}#/runs/live/episodes")
        for step in (2, 3):
            write(step)
            expect(facts).to_contain_text(f"step {step} of 9")
            expect(facts).to_contain_text("running")
        played = sum(len(read_run(runs / "live").episodes(step)) for step in (1, 2, 3))
        expect(table.get_by_role("grid")).to_have_attribute("aria-rowcount", str(played + 1))
        for step in range(4, 10):
            write(step)
        expect(facts).to_contain_text("step 9 of 9")
        expect(facts).to_contain_text("finished")
        assert writer.wait(60) == 0


_PAUSE = """
import sys
class Pause:
    def on_step_begin(self, args, state, control, **_):
        if state.global_step:
            sys.stdin.readline()  # a step is written: until the test has seen it
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_page_follows_a_real_training_run_and_shows_its_tokens(pages, serve, tmp_path, tiny_model):
    problems = tmp_path / "problems.jsonl"
    problems.write_text("".join(json.dumps({"question": f"{n} + 1?", "answer": str(n + 1)}) + "\n" for n in range(4)))
    (tmp_path / "pause.py").write_text(_PAUSE)
    runs = tmp_path / "runs"
    runs.mkdir()
    command = [sys.executable, "-m", "rstar2_env.cli", "train", "grpo", "--model", str(tiny_model), "--steps", "3"]
    for name, value in {"problems": problems, "eval-problems": problems, "out": runs / "real"}.items():
        command += [f"--{name}", str(value)]
    # An untrained model solves nothing; its episodes differ in their lengths, so that some train.
    options = {"rollout.problems_per_step": 1, "rollout.group_size": 4, "rollout.max_episode_tokens": 96}
    options |= {"run.keep_tokens": "true", "reward": "overlong:limit=96,buffer=90", "run.threads": 1}
    options["hook"] = f"{tmp_path / 'pause.py'}:Pause"
    command += [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    server, log = serve([runs]), tmp_path / "said"
    with (
        log.open("w") as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT, text=True) as training,
    ):
        page = pages.open(server.link)
        name = page.get_by_role("link", name="real", exact=True)
        wait_for(lambda: name.count() > 0 or training.poll() is not None, 500)
        assert training.poll() is None, log.read_text()[-3000:]
        name.click()
        facts = page.locator(".page-facts")
        for step in (1, 2):
            wait_for(lambda step=step: f"step {step} of 3" in facts.inner_text() or training.poll() is not None, 500)
            assert training.poll() is None, log.read_text()[-3000:]
            expect(facts).to_contain_text("running")
            expect(facts).to_contain_text(f"step {step} of 3")
            assert max(read_run(runs / "real").steps) == step, "the training waits"
            training.stdin.write("\n")
            training.stdin.flush()
        expect(facts).to_contain_text("step 3 of 3", timeout=240_000)
        expect(facts).to_contain_text("finished", timeout=240_000)
        assert training.wait(240) == 0, log.read_text()[-3000:]
    run = read_run(runs / "real")
    kept = next(entry for step in run.steps for entry in run.tokens(step))
    page = pages.open(f"{server.link}#/runs/real/episodes/train-{kept.step}-{kept.member}?tab=tokens")
    shown = page.locator(".tokens .token")
    expect(shown).to_have_count(len(kept.completion_ids))
    shown.nth(0).click()
    expect(page.locator(".token-detail")).to_contain_text(f"id {kept.completion_ids[0]}")
    expect(page.locator(".token-detail")).to_contain_text("log-probability")
    page.get_by_label("Colour by").select_option(label="Importance ratio")
    assert "⟨" not in shown.nth(0).inner_text(), "the tokenizer of the run spells its tokens"
