"""The tools of MCP servers in environments, with real servers over standard input and output and over HTTP."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from living import alive
from mcp_envs import LOCAL, OLD, SERVER, call, calls, env_with
from waiting import wait_for

from rstar2_env.core.secret import hidden
from rstar2_env.core.status import ToolStatus
from rstar2_env.env.vector import ThreadVectorEnv
from rstar2_env.tools import CallContext
from rstar2_env.tools.by_name import make_tools
from rstar2_env.tools.mcp import server
from rstar2_env.wrappers.make import make_env


@pytest.fixture(scope="module")
def shared():
    """An environment whose server all tests that do not harm it share."""
    env = env_with("python", f"{LOCAL}:lifetime=shared,timeout_s=20", max_turns=30)
    yield env
    env.close()


class HttpServer:
    """The server of these tests over HTTP on loopback, which can be killed and started again."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/mcp"
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, SERVER, str(self.port)], stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def http():
    running = HttpServer()
    yield running
    running.kill()


def test_the_prompt_has_the_schemas_of_the_servers_tools(shared):
    _, info = shared.reset(seed=0)
    schemas = {tool["function"]["name"]: tool["function"] for tool in info["tools"]}
    assert list(schemas)[:2] == ["execute_python_code_with_standard_io", "add"]
    assert schemas["add"]["description"] == "Add two numbers."
    assert schemas["add"]["parameters"]["properties"]["a"]["type"] == "integer"
    assert '"name": "add"' in info["system"]


@pytest.mark.parametrize(
    ("turn", "status", "text"),
    [
        (call("add", a=2, b=3), "ok", "5"),
        (call("structured"), "ok", '{"x": 1, "y": 2}'),
        (
            call("blocks"),
            "ok",
            "a text\n[image, image/png: not shown]\n[audio, audio/wav: not shown]\na memo\n"
            "[bytes at file:///b: not shown]\n[page: http://127.0.0.1/page]",
        ),
        (call("nothing"), "empty", "The tool returned nothing."),
        (call("fail", why="the reason"), "exception", "the reason"),
        (call("add", a="two", b=3), "invalid_arguments", "arguments.a must be of type integer, not string"),
        (call("add", a=2), "invalid_arguments", "lacks the required 'b'"),
        (call("pick", kind="green"), "invalid_arguments", "must be one of ['red', 'blue']"),
        (call("pick", kind="red", count=4), "invalid_arguments", "arguments.count: 4 is greater than the maximum of 3"),
        (call("no_such_tool"), "unknown_tool", "There is no tool named 'no_such_tool'"),
        ('<tool_call>{"name": "add",</tool_call>', "malformed", ""),
        (call("execute_python_code_with_standard_io", code="print(6 * 7)", input=""), "ok", "42"),
    ],
)
def test_every_result_has_one_of_our_statuses(turn, status, text, shared):
    ((found, shown),) = calls(shared, turn)
    assert found == status
    assert text in shown


def test_a_long_result_is_cut_and_marked(shared):
    shared.reset(seed=0)
    text, *_, info = shared.step(call("long", characters=9000))
    assert info["tool_calls"][0]["truncated"]
    assert "5000 characters left out" in text


@pytest.mark.parametrize("tool", ["unwell", "broken"])
def test_an_answer_that_breaks_the_protocol_or_the_servers_own_schema_is_unavailable(tool):
    env = env_with(OLD)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(call(tool))
    assert (terminated, truncated, reward, info["end"], info["tool_errors"]) == (False, True, 0.0, "unavailable", 0)
    env.close()


def test_a_lost_server_is_unavailable_and_the_next_episode_has_a_new_one(caplog):
    env = env_with(LOCAL)
    env.reset(seed=0)
    *_, truncated, info = env.step(call("die"))
    assert (truncated, info["end"], info["tool_errors"], info["tool_calls_total"]) == (True, "unavailable", 0, 0)
    (logged,) = caplog.messages
    assert "The tool 'die' of the MCP server" in logged
    assert "ends with: the disk is full" in logged
    assert calls(env, call("add", a=1, b=1)) == [("ok", "<tool_response>\n2\n</tool_response>")]
    env.close()


@pytest.mark.parametrize("tool", ["ask", "sample"])
def test_a_question_to_a_person_or_a_model_is_refused(tool):
    env = env_with(LOCAL)
    env.reset(seed=0)
    *_, info = env.step(call(tool))
    assert (info["end"], info["tool_errors"]) == ("unavailable", 0)
    env.close()


