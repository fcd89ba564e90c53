"""Claims about Ctrl-C in ``rstar2 train``: it says how to go on, and the run's folder serves to do so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import prepared
import pytest
from cli_runner import run


@pytest.mark.train
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_in_order_and_the_configuration_can_be_given_back(tiny_model, tmp_path, number, code):
    out = tmp_path / "run"
    words = ["train", "grpo_roc", "--model", str(tiny_model), "--problems", "arithmetic", "--out", str(out)]
    words += ["--steps", "1000", "--group-size", "2", "--problems-per-step", "2", "--save-every", "1"]
    words += ["--set", "max_episode_tokens=32", "--set", "threads=1"]
    program = ["-c", "from rstar2_env.cli import main; main()", *words]
    process = prepared.popen(program, env=os.environ, stderr=subprocess.PIPE, start_new_session=True)
    try:
        deadline = time.monotonic() + 400
        while not (out / "checkpoint-1" / "trainer_state.json").exists() and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)
        assert (out / "checkpoint-1" / "trainer_state.json").exists()
        os.killpg(process.pid, number)
        stderr = process.communicate(timeout=300)[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == code
    assert stderr.count("To resume, repeat the command with --resume.") == 1
    assert "Interrupted" not in stderr
    assert "Traceback" not in stderr
    assert json.loads((out / "config.json").read_text())["run"]["steps"] == 1000
    again = run("train", "grpo_roc", "--config", out / "config.json", "--out", out)
    assert again.exit_code == 2
    assert "already holds a training run" in again.output
    assert "(--resume or --overwrite)" in again.output
