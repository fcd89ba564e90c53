"""How sessions with MCP servers begin and end: closed while they start, twice, without a loop, cancelled, lost."""

from __future__ import annotations

import asyncio
import copy
import sys
import threading

import pytest
from living import alive
from mcp_envs import LOCAL, call, calls, env_with
from places import SUPPORT
from waiting import wait_for

from rstar2_env.core.errors import ToolServerError
from rstar2_env.core.status import ToolStatus
from rstar2_env.tools import CallContext
from rstar2_env.tools.by_name import make_tools
from rstar2_env.tools.mcp.options import ServerOptions
from rstar2_env.tools.mcp.session import LostError, McpSession

ONCE = f"""
import sys, time
sys.path.insert(0, {str(SUPPORT)!r})
from pathlib import Path
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_tools import server

@server.tool()
def once(how: str) -> str:
    mark = Path(__file__).with_name("mark")
    if not mark.exists():
        mark.touch()
        return "first"
    if how == "sleep":
        time.sleep(600)
    raise MCPError(-32602, "only once")

server.run()
"""


def opened(**options):
    session = McpSession(ServerOptions(target=LOCAL.removeprefix("mcp:"), **options))
    session.open()
    return session


@pytest.fixture
def silent(tmp_path):
    """A program that never answers, with a word by which its processes are found."""
    word = str(tmp_path / "silent")
    return f"{sys.executable} -c 'import time; time.sleep(600)' {word}", word


@pytest.mark.parametrize(("how", "why"), [("sleep", "longer than 3 s"), ("refuse", "only once")])
def test_a_call_of_the_episode_that_cannot_be_repeated_makes_the_server_unavailable(how, why, tmp_path):
    program = tmp_path / "server.py"
    program.write_text(ONCE)
    tmp_path.chmod(0o777)
    tools = {tool.spec.name: tool for tool in make_tools([f"mcp:{program}:write={tmp_path},timeout_s=3"])}
    assert tools["once"].call({"how": how}, CallContext(0, 0, 0)).text == "first"
    twin = copy.deepcopy(tools)
    found = twin["add"].call({"a": 1, "b": 1}, CallContext(0, 1, 1))
    assert found.status == ToolStatus.UNAVAILABLE
    assert "the earlier call of 'once' could not be repeated" in found.text
    assert why in found.text
    assert tools["add"].call({"a": 1, "b": 1}, CallContext(0, 1, 1)).text == "2"
    for each in (tools, twin):
        each["add"].close()


def test_a_server_that_floods_its_error_output_holds_back_no_other(tmp_path):
    program = tmp_path / "server.py"
    program.write_text(
        "import os, runpy, sys, threading\n"
        "def flood():\n    while True:\n        os.write(2, b'x' * 65535 + b'\\n')\n"
        "threading.Thread(target=flood, daemon=True).start()\n"
        f"runpy.run_path({str(SUPPORT / 'mcp_tools.py')!r}, run_name='__main__')\n"
    )
    flooding, quiet = env_with(f"mcp:{program}:prefix=f_"), env_with(LOCAL)
    assert calls(flooding, call("f_add", a=1, b=1))[0][0] == "ok"
    assert calls(quiet, call("add", a=1, b=1))[0][0] == "ok"
    for env in (flooding, quiet):
        env.close()
    assert alive(str(program)) == []


def test_a_session_closed_while_it_starts_ends_at_once_and_leaves_no_process(silent):
    command, word = silent
    session = McpSession(ServerOptions(target=command, start_timeout_s=600))
    errors = []

    def start():
        try:
            session.open()
        except ToolServerError as error:
            errors.append(str(error))

    starting = threading.Thread(target=start)
    starting.start()
    wait_for(lambda: bool(alive(word)))
    session.close()
    starting.join(60)
    assert not starting.is_alive()
    assert "did not start: it was closed while it started." in errors[0]
    wait_for(lambda: alive(word) == [])


def test_a_session_that_was_closed_before_it_starts_starts_nothing(silent):
    command, word = silent
    session = McpSession(ServerOptions(target=command, start_timeout_s=600))
    session.close()
    with pytest.raises(ToolServerError, match="it was closed while it started"):
        session.open()
    assert alive(word) == []


def test_a_session_may_be_closed_twice_and_then_calls_nothing():
    session = opened()
    assert session.usable
    for _ in range(2):
        session.close()
    session.wait_closed()
    session.close()
    assert not session.usable
    with pytest.raises(LostError, match="the connection to the server ended"):
        session.call("add", {"a": 1, "b": 1}, {})


def _call_in_thread(session, errors):
    def work():
        try:
            session.call("sleep", {"seconds": 600}, {})
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("whom", ["keeper", "tasks", "close"])
def test_a_call_whose_session_is_cancelled_or_closed_is_lost(whom):
    session = opened(timeout_s=600.0)
    errors = []
    calling = _call_in_thread(session, errors)
    session.call("add", {"a": 1, "b": 1}, {})
    if whom == "keeper":
        session._keeper.cancel()
    elif whom == "tasks":
        loop = session._loop
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    else:
        session.close()
    calling.join(60)
    assert not calling.is_alive()
    assert isinstance(errors[0], LostError), errors
    wait_for(lambda: not session.usable)
    session.close()


def test_sessions_of_a_loop_that_ended_are_lost_and_new_ones_have_a_new_loop():
    session = opened()
    session._loop.call_soon_threadsafe(session._loop.stop)
    session._thread.join(60)
    assert not session.usable
    with pytest.raises(LostError, match="the background thread that serves the MCP sessions has ended"):
        session.call("add", {"a": 1, "b": 1}, {})
    session.close()
    session.wait_closed()
    other = opened()
    assert other.call("add", {"a": 1, "b": 1}, {}).content[0].text == "2"
    other.close()
    other.wait_closed()


def test_a_loop_that_ends_during_a_call_is_not_the_calls_timeout():
    session = opened(timeout_s=1.0)
    errors = []
    calling = _call_in_thread(session, errors)
    session._loop.call_soon_threadsafe(session._loop.stop)
    calling.join(60)
    assert isinstance(errors[0], LostError), errors


def test_the_server_that_listed_its_tools_has_ended_when_the_tools_are_returned(tmp_path):
    program = tmp_path / "server.py"
    # It ends late, so that its process would still be found if its end were not awaited.
    program.write_text(ONCE.replace("server.run()", "server.run()\ntime.sleep(1)"))
    make_tools([f"mcp:{program}"])
    assert alive(str(program)) == []
