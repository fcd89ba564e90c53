"""The pytest fixtures work in a stranger's test suite."""

import subprocess
import sys

import pytest

SUITE = """
from rstar2_env.sandbox.job import Job
from rstar2_env.tools import PYTHON_TOOL_NAME

closed = []

def test_the_sandbox_runs_nothing(stub_sandbox):
    assert stub_sandbox.run(Job("1/0")).stdout == "stub\\n"

def test_the_tool_shows_its_arguments(stub_tool):
    assert stub_tool.spec.name == "stub"

def test_an_environment_plays_on_stubs(make_env, stub_sandbox):
    env = make_env("rstar2/MathTool-v0", sandbox=stub_sandbox)
    env.reset(seed=1)
    call = env.unwrapped.dialect.format_call(PYTHON_TOOL_NAME, {"code": "print(1)", "input": ""})
    text, *_ = env.step(call)
    assert "stub" in text
    close, env.unwrapped.close = env.unwrapped.close, lambda: closed.append(True)

def test_the_environment_was_closed():
    assert closed
"""


@pytest.mark.slow
def test_a_strangers_suite_passes(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["rstar2_env.testing.fixtures"]\n')
    (tmp_path / "test_mine.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_the_checks_need_no_pytest():
    program = "import sys, rstar2_env.testing; assert 'pytest' not in sys.modules; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=400)
