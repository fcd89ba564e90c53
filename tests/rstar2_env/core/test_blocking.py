"""A coroutine runs to its end from code that is not one, in a running loop too."""

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from rstar2_env.core import blocking
from rstar2_env.core.blocking import Stoppable, StoppedError, cancel_blocking, run_blocking


async def answer():
    await asyncio.sleep(0)
    return threading.current_thread()


async def fails():
    raise OSError("no")


def test_it_runs_in_this_thread_where_no_loop_runs():
    assert run_blocking(answer) is threading.current_thread()


def test_it_runs_in_a_thread_of_its_own_beside_a_running_loop():
    async def notebook():
        return run_blocking(answer)

    assert asyncio.run(notebook()) is not threading.current_thread()


def test_a_signal_leaves_the_tasks_of_a_notebook_to_its_handler():
    async def cell():
        found = cancel_blocking()
        await asyncio.sleep(0)
        return found

    assert asyncio.run(cell()) is False


@pytest.mark.parametrize("inside", [False, True])
def test_what_it_raises_is_raised(inside):
    async def notebook():
        run_blocking(fails)

    with pytest.raises(OSError, match="no"):
        asyncio.run(notebook()) if inside else run_blocking(fails)


@pytest.mark.parametrize("inside", [False, True])
def test_another_thread_stops_what_runs_and_what_would_begin(inside):
    begun, work, ends = threading.Event(), Stoppable(), []

    async def forever():
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ends.append("cleaned up")

    async def notebook():
        run_blocking(forever)

    def in_thread():
        with work.here():
            for _ in range(2):
                try:
                    asyncio.run(notebook()) if inside else run_blocking(forever)
                except StoppedError as error:
                    ends.append(str(error))

    thread = threading.Thread(target=in_thread)
    thread.start()
    assert begun.wait(60)
    work.stop()
    thread.join(60)
    assert ends == [
        "cleaned up",
        "The asynchronous call was cancelled while it ran.",
        "The asynchronous call was cancelled before it began.",
    ]


def test_what_other_threads_run_is_not_stopped():
    work = Stoppable()
    with work.here():
        pass
    work.stop()
    assert run_blocking(answer) is threading.current_thread()


def test_a_cancelled_coroutine_that_nobody_stopped_stays_cancelled():
    async def cancels_itself():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with Stoppable().here(), pytest.raises(asyncio.CancelledError):
        run_blocking(cancels_itself)


def test_an_interrupt_while_the_thread_starts_cancels_the_coroutine(monkeypatch):
    began, ended = threading.Event(), []

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            super().submit(*args, **kwargs)
            assert began.wait(30)
            raise KeyboardInterrupt

    async def long():
        began.set()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def notebook():
        run_blocking(long)

    monkeypatch.setattr(blocking, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(notebook())
    assert ended == ["cancelled"]


class SignalledLoop(asyncio.SelectorEventLoop):
    """An event loop during whose creation or closing this process receives SIGTERM."""

    at = ""
    made: ClassVar[list[asyncio.AbstractEventLoop]] = []

    def __init__(self):
        self.made.append(self)
        super().__init__()
        self._signal("creation")

    def close(self):
        self._signal("closing")
        super().close()

    def _signal(self, moment):
        if self.at == moment:
            type(self).at = ""
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("moment", "begun"), [("creation", []), ("closing", ["began"])])
def test_a_signal_while_the_loop_is_created_or_closed_cancels_the_call_and_leaves_no_open_loop(
    monkeypatch, moment, begun
):
    class Policy(asyncio.DefaultEventLoopPolicy):
        _loop_factory = SignalledLoop

    def handle(number, frame):
        if not cancel_blocking():
            raise InterruptedError("the loop cannot be closed any more")

    found = []

    async def play():
        found.append("began")

    monkeypatch.setattr(SignalledLoop, "at", moment)
    monkeypatch.setattr(SignalledLoop, "made", [])
    policy, handler = asyncio.get_event_loop_policy(), signal.signal(signal.SIGTERM, handle)
    asyncio.set_event_loop_policy(Policy())
    try:
        with pytest.raises(asyncio.CancelledError):
            run_blocking(play)
    finally:
        asyncio.set_event_loop_policy(policy)
        signal.signal(signal.SIGTERM, handler)
    assert found == begun
    assert [loop.is_closed() for loop in SignalledLoop.made] == [True]


def test_without_a_blocking_call_nothing_is_cancelled_also_after_one_was():
    async def cancelled():
        assert cancel_blocking()
        await asyncio.sleep(20)

    with pytest.raises(asyncio.CancelledError):
        run_blocking(cancelled)
    assert not cancel_blocking()
    assert run_blocking(answer) is threading.current_thread()
