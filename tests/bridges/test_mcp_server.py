"""Episodes and the Python tool, served to the official client over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import ctypes
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import gymnasium as gym
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from otlp_receiver import otlp_receiver

from rstar2_env.adapters.mcp_server import EpisodeDesk, make_server, serve_tools
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.testing.stub_tool import StubTool
from rstar2_env.tools import PythonTool
from rstar2_env.wrappers.make import make_env

RSTAR2 = [sys.executable, "-P", "-m", "rstar2_env.cli"]
PROBLEMS = [{"id": "p1", "question": "What is 40 + 2?", "answer": "42"}, {"id": "p2", "question": "7?", "answer": "7"}]
DIALECT = make_dialect("rstar2")
TOOL = "execute_python_code_with_standard_io"


def talk(words, script, env=None):
    """Start a server as an assistant does, and let a script talk with it."""

    async def run():
        parameters = StdioServerParameters(command=words[0], args=list(words[1:]), env=env)
        async with Client(stdio_client(parameters)) as client:
            return await script(client)

    return asyncio.run(asyncio.wait_for(run(), 120))


async def asked(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    return result.is_error, result.structured_content, result.content[0].text


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    path.write_text("".join(json.dumps(problem) + "\n" for problem in PROBLEMS))
    return path


def test_an_assistant_plays_an_episode_to_its_reward(problems):
    async def script(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["reset", "step", "state"]
        assert tools["step"].input_schema["required"] == ["episode", "text"]
        _, start, _ = await asked(client, "reset", problem_id="p1")
        name = start["episode"]
        assert "What is 40 + 2?" in start["text"]
        assert TOOL in start["system"]
        turn = f"I compute. {DIALECT.format_call(TOOL, {'code': 'print(40 + 2)', 'input': ''})}"
        _, shown, text = await asked(client, "step", episode=name, text=turn)
        assert json.loads(text) == shown
        assert "42" in shown["text"]
        assert shown["info"]["tool_calls"][0]["status"] == "ok"
        _, end, _ = await asked(client, "step", episode=name, text=DIALECT.format_answer("42"))
        assert (end["reward"], end["terminated"], end["truncated"], end["info"]["end"]) == (
            1.0,
            True,
            False,
            "answered",
        )
        _, state, _ = await asked(client, "state", episode=name)
        assert (state["turns"], state["reward"], state["end"], state["problem_id"]) == (2, 1.0, "answered", "p1")
        return [await asked(client, "step", episode=name, text="more"), await asked(client, "state", episode="other")]

    over, other = talk([*RSTAR2, "serve", "--mcp", "rstar2/MathTool-v0", "--set", f"env.problems={problems}"], script)
    assert over[0]
    assert "is over (end: answered): call reset" in over[2]
    assert other[0]
    assert "There is no running episode 'other'" in other[2]


def test_nothing_that_a_client_reads_has_the_gold_answer():
    desk = EpisodeDesk(
        lambda: make_env("rstar2/MathTool-v0", problems=[{"id": "p", "question": "?", "answer": "271828"}]),
        most=1,
        timeout_s=9,
    )
    start = desk.reset()
    name = json.loads(start)["episode"]
    said = start + desk.state(name) + desk.step(name, DIALECT.format_answer("1")) + desk.state(name)
    assert "271828" not in said
    desk.close()


def test_equal_seeds_give_equal_tasks_and_running_episodes_are_limited():
    made = []

    def make():
        made.append(make_env("rstar2/MathTool-v0"))
        return made[-1]

    desk = EpisodeDesk(make, most=2, timeout_s=3600)
    first, second = (json.loads(desk.reset(seed=3)) for _ in range(2))
    assert first["text"] == second["text"]
    assert first["episode"] != second["episode"]
    with pytest.raises(ValueError, match="allows 2 unfinished episodes"):
        desk.reset()
    desk.step(first["episode"], DIALECT.format_answer("0"))
    third = json.loads(desk.reset(seed=4))
    assert third["text"] != first["text"]
    assert len(made) == 2
    desk.close()


def test_episodes_that_begin_at_the_same_time_are_limited_too():
    begun, go = threading.Event(), threading.Event()

    class Slow(gym.Wrapper):
        def reset(self, **options):
            begun.set()
            assert go.wait(60)
            return super().reset(**options)

    desk = EpisodeDesk(lambda: Slow(make_env("rstar2/MathTool-v0")), most=1, timeout_s=3600)
    other = threading.Thread(target=desk.reset)
    other.start()
    assert begun.wait(60)
    with pytest.raises(ValueError, match="allows 1 unfinished episodes"):
        desk.reset()
    go.set()
    other.join()
    desk.close()


def test_the_state_of_ended_episodes_is_forgotten_in_the_end():
    desk = EpisodeDesk(lambda: make_env("rstar2/MathTool-v0"), most=1, timeout_s=3600)
    names = []
    for _ in range(3):
        names.append(json.loads(desk.reset(seed=0))["episode"])
        desk.step(names[-1], DIALECT.format_answer("0"))
    assert json.loads(desk.state(names[-1]))["end"] == "answered"
    with pytest.raises(ValueError, match="There is no running episode"):
        desk.state(names[0])
    desk.close()


def test_an_abandoned_episode_makes_room():
    desk = EpisodeDesk(lambda: make_env("rstar2/MathTool-v0"), most=1, timeout_s=1e-9)
    first = json.loads(desk.reset())["episode"]
    desk.reset()
    assert json.loads(desk.state(first))["end"] == "abandoned"
    with pytest.raises(ValueError, match="abandoned"):
        desk.step(first, "text")
    desk.close()


def test_an_assistant_runs_python_and_cannot_leave_the_sandbox(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("sesame")

    async def script(client):
        runs = [
            "print(6 * 7)",
            f"print(open({str(secret)!r}).read())",
            "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
            "while True: pass",
            "1 / 0",
            "pass",
        ]
        found = [await asked(client, TOOL, code=code, input="") for code in runs]
        return [*found, await asked(client, TOOL, code=7, input="")]

    said = talk([*RSTAR2, "sandbox", "serve-mcp", "--timeout", "3"], script)
    assert said[0][2] == "42\n"
    assert not any("sesame" in text for *_, text in said)
    statuses = [record["status"] for _, record, _ in said]
    assert (statuses[0], *statuses[3:]) == ("ok", "timeout", "exception", "empty", "invalid_arguments")
    assert {statuses[1], statuses[2]} <= {"exception", "blocked"}
    assert [error for error, *_ in said] == [False, True, True, True, True, False, True]
    assert [record["error_type"] for _, record, _ in said][4:] == ["ZeroDivisionError", None, "invalid_arguments"]


def test_a_call_has_the_description_the_seed_and_the_record_of_the_tool():
    spec = PythonTool().spec

    async def script(client):
        (tool,) = (await client.list_tools()).tools
        assert (tool.description, tool.input_schema) == (spec.description, spec.parameters)
        found = []
        for seed in (5, 5, 6):
            arguments = {"code": "import random; print(random.random(), 'x' * 99)", "input": ""}
            result = await client.call_tool(TOOL, arguments, meta={"rstar2-env/seed": seed})
            found.append((result.content[0].text, result.structured_content))
        return found

    once, again, other = talk([*RSTAR2, "sandbox", "serve-mcp", "--max-output", "60"], script)
    assert once == again
    assert once[0] != other[0]
    assert once[1] == {"status": "ok", "error_type": None, "exit_code": 0, "truncated": True}


def test_a_tool_that_is_unavailable_is_an_error_and_ends_an_episode_as_unavailable():
    async def run():
        async with Client(make_server("stub", [StubTool(ToolStatus.UNAVAILABLE)])) as client:
            return await asked(client, "stub")

    error, record, _ = asyncio.run(asyncio.wait_for(run(), 60))
    assert (error, record["status"]) == (True, "unavailable")
    desk = EpisodeDesk(
        lambda: make_env("rstar2/MathTool-v0", tools=[StubTool(ToolStatus.UNAVAILABLE)]), most=1, timeout_s=9
    )
    name = json.loads(desk.reset(seed=0))["episode"]
    end = json.loads(desk.step(name, DIALECT.format_call("stub", {})))
    assert (end["terminated"], end["truncated"], end["info"]["end"]) == (False, True, "unavailable")
    desk.close()


def test_the_python_tool_over_http_with_both_protocols():
    server = subprocess.Popen(
        [*RSTAR2, "sandbox", "serve-mcp", "--port", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        address = server.stderr.readline().split()[-1]

        async def run(mode):
            async with Client(address, mode=mode) as client:
                return client.protocol_version, await asked(client, TOOL, code="print(1)", input="")

        versions = []
        for mode in ("auto", "legacy"):
            version, (error, _, text) = asyncio.run(asyncio.wait_for(run(mode), 60))
            assert (error, text) == (False, "1\n")
            versions.append(version)
        assert versions == ["2026-07-28", "2025-11-25"]
        for header in ({"Host": "pages.example"}, {"Origin": "http://pages.example"}):
            refused = httpx2.post(address, json={}, headers=header)
            assert refused.status_code == 403
            assert "pages.example" in refused.json()["error"]
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0


@pytest.mark.parametrize("thread", ["first", "another"])
def test_ctrl_c_ends_a_server_that_waits_for_standard_input(thread):
    words = [*RSTAR2, "sandbox", "serve-mcp"]
    pipe = subprocess.PIPE
    server = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        server.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        if thread == "first":
            server.send_signal(signal.SIGINT)
        else:
            # The first thread does not wake up, as from a signal that arrives just before it begins to wait.
            last = max(int(task.name) for task in Path(f"/proc/{server.pid}/task").iterdir())
            assert ctypes.CDLL(None).tgkill(server.pid, last, signal.SIGINT) == 0
        assert server.wait(timeout=60) == 130
        assert server.stderr.read() == "Interrupted.\n"
    finally:
        server.kill()
        server.communicate(timeout=60)


def test_episodes_of_an_assistant_are_sent_to_a_collector(problems):
    async def script(client):
        _, start, _ = await asked(client, "reset", problem_id="p1")
        turn = DIALECT.format_call(TOOL, {"code": "print(40 + 2)", "input": ""})
        await asked(client, "step", episode=start["episode"], text=turn)

    with otlp_receiver() as receiver:
        words = [*RSTAR2, "serve", "--mcp", "rstar2/MathTool-v0", "--set", f"env.problems={problems}"]
        talk(words, script, {"RSTAR2_OTEL": receiver.address})
    assert f"execute_tool {TOOL}" in [one.name for one in receiver.spans]


def test_a_server_that_others_could_reach_is_refused():
    with pytest.raises(ConfigurationError, match=r"not on 0\.0\.0\.0"):
        serve_tools("tools", [], host="0.0.0.0", port=0, announce=pytest.fail)
