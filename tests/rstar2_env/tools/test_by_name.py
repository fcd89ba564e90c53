"""Tools by name, without the extra ``mcp``; servers are tested in tests/bridges/test_mcp.py."""

import json
import subprocess
import sys

import pytest

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.parts import Part, parts_within
from rstar2_env.core.trust import UntrustedError
from rstar2_env.testing.stub_tool import StubTool
from rstar2_env.tools import NOTEBOOK_TOOL_NAME, PYTHON_TOOL_NAME
from rstar2_env.tools.by_name import make_tools
from rstar2_env.wrappers.make import make_env


def check_server(name, options=()):
    trust.check_server(Part(name, dict.fromkeys(options)), parts_within)


def names(env):
    return [tool["function"]["name"] for tool in env.reset(seed=0)[1]["tools"]]


def test_tools_are_named_or_given():
    own = StubTool(name="mine")
    env = make_env("rstar2/MathTool-v0", tools=["notebook", own])
    assert names(env) == [NOTEBOOK_TOOL_NAME, "mine"]
    env.close()
    env = make_env("rstar2/MathNotebook-v0")
    assert names(env) == [NOTEBOOK_TOOL_NAME]
    env.close()


def test_a_named_tool_has_the_sandbox_and_the_limits_of_its_environment():
    env = make_env("rstar2/MathTool-v0", tools=["python"], limits={"wall_s": 3.5}, max_output=7)
    (tool,) = env.unwrapped.tools.tools
    assert (tool.spec.name, tool.limits.wall_s, tool._max_output) == (PYTHON_TOOL_NAME, 3.5, 7)
    env.close()


def test_a_puzzle_with_tools_has_ten_turns():
    env = make_env("rstar2/Countdown-v0", tools=["python"])
    assert names(env) == [PYTHON_TOOL_NAME]
    assert env.unwrapped._max_turns == 10
    env.close()


@pytest.mark.parametrize(
    ("tools", "error", "words"),
    [
        (["pyton"], UnknownNameError, "Did you mean 'python'"),
        ([7], ConfigurationError, "python, notebook, mcp:ADDRESS or a tool object; got 7"),
        (["python:timeout=3"], ConfigurationError, "does not take options here"),
    ],
)
def test_other_values_are_refused_with_what_was_expected(tools, error, words):
    with pytest.raises(error, match=words):
        make_tools(tools)


def test_a_missing_extra_is_an_error_with_its_pip_line():
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from rstar2_env.tools.by_name import make_tools\n"
        "from rstar2_env.core.errors import MissingExtraError\n"
        "try: make_tools(['mcp:http://127.0.0.1:9/mcp'])\n"
        "except MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "pip install 'rstar2-env[mcp]'" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "typed", ["mcp:./server.py", '["python", "mcp:./server.py"]', "python+mcp:./server.py:timeout_s=5"]
)
def test_the_user_may_name_a_server(typed):
    with trust.bounds([typed]):
        check_server("mcp:./server.py")


@pytest.mark.parametrize("typed", ["", "./server.py", "mcp:./server.py.sh", "mcp:./server.py --unsafe"])
def test_nobody_else_may_name_a_server(typed):
    with trust.bounds([typed]), pytest.raises(UntrustedError, match=r"names the MCP server mcp:\./server\.py"):
        check_server("mcp:./server.py")


WIDER = {"name": "mcp:./server.py", "isolation": "none"}
AS_JSON = json.dumps([WIDER])


@pytest.mark.parametrize("tools", [[WIDER], "mcp:./server.py:write=.", AS_JSON])
def test_a_file_gives_a_server_that_the_user_named_no_more_rights(tools, tmp_path):
    with trust.bounds(["--tool", "mcp:./server.py"]):
        trust.own_file(tmp_path / "run.toml", {"env_options": {"tools": tools}})
        check_server("mcp:./server.py", ["timeout_s"])
        with pytest.raises(UntrustedError, match=r"run\.toml sets the option (isolation|write) of the MCP server"):
            check_server("mcp:./server.py", ["isolation", "write"])


@pytest.mark.parametrize("typed", ["mcp:./server.py:isolation=none", AS_JSON])
def test_the_user_may_give_a_server_more_rights(typed, tmp_path):
    with trust.bounds([typed]):
        trust.own_file(tmp_path / "run.toml", {"env_options": {"tools": [WIDER]}})
        check_server("mcp:./server.py", ["isolation"])


@pytest.mark.parametrize("server", ["mcp:./sérver.py", 'mcp:uvx "a b"', "mcp:./a+b.py", "mcp:http://127.0.0.1:8/mcp"])
def test_a_name_of_any_signs_is_found_in_a_file_and_among_what_the_user_typed(server, tmp_path):
    wider = {"name": server, "write": "."}
    with trust.bounds([json.dumps([server])]):
        trust.own_file(tmp_path / "run.toml", {"env_options": {"tools": [wider]}})
        check_server(server, ["timeout_s"])
        with pytest.raises(UntrustedError, match=r"run\.toml sets the option write of the MCP server"):
            check_server(server, ["write"])
    with trust.bounds([f"--env=rstar2/MathTool-v0:tools={json.dumps([wider])}"]):
        trust.own_file(tmp_path / "run.toml", {"env_options": {"tools": [wider]}})
        check_server(server, ["write"])


@pytest.mark.parametrize(
    "typed",
    [
        "tools=mcp:./server.py+mcp:./other.py:isolation=none",
        "tools=(mcp:./other.py:isolation=none,timeout_s=3)+mcp:./server.py",
        json.dumps(["mcp:./server.py", {"name": "mcp:./other.py", "isolation": "none"}]),
    ],
)
def test_rights_that_the_user_gives_one_server_are_not_given_to_another(typed, tmp_path):
    with trust.bounds([typed]):
        trust.own_file(
            tmp_path / "run.toml", {"tools": [WIDER, "mcp:./other.py:isolation=none"], "timeout_s": "isolation=none"}
        )
        check_server("mcp:./other.py", ["isolation"])
        with pytest.raises(UntrustedError, match=r"sets the option isolation of the MCP server mcp:\./server\.py"):
            check_server("mcp:./server.py", ["isolation"])


def test_the_options_of_a_server_are_looked_at_before_it_starts(tmp_path):
    with trust.bounds(["mcp:./server.py"]):
        trust.own_file(tmp_path / "run.toml", {"env_options": {"tools": [WIDER]}})
        with pytest.raises(UntrustedError, match="sets the option isolation"):
            make_tools([WIDER])


@pytest.mark.parametrize(
    "tools", ["mcp:rm x", ["python", "mcp:rm x"], [{"name": "mcp:rm x"}], "python+mcp:rm", '["mcp:rm x"]']
)
def test_a_file_that_names_a_server_is_refused(tools, tmp_path):
    with pytest.raises(UntrustedError, match="an MCP server"):
        trust.found(tmp_path, {"env_options": {"tools": tools}})
    assert not trust.found(tmp_path, {"env_options": {"tools": ["python"], "text": "of mcp: nothing"}})
