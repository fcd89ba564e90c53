"""Environments of other distributions join by themselves, and one that is broken does no harm but to itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

GOOD = """
import gymnasium as gym
from rstar2_env.envs_registry.math_tool import MathToolEnv

class TheirEnv(MathToolEnv):
    '''A world of another distribution.'''

    random_baseline = 0.5

gym.register("theirs/World-v0", entry_point=TheirEnv)
"""

FUNCTION = """
import gymnasium as gym

def register():
    gym.register("theirs/ByFunction-v0", entry_point="rstar2_env.envs_registry.math_tool:MathToolEnv")
"""


def distribution(site: Path, name: str, source: str, point: str) -> None:
    """What an installer leaves behind: a module and its metadata."""
    module = name.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rstar2_env.envs]\n{name} = {point}\n")


def run(site: Path, program: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
    )


def test_an_entry_point_names_a_module_that_registers_its_ids(tmp_path):
    distribution(tmp_path, "their-worlds", GOOD, "their_worlds")
    done = run(
        tmp_path,
        """
        import json
        import gymnasium as gym
        import rstar2_env
        from rstar2_env.core.options.plugins import plugin_ids
        gym.make("theirs/World-v0").reset(seed=1)
        print(json.dumps(plugin_ids))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"theirs/World-v0": "their-worlds"}
    assert done.stderr == ""


def test_or_a_function_that_does(tmp_path):
    distribution(tmp_path, "their-worlds", FUNCTION, "their_worlds:register")
    done = run(tmp_path, 'import rstar2_env, gymnasium as gym; print(gym.spec("theirs/ByFunction-v0").id)')
    assert done.stdout.strip() == "theirs/ByFunction-v0"


@pytest.mark.parametrize("source", ["import no_such_package", "raise SystemExit(3)", "def (", "x = 1"])
def test_a_broken_one_warns_with_its_distributions_name_and_the_others_are_there(tmp_path, source):
    distribution(tmp_path, "broken-worlds", source, "broken_worlds:register")
    distribution(tmp_path, "their-worlds", GOOD, "their_worlds")
    done = run(
        tmp_path,
        """
        import gymnasium as gym
        import rstar2_env
        print(gym.spec("theirs/World-v0").id, gym.spec("rstar2/MathTool-v0").id)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["theirs/World-v0", "rstar2/MathTool-v0"]
    assert "RuntimeWarning" in done.stderr
    assert "'broken-worlds'" in done.stderr


def test_they_are_listed_with_their_distribution(tmp_path):
    distribution(tmp_path, "their-worlds", GOOD, "their_worlds")
    done = run(tmp_path, 'from rstar2_env.cli import main; main(["list", "envs", "--json"])')
    listed = json.loads(done.stdout)
    assert listed["theirs/World-v0"] == {
        "what": "A world of another distribution.",
        "knobs": {"problems": "arithmetic"},
        "random_baseline": "0.5",
        "distribution": "their-worlds",
    }
    assert listed["rstar2/MathTool-v0"]["distribution"] == "rstar2-env"


def test_the_catalogue_has_every_entry_point_without_an_environment(tmp_path):
    distribution(tmp_path, "their-worlds", GOOD, "their_worlds")
    points = tmp_path / "their_worlds-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"{points.read_text()}gone = no_such_module\nidle = textwrap:dedent.__name__\n")
    program = 'from rstar2_env.cli import main; main(["list", "envs", "--all", "--no-check", "--json"])'
    done = run(tmp_path, program)
    assert done.returncode == 1, done.stderr
    listed = {entry["env_id"]: entry for entry in json.loads(done.stdout)}
    assert (listed["theirs/World-v0"]["ok"], listed["theirs/World-v0"]["validation"]) == (None, "not run")
    assert "no_such_module cannot be loaded: ModuleNotFoundError" in listed["gone"]["validation"]
    assert (listed["idle"]["ok"], listed["idle"]["validation"]) == (
        False,
        "the entry point textwrap:dedent.__name__ does not register an environment",
    )