def test_a_call_that_takes_too_long_is_stopped_and_its_program_starts_again():
    env = env_with(f"{LOCAL}:timeout_s=2")
    found = calls(env, call("remember", word="a"), call("sleep", seconds=600), call("remember", word="b"))
    assert [status for status, _ in found] == ["ok", "timeout", "ok"]
    assert "longer than 2 s" in found[1][1]
    assert "what earlier calls changed in it is gone" in found[1][1]
    assert "a b" not in found[2][1]
    env.close()


def test_a_long_call_to_a_shared_server_that_still_answers_is_the_policys_timeout(http):
    env = env_with(f"mcp:{http.address}:timeout_s=1,lifetime=shared")
    assert [status for status, _ in calls(env, call("sleep", seconds=4), call("add", a=1, b=1))] == ["timeout", "ok"]
    env.close()


def test_a_server_over_http_that_answers_nothing_more_is_unavailable(http):
    env = env_with(f"mcp:{http.address}:timeout_s=1")
    env.reset(seed=0)
    assert env.step(call("add", a=1, b=1))[4]["tool_calls"][0]["status"] == "ok"
    http.process.send_signal(signal.SIGSTOP)
    try:
        *_, info = env.step(call("add", a=1, b=1))
    finally:
        http.process.send_signal(signal.SIGCONT)
    assert (info["end"], info["tool_errors"]) == ("unavailable", 0)
    env.close()


def test_a_program_of_an_episode_forgets_with_the_episode():
    env = env_with(LOCAL)
    words = [call("remember", word="a"), call("remember", word="b")]
    assert [text.split("\n")[1] for _, text in calls(env, *words)] == ["a", "a b"]
    assert [text.split("\n")[1] for _, text in calls(env, words[0])] == ["a"]
    env.close()


def test_environments_share_a_server_if_so_declared():
    first, second = (env_with(f"{LOCAL}:lifetime=shared,prefix=s_") for _ in range(2))
    calls(first, call("s_remember", word="a"))
    assert "a b" in calls(second, call("s_remember", word="b"))[0][1]
    first.close()
    assert "a b c" in calls(second, call("s_remember", word="c"))[0][1]
    second.close()


def test_an_episode_replays_with_its_seeds():
    env = env_with(LOCAL)
    once, again, other = (calls(env, call("seeds"), call("seeds"), seed=seed) for seed in (5, 5, 6))
    assert once == again != other
    (start, first, zero), (same, second, one) = (text.split("\n")[1].split() for _, text in once)
    assert (start, zero, one) == (same, "0", "1")
    assert first != second
    env.close()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_of_an_environment_repeats_the_calls_of_its_episode(copied):
    tools = {tool.spec.name: tool for tool in make_tools([LOCAL])}
    tools["remember"].call({"word": "a"}, CallContext(0, 0, 0))
    twin = copied(tools)
    assert twin["remember"].call({"word": "b"}, CallContext(0, 1, 1)).text == "a b"
    assert tools["remember"].call({"word": "c"}, CallContext(0, 1, 1)).text == "a c"
    for each in (tools, twin):
        each["add"].close()


def test_a_token_that_a_server_repeats_is_hidden(http, monkeypatch):
    token = "echoed-token-91c3"
    monkeypatch.setenv("ECHOED_TOKEN", token)
    env = env_with(f"mcp:{http.address}:token_env=ECHOED_TOKEN")
    found = calls(env, call("fail", why=f"I got {token}."), call("repeat", text=f"x{token}y", times=2))
    env.close()
    assert [status for status, _ in found] == ["exception", "ok"]
    assert "I got ***." in found[0][1]
    assert "x***yx***y" in found[1][1]
    assert token not in str(found)
    assert token not in hidden(f"The log of {token}")


def test_a_copy_shares_the_state_of_a_server_over_http(http):
    tools = {tool.spec.name: tool for tool in make_tools([f"mcp:{http.address}"])}
    first = tools["remember"].call({"word": "a"}, CallContext(0, 0, 0)).text.split()
    twin = copy.deepcopy(tools)
    assert twin["remember"].call({"word": "b"}, CallContext(0, 1, 1)).text.split() == [*first, "b"]
    for each in (tools, twin):
        each["add"].close()


def test_injected_faults_and_budgets_reach_these_tools():
    env = env_with(LOCAL, wrappers=["fault_injection:rate=1,kinds=timeout", "tool_budget:calls=1"])
    env.reset(seed=0)
    first, second = (env.step(call("add", a=1, b=1))[4]["tool_calls"][0] for _ in range(2))
    assert (first["status"], first["injected"]) == ("timeout", True)
    assert (second["status"], second["error_type"]) == ("blocked", "budget")
    env.close()


def test_a_server_that_was_edited_has_its_new_tools(tmp_path):
    program = tmp_path / "server.py"
    text = Path(OLD.removeprefix("mcp:")).read_text()
    program.write_text(text)
    assert next(tool.spec.name for tool in make_tools([f"mcp:{program}"])) == "first"
    program.write_text(text.replace('"first"', '"edited"'))
    os.utime(program, ns=(0, 0))
    assert next(tool.spec.name for tool in make_tools([f"mcp:{program}"])) == "edited"


