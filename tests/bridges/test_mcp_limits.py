"""What a local MCP server may do, which servers are refused, and how a server over HTTP is addressed."""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from mcp_envs import LOCAL, OLD, call, calls, env_with

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError, ToolServerError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Capability, stdio
from rstar2_env.tools import CallContext
from rstar2_env.tools.by_name import make_tools


def test_a_local_program_has_limits_and_none_of_our_variables(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "sesame")
    monkeypatch.setenv("PASSED_KEY", "passed")
    env = env_with(f"{LOCAL}:memory_mb=400,file_mb=2,pass_env=PASSED_KEY")
    found = calls(
        env,
        call("allocate", mib=10),
        call("allocate", mib=1000),
        call("variable", key="SECRET_KEY"),
        call("variable", key="PASSED_KEY"),
        call("fill", mib=3),
    )
    assert [status for status, _ in found] == ["ok", "exception", "ok", "ok", "exception"]
    assert "File too large" in found[4][1]
    assert "none" in found[2][1]
    assert "passed" in found[3][1]
    env.close()


def test_a_local_program_has_no_network_and_writes_only_into_its_own_folder(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, name = listening.getsockname()[1], str(tmp_path / "mark")
        tmp_path.chmod(0o777)
        env = env_with(f"{LOCAL}:processes=40")
        found = calls(
            env,
            call("connect", port=port),
            call("write", path=name),
            call("write", path="", folder="TMPDIR"),
            call("fork", count=60),
        )
        env.close()
        free = env_with(f"{LOCAL}:network=true,write={tmp_path}")
        allowed = calls(free, call("connect", port=port), call("write", path=name))
        free.close()
    assert [status for status, _ in found] == ["exception", "exception", "ok", "exception"]
    assert "not permitted" in found[0][1]
    assert "Permission denied" in found[1][1]
    assert "temporarily unavailable" in found[3][1]
    assert [status for status, _ in allowed] == ["ok", "ok"]


def test_a_missing_layer_refuses_a_strict_server_and_not_one_that_runs_with_the_rest(monkeypatch):
    gap = Capability("no network", False, "the kernel lacks it", required=True)
    plan, layers = stdio._find(())
    monkeypatch.setattr(stdio, "_find", lambda without: (plan, [gap, *layers[1:]]))
    with pytest.raises(SandboxUnavailableError, match=r"no network.*isolation=best"):
        make_tools([f"{OLD}:prefix=strict_"])
    with pytest.warns(RuntimeWarning, match="without these layers of isolation: no network"):
        tools = make_tools([f"{OLD}:isolation=best"])
    assert tools[0].call({}, CallContext(0, 0, 0)).status == ToolStatus.OK
    tools[0].close()


def test_a_server_may_write_a_long_error_output():
    env = env_with(f"{LOCAL}:file_mb=1")
    assert [status for status, _ in calls(env, call("shout", mib=3), call("add", a=1, b=1))] == ["ok", "ok"]
    env.close()


def test_a_command_is_run(tmp_path):
    # Without this, the hostile command in tests/support/hostile_runs.py could be one that never works.
    with pytest.raises(ToolServerError):
        make_tools([f"mcp:touch {tmp_path / 'mark'}:isolation=none"])
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("tool", "error", "words"),
    [
        ("mcp:./no_such.py", ConfigurationError, r"no_such\.py does not exist .*give the Python file of an MCP server"),
        ("mcp:", ConfigurationError, r"written as mcp:\./server\.py"),
        (f"{LOCAL}:target=other", ConfigurationError, "must be written after mcp:, not as an option"),
        ("mcp:http://:80/mcp", ConfigurationError, r"http://HOST\[:PORT\]/PATH"),
        ("mcp:python 'open", ConfigurationError, "No closing quotation"),
        (f"{LOCAL}:lifetime=forever", ConfigurationError, "lifetime.*episode.*shared"),
        (f"{LOCAL}:time_s=3", ConfigurationError, "timeout_s"),
        (f"{LOCAL}:timeout_s=0", ConfigurationError, "timeout_s"),
        (f"{LOCAL}:pass_env=NO_SUCH_VARIABLE", ConfigurationError, "NO_SUCH_VARIABLE"),
        (f"{LOCAL}:write=./no_such_folder", ConfigurationError, r"mcp\.write.*no_such_folder.*does not exist"),
        (
            "mcp:http://127.0.0.1:9/mcp:network=true",
            ConfigurationError,
            "network applies only to an MCP server",
        ),
        (f"{LOCAL}:token_env=HOME", ConfigurationError, "token_env` applies only to an MCP server over HTTP"),
        (f"{LOCAL}:only=subtract", UnknownNameError, "subtract"),
        ("mcp:no-such-command-at-all", ToolServerError, "no-such-command-at-all cannot be started"),
        (
            f"mcp:{sys.executable} -c 'import time; time.sleep(600)':start_timeout_s=1",
            ToolServerError,
            "did not answer within 1 s",
        ),
        (f"mcp:{sys.executable} -c 'raise SystemExit(\"no licence\")'", ToolServerError, "no licence"),
        ("mcp:http://127.0.0.1:9/mcp", ToolServerError, "127.0.0.1:9/mcp' cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_used_is_refused_with_the_reason(tool, error, words):
    with pytest.raises(error, match=words):
        make_tools([tool])


def test_a_server_over_http_gets_the_token(monkeypatch):
    monkeypatch.setenv("SERVER_TOKEN", "sesame")
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(self.headers["Authorization"])
            self.send_error(403)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        with pytest.raises(ToolServerError):
            make_tools([f"mcp:http://127.0.0.1:{listening.server_port}/mcp:token_env=SERVER_TOKEN"])
        listening.shutdown()
    assert set(seen) == {"Bearer sesame"}


def test_two_tools_of_one_name_are_refused_and_a_prefix_tells_them_apart():
    with pytest.raises(ConfigurationError, match="Two tools are named 'add'"):
        env_with(LOCAL, LOCAL)
    env = env_with(f"{LOCAL}:only=add", f"{LOCAL}:only=add,prefix=other_")
    assert [tool["function"]["name"] for tool in env.reset(seed=0)[1]["tools"]] == ["add", "other_add"]
    env.close()
