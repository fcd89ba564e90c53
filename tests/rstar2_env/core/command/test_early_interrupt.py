"""An interrupt that Python dropped is repeated, but not while the process ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from rstar2_env.core.command import early_interrupt
from rstar2_env.core.command.early_interrupt import repeat_interrupt


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", found.append)
    # Run the timer's function at once.
    monkeypatch.setattr(threading.Timer, "start", lambda timer: timer.function(*timer.args, **timer.kwargs))
    return found


def test_an_interrupt_is_repeated(raised: list[int]) -> None:
    repeat_interrupt()
    assert raised == [signal.SIGINT]


def test_no_interrupt_is_repeated_after_the_main_thread_has_ended(
    raised: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_interrupt.threading, "main_thread", threading.Thread)  # a thread that does not run
    repeat_interrupt()
    assert raised == []


def test_an_interpreter_that_ends_and_starts_no_thread_is_no_error(
    raised: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(timer: threading.Timer) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Timer, "start", start)
    repeat_interrupt()
    assert raised == []


def test_an_interrupt_of_the_first_imports_of_the_package_ends_the_command_silently() -> None:
    program = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, *more):
        if name == "rstar2_env.core.lazy_names":
            os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["rstar2"]
sys.meta_path.insert(0, Interrupts())
import rstar2_env
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
