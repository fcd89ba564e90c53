"""Claims about Ctrl-C at the terminal: a word at once, what was done is kept, a second one does not wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ID = "rstar2/MathTool-v0"
SLOW = """\
import time

class Slow:
    def reset(self, observation, info, *, seed):
        pass

    def act(self, observation, info):
        time.sleep({seconds})
        return "<answer>1</answer>"
"""

PROGRESS = b"evaluation |"
"""Beginning of the lines that show how far an evaluation is."""


@contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process group of its own: the terminal sends its signal to sandbox and verifier too."""
    command = [sys.executable, "-u", "-c", "from rstar2_env.cli import main; main()", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(process: subprocess.Popen[bytes], path: Path, lines: int = 1) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never had {lines} lines: {process.communicate()[1].decode()}")


def interrupt(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize("name", ["rstar2", "another_program.py"])
def test_ctrl_c_while_modules_are_imported_is_one_line(name, tmp_path):
    program = """
        import os, signal, sys
        class Interrupts:
            def find_spec(self, name, path=None, target=None):
                if name == "typer":
                    os.kill(os.getpid(), signal.SIGINT)
        from rstar2_env.cli import main
        sys.meta_path.insert(0, Interrupts())
        main(["list", "envs"])
    """
    # The command ends without a word until its function is called; another program that imports it never does.
    (tmp_path / name).write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(tmp_path / name)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


def test_a_ctrl_c_that_python_drops_in_a_destructor_is_repeated(tmp_path):
    program = """
        import os, signal, sys, time
        class Dropped:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0)
        class Interrupts:
            def find_spec(self, name, path=None, target=None):
                if name == "rstar2_env.evaluation.cards":
                    Dropped()
                    time.sleep(10)
        from rstar2_env.cli import main
        sys.meta_path.insert(0, Interrupts())
        main(["list", "envs"])
    """
    (tmp_path / "rstar2").write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(tmp_path / "rstar2")], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


@pytest.mark.slow
def test_eval_keeps_what_was_done_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "out.jsonl"
    command = ("eval", ID, "--agent", "oracle", "--problems", "arithmetic", "-n", "20000", "--out", out, "--json")
    with running(*command) as process:
        wait_for(process, out)
        interrupt(process)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert b"Interrupted: waiting for " in stderr
    assert b"--resume" in stderr
    assert b"Traceback" not in stderr
    figures = json.loads(stdout)
    assert figures["interrupted"]
    assert figures["unavailable"] == 0
    assert figures["played"] == len(out.read_text().splitlines()) > 0


@pytest.mark.slow
def test_a_word_comes_at_once_and_a_second_ctrl_c_does_not_wait_for_a_slow_agent(tmp_path):
    agent, out = tmp_path / "slow.py", tmp_path / "out.jsonl"
    agent.write_text(SLOW.format(seconds=60))
    command = ("eval", ID, "--agent", f"{agent}:Slow", "--problems", "arithmetic", "-n", "8", "--workers", "4")
    with running(*command, "--out", out) as process:
        assert process.stderr is not None
        while not out.exists():
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.02)
        time.sleep(2)  # the file is made before the first episode begins
        began = time.monotonic()
        interrupt(process)
        said = next(line for line in process.stderr if not line.startswith(PROGRESS))
        assert time.monotonic() - began < 10
        assert said.startswith(b"Interrupted: waiting for the 4 episodes")
        assert b"Ctrl-C again" in said
        interrupt(process)
        _, stderr = process.communicate(timeout=30)
        assert time.monotonic() - began < 40
    assert process.returncode == 130
    assert [line for line in stderr.splitlines() if not line.startswith(PROGRESS)] == [b"Interrupted."]


@pytest.mark.slow
def test_traces_that_were_interrupted_go_on_to_the_file_of_an_uninterrupted_run(tmp_path):
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    command = ("traces", "--problems", "arithmetic", "-n", "600", "--error-rate", "0.4", "--json", "--workers", "4")
    with running(*command, "--out", out) as process:
        wait_for(process, out, lines=20)
        interrupt(process)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert b"Interrupted: waiting for " in stderr
    kept = json.loads(stdout)["kept"]
    assert 20 <= kept == len(out.read_bytes().splitlines()) < 600
    with running(*command, "--out", out, "--resume") as process:
        figures = json.loads(process.communicate(timeout=400)[0])
    with running(*command, "--out", whole) as process:
        process.communicate(timeout=400)
    assert figures["kept"] + figures["dropped"] == 600
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_validate_says_how_far_it_came(tmp_path):
    problems = tmp_path / "many.jsonl"
    problems.write_text("".join(json.dumps({"question": f"{n}?", "answer": n}) + "\n" for n in range(100_000)))
    with running("validate", ID, "--problems", problems, "--json") as process:
        assert process.stderr is not None
        assert any(line.startswith(b"checking: ") for line in process.stderr)  # some seconds after it began
        interrupt(process)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert b"Interrupted: waiting for " in stderr
    found = json.loads(stdout)
    assert found["interrupted"]
    assert 0 < found["n"] < 100_000
    assert found["contract"] == []