def _add_in_child(queue):
    tools = {tool.spec.name: tool for tool in make_tools([f"{LOCAL}:lifetime=shared"])}
    queue.put(tools["add"].call({"a": 1, "b": 1}, CallContext(0, 0, 0)).text)
    tools["add"].close()


def test_a_forked_process_has_sessions_of_its_own():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with server._listing_lock, server._SHARED._lock:  # as if another thread were starting a server
        child = context.Process(target=_add_in_child, args=(queue,))
        child.start()
    try:
        assert queue.get(timeout=60) == "2"
        child.join(60)
        assert child.exitcode == 0
    finally:
        child.kill()


def test_a_closed_environment_leaves_no_process(tmp_path):
    program = tmp_path / "server.py"
    left = [sys.executable, "-c", "import time; time.sleep(600)", str(program)]
    program.write_text(
        "import runpy, subprocess\n"
        f"subprocess.Popen({left!r}, start_new_session=True)\n"
        f"runpy.run_path({str(SERVER)!r}, run_name='__main__')\n"
    )
    env = env_with(f"mcp:{program}")
    calls(env, call("add", a=1, b=1))
    assert alive(str(program))
    env.close()
    wait_for(lambda: alive(str(program)) == [])


def test_a_closed_environment_waits_for_the_server_of_the_episode_that_is_over(tmp_path):
    program = tmp_path / "server.py"
    program.write_text(
        "import runpy, time\n"
        "try:\n"
        f"    runpy.run_path({str(SERVER)!r}, run_name='__main__')\n"
        "finally:\n"
        "    time.sleep(1)\n"
    )
    env = env_with(f"mcp:{program}")
    wait_for(lambda: alive(str(program)) == [])  # the program that listed the tools
    env.reset(seed=0)
    env.step(call("add", a=1, b=1))
    assert alive(str(program))
    _, _, terminated, _, _ = env.step("\\boxed{1}")
    assert terminated
    env.close()
    assert alive(str(program)) == []


def test_a_server_over_http_that_is_lost_is_unavailable_until_it_is_back(http):
    env = env_with(f"mcp:{http.address}")
    assert calls(env, call("add", a=1, b=1), call("add", a="x", b=1))[0][0] == "ok"
    env.reset(seed=0)
    env.step(call("add", a=1, b=1))
    http.kill()
    *_, info = env.step(call("add", a=1, b=1))
    assert (info["end"], info["tool_errors"]) == ("unavailable", 0)
    env.reset(seed=1)
    *_, info = env.step(call("add", a=1, b=1))
    assert info["end"] == "unavailable"
    http.start()
    assert calls(env, call("add", a=1, b=1))[0][0] == "ok"
    env.close()


def test_a_server_of_an_earlier_version_plays_too():
    env = env_with(OLD)
    tools = [tool["function"]["name"] for tool in env.reset(seed=0)[1]["tools"]]
    assert tools == ["first", "second", "refuse", "unwell", "requests", "broken"]
    (second, refused) = calls(env, call("second"), call("refuse"))
    assert "second of old" in second[1]
    assert refused[0] == "invalid_arguments"
    assert "x must be even" in refused[1]
    env.close()


def test_prompts_resources_tasks_and_changes_of_the_list_are_not_used():
    env = env_with(OLD)
    found = calls(env, call("first"), call("requests"), call("late"))
    tools = [tool["function"]["name"] for tool in env.reset(seed=1)[1]["tools"]]
    env.close()
    assert [status for status, _ in found] == ["ok", "ok", "unknown_tool"]
    assert set(found[1][1].split("\n")[1].split()) == {
        "initialize",
        "notifications/initialized",
        "server/discover",
        "tools/list",
        "tools/call",
    }
    assert "late" not in tools


def test_the_environments_of_a_vector_have_servers_of_their_own():
    envs = ThreadVectorEnv([lambda: env_with(LOCAL)] * 2)
    envs.reset(seed=0)
    for _ in range(2):
        texts, *_ = envs.step([call("remember", word="a"), call("remember", word="b")])
    assert [text.split("\n")[1] for text in texts] == ["a a", "b b"]
    envs.close()


def test_puzzles_and_games_take_these_tools_too():
    for name in ("rstar2/Countdown-v0", "rstar2/TicTacToe-v0"):
        env = make_env(name, tools=[LOCAL])
        env.reset(seed=0)
        assert env.step(call("add", a=2, b=2))[4]["tool_calls"][0]["status"] == ToolStatus.OK
        env.close()
