"""Training in processes of its own: the command, its end, and the same weights as in the runner's process."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from guesser import make_guesser, write_problems
from killed_pipeline import settings_of

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.pipeline import launched
from rstar2_env.trainers.pipeline.base import Work
from rstar2_env.trainers.pipeline.launched import StageFailedError, command, run_launched

WORDS = ["train", "--config", "c.json"]
RSTAR2 = ["-m", "rstar2_env.cli"]


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("python", [sys.executable, *RSTAR2, *WORDS]),
        ("torchrun --nproc_per_node 8", ["torchrun", "--nproc_per_node", "8", *RSTAR2, *WORDS]),
        (
            "accelerate launch --config_file configs/accelerate/x.yaml",
            ["accelerate", "launch", "--config_file", "/home/configs/accelerate/x.yaml", *RSTAR2, *WORDS],
        ),
        (
            "rstar2 launch --serve 0-3 --train 4-7 --",
            [sys.executable, *RSTAR2, "launch", "--serve", "0-3", "--train", "4-7", "--", *WORDS[1:]],
        ),
    ],
)
def test_each_launcher_is_given_what_it_takes(launch, expected):
    assert command(launch, WORDS, Path("/home")) == expected


@pytest.mark.parametrize(("launch", "words"), [("", WORDS), ("rstar2 launch --train 0 --", ["sft", "--traces", "t"])])
def test_what_cannot_be_started_is_refused(launch, words):
    with pytest.raises(ConfigurationError):
        command(launch, words, Path())


def test_an_error_of_the_command_is_the_stages(tmp_path):
    run_launched("python", ["wrappers"], Work(tmp_path), tmp_path)
    with pytest.raises(StageFailedError, match="exit code 2"):
        run_launched("python", ["train", "no_such_trainer"], Work(tmp_path), tmp_path)


@pytest.mark.parametrize("code", [130, 143])
def test_a_command_that_was_told_to_end_interrupts_the_run(tmp_path, code):
    with pytest.raises(KeyboardInterrupt):
        run_launched(f"python -c 'raise SystemExit({code})'", ["train"], Work(tmp_path), tmp_path)


def test_the_command_has_the_files_that_the_stage_was_given(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / "look.py").write_text("import os, sys; print(os.fstat(int(sys.argv[1])).st_ino, file=open('ino', 'w'))")
    with (tmp_path / "lock").open("rb") as lock, contextlib.chdir(tmp_path):
        work = Work(tmp_path, inherited=(lock.fileno(),))
        run_launched(f"python {tmp_path / 'look.py'} {lock.fileno()}", ["train"], work, tmp_path)
    assert int((tmp_path / "ino").read_text()) == (tmp_path / "lock").stat().st_ino


@pytest.mark.parametrize(("raised", "seconds", "code"), [(KeyboardInterrupt, 0.2, 0), (OSError, 300, -signal.SIGTERM)])
def test_a_command_is_told_to_end_unless_the_terminal_told_it(tmp_path, monkeypatch, raised, seconds, code):
    begun = []

    class Process(subprocess.Popen):
        """A process for which the first wait fails."""

        def wait(self, timeout=None):
            if self not in begun:
                begun.append(self)
                raise raised
            return super().wait(timeout)

    monkeypatch.setattr(launched, "subprocess", SimpleNamespace(Popen=Process))
    with pytest.raises(raised):
        run_launched(f"python -c 'import time; time.sleep({seconds})'", ["train"], Work(tmp_path), tmp_path)
    assert [one.returncode for one in begun] == [code]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends what a dead process had started")
def test_what_was_launched_ends_with_the_runner(tmp_path):
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text(
        "import os, sys, time\n"
        f"open({str(tmp_path / 'pid.part')!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(tmp_path / 'pid.part')!r}, {str(tmp_path / 'pid')!r})\n"
        "time.sleep(300)\n"
    )
    program = (
        "from pathlib import Path; from rstar2_env.trainers.pipeline.base import Work\n"
        "from rstar2_env.trainers.pipeline.launched import run_launched\n"
        f"run_launched('python {sleeper}', ['train'], Work(Path({str(tmp_path)!r})), Path())"
    )
    runner = subprocess.Popen([sys.executable, "-c", program])
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "pid").exists():
            assert runner.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        launched = int((tmp_path / "pid").read_text())
        runner.kill()
        runner.wait()
        while Path(f"/proc/{launched}").exists() and "\nState:\tZ" not in Path(f"/proc/{launched}/status").read_text():
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        runner.kill()
        runner.wait()
        if (tmp_path / "pid").exists() and Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists():
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.train
def test_a_launched_stage_leaves_the_weights_that_it_leaves_in_the_runners_process(tmp_path):
    pytest.importorskip("trl", reason="this trains: the extra 'train'")
    from rstar2_env.trainers.pipeline.stages.train import Train

    model, problems = make_guesser(tmp_path / "model"), write_problems(tmp_path / "problems.jsonl")
    options = settings_of(model, problems)["stage1"]["options"] | {"eval": {"every": 0}, "save_every": 0}
    env = {"dialect_options": {"system": "", "instruction": ""}}
    weights = []
    for launch in (None, "python"):
        folder = tmp_path / str(launch)
        folder.mkdir()
        stage = Train(
            model=str(model),
            recipe="grpo_roc",
            problems=str(problems),
            steps=3,
            launch=launch,
            options={**options, "env": env},
        )
        assert stage.run(Work(folder, seed=3))["steps"] == 3
        weights.append((folder / "final" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert weights[0] != (model / "model.safetensors").read_bytes()
