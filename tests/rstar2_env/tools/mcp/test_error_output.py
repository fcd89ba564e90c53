"""The pipe for the error output of a local MCP server, with real pipes and an event loop."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios

import pytest

from rstar2_env.tools.mcp.error_output import ErrorOutput

fcntl_only = pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux sets the size of a pipe")


def fill(output):
    """Write as much as fits into a pipe of 1 MiB; returns its descriptor."""
    writing = output.file.fileno()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 4095 + b"\n")
        except BlockingIOError:
            return writing


def unread(descriptor):
    return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0]


@fcntl_only
def test_one_step_of_the_event_loop_reads_a_bounded_part():
    async def step():
        output = ErrorOutput(asyncio.get_running_loop())
        writing = fill(output)
        before = unread(writing)
        left = []
        for _ in range(6):
            await asyncio.sleep(0)
            left.append(unread(writing))
        await asyncio.sleep(0)
        output.close()
        return before, left

    before, left = asyncio.run(step())
    taken = [one - other for one, other in zip([before, *left], left, strict=False)]
    assert sum(taken) > 0
    assert max(taken) <= 1 << 16


@fcntl_only
def test_the_end_of_a_full_pipe_is_read_at_once():
    async def end():
        output = ErrorOutput(asyncio.get_running_loop())
        writing = fill(output)
        os.read(output._reading, 1 << 16)
        os.write(writing, b"the last line\n")
        said = output.end()
        output.close()
        return said

    assert asyncio.run(end()).endswith("the last line")


def test_what_was_written_before_the_end_is_kept():
    async def end():
        output = ErrorOutput(asyncio.get_running_loop())
        os.write(output.file.fileno(), b"no licence\n")
        output.close()
        return output.end()

    assert asyncio.run(end()) == "no licence"
