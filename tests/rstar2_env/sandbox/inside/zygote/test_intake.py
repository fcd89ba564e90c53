"""A child reads exactly its job, and its limits are only lowered."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rstar2_env.sandbox.inside.wire import pack, unpack
from rstar2_env.sandbox.inside.zygote import intake


@pytest.fixture
def job_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The writing end of the job pipe."""
    reading, writing = os.pipe()
    monkeypatch.setattr(intake, "JOB_FD", reading)
    yield writing
    os.close(reading)
    os.close(writing)


def test_one_job_is_read_and_the_next_stays_in_the_pipe(job_pipe: int) -> None:
    for number in range(2):
        os.write(job_pipe, pack({"number": number}, [b"abc" * number, b"\0"]))
    for number in range(2):
        frame = intake.read_job()
        assert frame is not None
        assert (frame.header["number"], frame.blobs) == (number, [b"abc" * number, b"\0"])


def test_a_pipe_that_is_closed_before_the_end_holds_no_job(job_pipe: int) -> None:
    os.write(job_pipe, pack({"code": "print(1)"})[:-1])
    os.dup2(os.open(os.devnull, os.O_WRONLY), job_pipe)  # the fixture closes the number
    assert intake.read_job() is None


def test_files_are_put_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    intake.write_files(["a.txt", "deep/er/b.bin"], unpack(pack({}, [b"code", b"input", b"one", b"\0\xff"])))
    assert (tmp_path / "a.txt").read_bytes() == b"one"
    assert (tmp_path / "deep" / "er" / "b.bin").read_bytes() == b"\0\xff"


def test_a_limit_goes_down_and_never_up() -> None:
    program = """
import resource
from rstar2_env.sandbox.inside.zygote.intake import limit
for soft, hard in ((50, 60), (70, 80), (20, 30), (25, 90)):
    limit(resource.RLIMIT_NOFILE, soft, hard)
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:4] == ["50 60", "60 60", "20 30", "25 30"]


def test_the_next_cell_gets_its_cpu_time_as_far_as_the_session_has_any() -> None:
    program = """
import resource, time
from rstar2_env.sandbox.inside.zygote.intake import bound_cpu
resource.setrlimit(resource.RLIMIT_CPU, (5, 10))
for seconds in (3, 7, 100):
    bound_cpu({"cpu_s": seconds})
    print(*resource.getrlimit(resource.RLIMIT_CPU), int(time.process_time()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for line, seconds in zip(done.stdout.splitlines(), (3, 7, 100), strict=True):
        soft, hard, spent = map(int, line.split())
        # In whole seconds of the process's time, and some of it was spent before.
        assert soft == min(10, spent + seconds + 1)
        assert hard == 10
