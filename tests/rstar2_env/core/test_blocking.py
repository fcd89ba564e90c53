"""A coroutine runs to its end from code that is not one, in a running loop too."""

import asyncio
import threading

import pytest

from rstar2_env.core.blocking import run_blocking


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


@pytest.mark.parametrize("inside", [False, True])
def test_what_it_raises_is_raised(inside):
    async def notebook():
        run_blocking(fails)

    with pytest.raises(OSError, match="no"):
        asyncio.run(notebook()) if inside else run_blocking(fails)
