"""A worker that hangs, grows, crashes or is killed costs one request at most, and none outlives its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.verification.options import VerifyOptions
from rstar2_env.verification.verdict import Reason
from rstar2_env.verification.workers import process as process_module
from rstar2_env.verification.workers.pool import WorkerPool
from rstar2_env.verification.workers.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError
from rstar2_env.verification.workers.wire import MAX_BYTES, WireError, body_length, decode, encode

OPTIONS = VerifyOptions(timeout_s=30.0)
EASY = OPTIONS.request("x+1", "1+x", None)
# math-verify by itself, to have something that hangs: nothing of ours does.
HANGS = {"alone": "math-verify", "gold": "7", "answer": r"$\prod_{k=1}^{10^7} k$", "timeout_s": 30.0}

# Every element has to be compared with every other: the longest computation of ours that is known.
TERMS = [rf"\sqrt{{{n * n + 1}}}+{n}x" for n in range(1, 199)]
SLOW = OPTIONS.request(rf"\{{{','.join(TERMS)}\}}", rf"\{{{','.join([*TERMS, 'x', '2x'])}\}}", None)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(1)
    yield pool
    pool.close()


def ask(pool: WorkerPool, request: dict[str, Any], timeout_s: float = 30.0) -> Reason:
    return pool.submit(request, timeout_s).result(120).reason


def test_a_hang_costs_one_deadline_and_the_next_request_nothing(pool: WorkerPool, ended: Callable[[int], bool]) -> None:
    ask(pool, {"alone": "math-verify", "gold": "1", "answer": "1", "timeout_s": 30.0})  # load the library first
    [worker] = pool.pids()
    start = time.perf_counter()
    assert ask(pool, HANGS, timeout_s=0.5) is Reason.TIMEOUT
    assert time.perf_counter() - start > 0.4  # a worker that never ends is caught by the limit of the test
    assert ended(worker)
    assert ask(pool, EASY) is Reason.EQUAL


def test_hostile_texts_do_not_delay_honest_ones(pool: WorkerPool) -> None:
    ask(pool, EASY)
    hostile = [pool.submit({**SLOW, "question": str(n)}, 5.0) for n in range(4)]
    assert ask(pool, EASY) is Reason.EQUAL
    assert sum(future.done() for future in hostile) < 2  # without a lane for the slow, all four come first


def test_a_text_that_was_slow_starts_in_the_slow_lane(pool: WorkerPool) -> None:
    ask(pool, EASY)
    assert ask(pool, HANGS, timeout_s=1.0) is Reason.TIMEOUT
    assert ask(pool, EASY) is Reason.EQUAL
    again = pool.submit(HANGS, 1.0)
    workers = set(pool.pids())
    assert ask(pool, EASY) is Reason.EQUAL
    assert workers <= set(pool.pids())  # the quick worker was not touched
    assert again.result(60).reason is Reason.TIMEOUT


def test_an_honest_text_that_takes_long_is_answered(pool: WorkerPool) -> None:
    # SymPy has to simplify it, which takes longer than the quick lane allows.
    request = OPTIONS.request(r"\int_0^1 x^2 dx", r"\int_0^1 (x+1)^2-2x-1 dx", None)
    assert ask(pool, request) is Reason.EQUAL


def test_loading_a_library_is_not_counted_against_the_deadline(pool: WorkerPool) -> None:
    # Importing math-verify takes longer than this in a fresh worker.
    request = {"alone": "math-verify", "gold": "$1$", "answer": "$1$", "timeout_s": 0.3}
    assert ask(pool, request, timeout_s=0.3) is Reason.EQUAL


def test_the_kernel_limits_what_a_worker_may_use() -> None:
    worker = WorkerProcess(memory_mb=1024)
    try:
        limits = Path(f"/proc/{worker.pid}/limits").read_text()
        found = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()[1:]}
        assert found["Max address space"] == str(1024 << 20)
        assert found["Max file size"] == "0"
        assert found["Max core file size"] == "0"
    finally:
        worker.kill()


def test_a_request_that_needs_more_memory_than_there_is_does_not_spoil_the_next() -> None:
    pool = WorkerPool(1, memory_mb=60)  # too little for SymPy
    assert ask(pool, {"alone": "math-verify", "gold": "$7$", "answer": "$7$", "timeout_s": 30.0}) is not Reason.EQUAL
    assert ask(pool, EASY) is Reason.EQUAL
    pool.close()


def test_a_killed_worker_is_replaced_and_the_request_repeated(pool: WorkerPool) -> None:
    assert ask(pool, EASY) is Reason.EQUAL
    [worker] = pool.pids()
    os.kill(worker, signal.SIGKILL)
    assert ask(pool, EASY) is Reason.EQUAL
    assert pool.pids() != [worker]


@pytest.mark.parametrize(
    ("signal_number", "reason"), [(signal.SIGKILL, Reason.UNAVAILABLE), (signal.SIGSEGV, Reason.TOO_LARGE)]
)
def test_a_text_of_which_workers_die_is_told_from_workers_killed_from_outside(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, signal_number: int, reason: Reason
) -> None:
    def die(self: WorkerProcess, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        os.kill(self.pid, signal_number)
        return real(self, request, timeout_s)

    real = WorkerProcess.ask
    monkeypatch.setattr(WorkerProcess, "ask", die)
    assert ask(pool, EASY) is reason


def test_no_worker_to_be_had_is_our_failure(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert ask(pool, EASY) is Reason.UNAVAILABLE
    monkeypatch.undo()
    assert ask(pool, EASY) is Reason.EQUAL


def test_a_program_that_never_gets_ready_is_our_failure(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "worker.py"
    program.write_text("raise SystemExit(3)")
    monkeypatch.setattr(process_module, "_PROGRAM", program)
    assert ask(pool, EASY) is Reason.UNAVAILABLE


def test_a_fat_worker_is_replaced(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rstar2_env.verification.workers.pool.FAT_MB", 1.0)
    assert ask(pool, EASY) is Reason.EQUAL
    assert pool.pids() == []
    assert ask(pool, EASY) is Reason.EQUAL


def test_workers_start_only_when_there_is_work_and_no_more_than_allowed() -> None:
    pool = WorkerPool(2)
    assert pool.pids() == []
    futures = [pool.submit(EASY, 30.0) for _ in range(20)]
    assert all(future.result(60).reason is Reason.EQUAL for future in futures)
    assert 1 <= len(pool.pids()) <= 2
    pool.close()


def test_closing_ends_every_worker_and_answers_every_request(ended: Callable[[int], bool]) -> None:
    pool = WorkerPool(1)
    assert ask(pool, EASY) is Reason.EQUAL
    workers = pool.pids()
    futures = [pool.submit(HANGS, 60.0) for _ in range(5)]
    pool.close()
    pool.close()
    assert {future.result(30).reason for future in futures} <= {Reason.UNAVAILABLE}
    assert all(ended(pid) for pid in workers)
    assert ask(pool, EASY) is Reason.UNAVAILABLE


@pytest.mark.parametrize("way_to_end", ["pass", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_workers_die_with_their_owner_even_in_the_middle_of_work(way_to_end: str, ended: Callable[[int], bool]) -> None:
    program = (
        "import os, signal, sys, time\n"
        "from rstar2_env.verification.workers.pool import shared_pool\n"
        f"easy, hangs = {EASY!r}, {HANGS!r}\n"
        "pool = shared_pool()\n"
        "pool.submit(easy, 30.0).result(60)\n"
        "pool.submit(hangs, 60.0)\n"
        "time.sleep(1)\n"
        "while not (pids := pool.pids()):\n"
        "    time.sleep(0.05)\n"
        "print(*pids, flush=True)\n"
        f"{way_to_end}\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=False)
    pids = [int(word) for word in done.stdout.split()]
    assert pids
    assert all(ended(pid) for pid in pids)


def test_a_worker_knows_no_secrets_and_loads_no_more_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    worker = WorkerProcess(memory_mb=1024)
    try:
        assert worker.ask(EASY, 30.0)["reason"] == "equal"
        environment = Path(f"/proc/{worker.pid}/environ").read_bytes()
        assert b"hunter2" not in environment
        maps = Path(f"/proc/{worker.pid}/maps").read_text()
        assert "numpy" not in maps
        assert worker.rss_mb < 100
    finally:
        worker.kill()


def test_a_worker_asked_past_its_deadline_is_dead() -> None:
    worker = WorkerProcess(memory_mb=1024)
    with pytest.raises(WorkerTimeoutError):
        worker.ask(HANGS, 0.2)
    with pytest.raises((WorkerDiedError, OSError, ValueError)):
        worker.ask(EASY, 1.0)


def test_frames_are_bounded_json_objects() -> None:
    message = {"text": "\ud800 \u2028 ∞", "number": 1.5}
    frame = encode(message)
    assert decode(frame[4:]) == message
    with pytest.raises(WireError):
        encode({"text": "x" * (MAX_BYTES + 1)})
    with pytest.raises(WireError):
        body_length(b"\xff\xff\xff\xff")
    for body in (b"[1]", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(WireError):
            decode(body)
