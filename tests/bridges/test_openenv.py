"""An environment as an OpenEnv server: a real server on loopback, and the real package's clients."""

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from waiting import wait_for

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import StubSandbox

pytest.importorskip("openenv", reason="the extra 'openenv' is not installed")

from openenv.core.generic_client import GenericEnvClient

from rstar2_env.adapters.openenv import ServedEnvironment, TextAction, TextEnvClient, make_app, serve

pytestmark = pytest.mark.slow  # importing OpenEnv takes seconds

RSTAR2 = make_dialect("rstar2")
ID = "rstar2/TicTacToe-v0"


class Server:
    """A server that is its own process, stopped by its own id; ``lines`` are what it wrote to standard error."""

    def __init__(self, *options):
        command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "serve-env", ID, "--port", "0"]
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        for line in self.process.stderr:
            if found := re.search(r"on (http://\S+)", line):
                break
        else:
            raise AssertionError("the server ended before it served")
        self.url = found[1]
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) in (0, -signal.SIGTERM)
        self.reader.join(timeout=60)
        self.process.stderr.close()


@pytest.fixture(scope="module")
def server():
    server = Server("--sessions", "3")
    try:
        yield server.url
    finally:
        server.stop()


def play(client, local, seed):
    """An episode of the client's, turn by turn beside the same one played here."""
    text, info = local.reset(seed=seed)
    result = client.reset(seed=seed)
    assert (result.observation.text, result.observation.info, result.done) == (text, info, False)
    while not result.done:
        turn = local.unwrapped.oracle_turn()
        text, reward, terminated, truncated, info = local.step(turn)
        result = client.step(turn)
        seen = result.observation
        assert (seen.text, result.reward, seen.terminated, seen.truncated) == (text, reward, terminated, truncated)
        assert seen.info == info
    return result.reward


def test_an_episode_is_the_one_that_is_played_here(server):
    with TextEnvClient(base_url=server).sync() as client:
        local = gym.make(ID)
        assert [play(client, local, seed) for seed in range(3)] == [1.0] * 3


def test_every_connection_has_an_environment_of_its_own(server):
    def one(seed):
        with TextEnvClient(base_url=server).sync() as client:
            return play(client, gym.make(ID), seed)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, range(3))) == [1.0] * 3


def test_openenvs_generic_client_needs_nothing_of_ours(server):
    with GenericEnvClient(base_url=server).sync() as client:
        assert "Tic-tac-toe" in client.reset(seed=1).observation["text"]
        result = client.step({"text": "hm"})
        assert result.observation["info"]["move"]["status"] == "unparsable"
        assert (result.reward, result.done) == (0.0, False)


def test_the_state_names_the_episode_and_its_problem(server):
    with TextEnvClient(base_url=server).sync() as client:
        info = client.reset(seed=1, episode_id="mine").observation.info
        client.step("hm")
        state = client.state()
        assert (state.env_id, state.episode_id, state.step_count) == (ID, "mine", 1)
        assert state.problem_id == info["problem_id"]
        text = client.reset(seed=5, options={"problem_id": state.problem_id}).observation.text
        assert text == gym.make(ID).reset(options={"problem_id": state.problem_id})[0]


def test_the_metadata_is_the_environments_specification(server):
    with urllib.request.urlopen(f"{server}/metadata", timeout=30) as answer:
        told = json.load(answer)
    assert (told["name"], told["version"]) == (ID, "0")
    assert "## Episode end" in told["readme_content"]


def test_what_is_wrong_is_told_and_the_connection_lives_on(server):
    with TextEnvClient(base_url=server).sync() as client:
        with pytest.raises(RuntimeError, match=r"before calling env.reset\(\)"):
            client.step("hm")
        with pytest.raises(RuntimeError, match="not colour"):
            client.reset(colour="red")
        with pytest.raises(RuntimeError, match="ids are"):
            client.reset(options={"problem_id": "nowhere"})
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            client._run(client._async._send_and_receive({"type": "step", "data": {"words": "hm"}}))
        assert client.reset(seed=1).observation.text
        assert [client.step("hm").done for _ in range(3)] == [False, False, True]
        with pytest.raises(RuntimeError, match=r"The episode is over: call reset\(\)"):
            client.step("hm")


def test_one_client_too_many_is_turned_away(server):
    clients = [TextEnvClient(base_url=server).sync() for _ in range(4)]
    try:
        for client in clients[:3]:
            client.connect()
            client.reset(seed=1)
        with pytest.raises(Exception, match=r"CAPACITY_REACHED|closed|1000"):
            clients[3].reset(seed=1)
    finally:
        for client in clients:
            client.close()


def test_a_client_that_leaves_is_one_line_in_the_log():
    server = Server()
    leaves_at_once = (
        "import os, sys; from rstar2_env.adapters.openenv import TextEnvClient\n"
        "client = TextEnvClient(base_url=sys.argv[1]).sync(); client.connect(); client.reset(seed=1); os._exit(0)"
    )
    try:
        with TextEnvClient(base_url=server.url).sync() as client:
            client.reset(seed=1)
            client.step("hm")
        subprocess.run([sys.executable, "-c", leaves_at_once, server.url], check=True, timeout=60)
        with TextEnvClient(base_url=server.url).sync() as client:
            assert client.reset(seed=1).observation.text, "the server serves on"
        wait_for(lambda: len(server.lines) >= 3)
    finally:
        server.stop()
    assert len(server.lines) == 3, "".join(server.lines)
    for line in server.lines:
        assert re.fullmatch(r"INFO: +The client 127\.0\.0\.1:\d+ left\.\n", line)


def test_wrong_options_are_told_before_anything_is_served():
    with pytest.raises(gym.error.UnregisteredEnv, match="TicTacTo"):
        make_app("rstar2/TicTacTo-v0")
    with pytest.raises(ConfigurationError, match="strength"):
        make_app(ID, env_options={"strength": 7})
    with pytest.raises(UnknownNameError, match="Did you mean 'tool_budget'"):
        make_app(ID, wrappers=["tool_bugdet"])
    with pytest.raises(ConfigurationError, match="CartPole-v1 is no text environment"):
        make_app("CartPole-v1")
    with pytest.raises(ConfigurationError, match="sessions"):
        make_app(ID, sessions=0)
    with pytest.raises(ConfigurationError, match="Cannot listen"):
        serve(ID, host="192.0.2.1", port=1)


def test_a_served_environment_has_its_wrappers():
    env = ServedEnvironment(
        "rstar2/MathTool-v0", {"sandbox": StubSandbox("42")}, ["fault_injection:rate=1,kinds=timeout"]
    )
    env.reset(seed=1)
    call = RSTAR2.format_call("execute_python_code_with_standard_io", {"code": "1", "input": ""})
    seen = env.step(TextAction(text=call))
    env.close()
    assert seen.info["tool_calls"][0]["fault"]["kind"] == "timeout"
