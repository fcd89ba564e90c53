"""The wheel and the source distribution hold one package, the four folders in it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from places import ROOT

pytestmark = pytest.mark.slow

USE = """
import gymnasium as gym, rstar2_env, rstar2_env.agents, rstar2_env.trainers
env = gym.make("rstar2/MathTool-v0")
env.reset(seed=0)
print(rstar2_env.__file__, *rstar2_env.trainers.TRAINERS.names(), *rstar2_env.agents.AGENTS.names())
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A source distribution of this checkout, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    return folder


def test_an_installed_wheel_works_away_from_the_checkout(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert (tmp_path / "rstar2_env" / "py.typed").exists()
    assert {path.name for path in tmp_path.iterdir() if path.is_dir() and "dist-info" not in path.name} == {
        "rstar2_env"
    }
    printed = run(sys.executable, "-c", USE, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}).split()
    assert Path(printed[0]).is_relative_to(tmp_path)
    assert {"grpo", "grpo_roc", "oracle"} <= set(printed[1:])


def test_a_folder_imported_under_its_bare_name_says_what_to_do():
    done = subprocess.run(
        [sys.executable, "-c", "import trainers"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "import rstar2_env.trainers" in done.stderr
