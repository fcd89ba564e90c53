"""An environment as an OpenEnv server: a real server on loopback, and the real package's clients."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from bridged import DIALECT, SCRIPTS, SUMS, direct
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.generic_client import GenericEnvClient
from openenv.core.harness.training import TrainingTrace
from otlp_receiver import otlp_receiver
from served_app import served
from waiting import wait_for
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.adapters.openenv import OpenEnvServed, TextAction, TextEnvClient, make_app, serve
from rstar2_env.adapters.openenv_client import OpenEnvEnv
from rstar2_env.adapters.openenv_trace import from_training_trace, training_trace
from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError, ServiceError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.testing import StubSandbox, check_text_env

ID = "rstar2/TicTacToe-v0"


class Server:
    """A server that is its own process, stopped by its own id; ``lines`` are what it wrote to standard error."""

    def __init__(self, *options, env=ID):
        command = [
            sys.executable,
            "-c",
            "from rstar2_env.cli import main; main()",
            "serve",
            "--env",
            env,
            "--port",
            "0",
        ]
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


def test_a_server_sends_the_tool_calls_of_its_clients_to_a_collector(monkeypatch):
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        server = Server(env=SUMS)
        try:
            with TextEnvClient(base_url=server.url).sync() as client:
                client.reset(seed=0)
                client.step(SCRIPTS["right"][0])
        finally:
            server.stop()
    assert [one.name for one in receiver.spans] == ["execute_tool say"]


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
    try:
        with TextEnvClient(base_url=server.url).sync() as client:
            client.reset(seed=1)
            client.step("hm")
        with connect(server.url.replace("http", "ws") + "/ws") as cut_off:
            cut_off.send('{"type": "reset", "data": {"seed": 1}}')
            cut_off.recv()
            cut_off.socket.shutdown(socket.SHUT_RDWR)
        with TextEnvClient(base_url=server.url).sync() as client:
            assert client.reset(seed=1).observation.text, "the server serves on"
        wait_for(lambda: len(server.lines) >= 3)
    finally:
        server.stop()
    assert len(server.lines) == 3, "".join(server.lines)
    for line in server.lines:
        assert re.fullmatch(r"INFO: +The client 127\.0\.0\.1:\d+ closed the connection\.\n", line)


def test_a_websocket_of_a_foreign_page_is_refused(server):
    address = server.replace("http", "ws") + "/ws"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin="http://pages.example")
    assert refused.value.response.status_code == 403
    with connect(address, origin=server) as own:
        own.send('{"type": "reset", "data": {"seed": 1}}')
        assert "observation" in own.recv()


def test_wrong_options_are_told_before_anything_is_served():
    with pytest.raises(gym.error.UnregisteredEnv, match="TicTacTo"):
        make_app("rstar2/TicTacTo-v0")
    with pytest.raises(ConfigurationError, match="strength"):
        make_app(ID, env_options={"strength": 7})
    with pytest.raises(UnknownNameError, match="Did you mean 'tool_budget'"):
        make_app(ID, wrappers=["tool_bugdet"])
    with pytest.raises(ConfigurationError, match="CartPole-v1 is not a text environment"):
        make_app("CartPole-v1")
    with pytest.raises(ConfigurationError, match="sessions"):
        make_app(ID, sessions=0)
    with pytest.raises(ConfigurationError, match="cannot listen"):
        serve(ID, host="192.0.2.1", port=1)


def test_a_served_environment_has_its_wrappers():
    env = OpenEnvServed("rstar2/MathTool-v0", {"sandbox": StubSandbox("42")}, ["fault_injection:rate=1,kinds=timeout"])
    env.reset(seed=1)
    call = DIALECT.format_call("execute_python_code_with_standard_io", {"code": "1", "input": ""})
    seen = env.step(TextAction(text=call))
    env.close()
    assert seen.info["tool_calls"][0]["fault"]["kind"] == "timeout"


class Guess(Action):
    number: int


class Say(Action):
    words: str


class Seen(Observation):
    hint: str = ""


class Secret(Environment):
    """An environment of OpenEnv's own making: guess a number that the seed draws."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()

    def reset(self, seed=None, episode_id=None, least=0, **_):
        self._number = least + (seed or 0) % 10
        self._state = State(episode_id=episode_id)
        return Seen(hint=f"A number from {least} to {least + 9}.")

    def step(self, action, timeout_s=None, **_):
        self._state.step_count += 1
        guess = action.number if isinstance(action, Guess) else int(re.sub(r"\D", "", action.words)[:4] or -1)
        done = guess == self._number
        return Seen(hint="It is greater." if guess < self._number else "It is less.", reward=float(done), done=done)

    @property
    def state(self):
        return self._state


@pytest.fixture(scope="module")
def theirs():
    app = create_fastapi_app(Secret, Say, Seen, max_concurrent_envs=100)
    with served(app) as url:
        yield url


@pytest.fixture(scope="module")
def sums():
    with served(make_app(SUMS, sessions=100)) as url:
        yield url


def played(env, seed, turns):
    """Every return, in the shape of ``direct``."""
    text, info = env.reset(seed=seed)
    trace = [[text, info]]
    for turn in turns:
        trace.append(list(env.step(turn)))
        if trace[-1][2] or trace[-1][3]:
            break
    return trace


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_episode_of_ours_comes_back_through_openenv_whole(sums, name):
    env = OpenEnvEnv(url=sums)
    (text, asked), *steps = played(env, 5, SCRIPTS[name])
    env.close()
    number = int(asked["problem_id"].rpartition("/")[2])
    (plain, told), *expected = direct(SUMS, number, SCRIPTS[name])
    assert (text, asked["system"], asked["tools"]) == (plain, told["system"], told["tools"])
    assert asked["served_problem_id"] == told["problem_id"]
    assert steps == expected


@pytest.mark.parametrize("turns", [("3", "my guess: 9", "0", "1", "2", "4", "5", "6", "7", "8"), ("words",)])
def test_an_episode_of_theirs_is_the_one_that_their_client_plays(theirs, turns):
    env = OpenEnvEnv(url=theirs, max_turns=10)
    (text, asked), *steps = played(env, 2, turns)
    env.close()
    seed = int(asked["problem_id"].rpartition("/")[2])
    with GenericEnvClient(base_url=theirs).sync() as client:
        assert text == client.reset(seed=seed).observation["hint"]
        for turn, (shown, reward, terminated, truncated, info) in zip(turns, steps, strict=False):
            result = client.step({"words": turn})
            assert (shown, reward, terminated, truncated) == (
                result.observation["hint"],
                result.reward,
                result.done,
                False,
            )
            assert info["observation"] == result.observation
    assert len(turns) == 1 or steps[-1][4]["end"] == "answered"


def test_theirs_keeps_our_contract(theirs):
    made = check_text_env(lambda: OpenEnvEnv(url=theirs, max_turns=10), actions=["7"], skip=["hostile_turns"])
    assert "determinism" in made
    assert "pickling" in made


def test_a_turn_may_be_the_whole_action():
    with served(create_fastapi_app(Secret, Guess, Seen, max_concurrent_envs=9)) as url:
        env = OpenEnvEnv(url=url, field="*", reset_options={"least": 100})
        assert "from 100" in env.reset(seed=1)[0]
        text, *_, info = env.step("fifty")
        assert "JSON object" in text
        assert info["action"] == "malformed"
        assert env.step('```json\n{"number": 3}\n```')[0] == "It is greater."
        *_, info = env.step('{"number": "many"}')
        env.close()
    assert info["end"] == "unavailable"


def test_a_server_that_is_lost_in_an_episode_makes_it_unavailable():
    with served(make_app(SUMS)) as url:
        env = OpenEnvEnv(url=url)
        env.reset(seed=1)
    *_, truncated, info = env.step("hm")
    assert (truncated, info["end"], info["correct"]) == (True, "unavailable", False)
    with pytest.raises(ServiceError, match="could not start"):
        env.reset(seed=1)
    with pytest.raises(ServiceError, match="did not answer"):
        OpenEnvEnv(url=url)


def in_tokens():
    """An episode of two turns, as a rollout returns it."""
    names = ("system", "user", "assistant", "user", "assistant")
    return Episode(
        seed=3,
        problem_id="p3",
        messages=[Message(role, f"{role} {number}") for number, role in enumerate(names)],
        prompt_ids=[1, 2, 3],
        completion_ids=[4, 5, 6, 7, 8, 9],
        mask=[1, 1, 0, 0, 1, 1],
        logprobs=[-0.5, -0.25, 0.0, 0.0, -1.0, -2.0],
        reward=1.0,
        end="answered",
        turns=2,
        statuses=[ToolStatus.EXCEPTION],
        answer="6",
        correct=True,
        answer_tags=1,
        policy_version=2,
        rewards={"answer": 1.0},
        task="sums",
        steps=[
            Turn(0, 2, "user 1", statuses=[ToolStatus.EXCEPTION], version=2),
            Turn(4, 6, "user 3", reward=1.0, version=3, info={"end": "answered"}),
        ],
    )


def test_a_training_trace_has_every_token_of_an_episode_and_gives_it_back():
    episode = in_tokens()
    trace = training_trace(episode)
    assert [turn.prompt_token_ids for turn in trace.turns] == [[1, 2, 3], [1, 2, 3, 4, 5, 6, 7]]
    assert [turn.completion_token_ids for turn in trace.turns] == [[4, 5], [8, 9]]
    assert [turn.per_token_logps for turn in trace.turns] == [[-0.5, -0.25], [-1.0, -2.0]]
    assert trace.turns[1].loss_mask == [0] * 7 + [1, 1]
    read = TrainingTrace.model_validate_json(trace.model_dump_json())
    assert from_training_trace(read) == episode


def test_what_must_not_train_has_no_trace():
    episode = in_tokens()
    episode.void("unavailable")
    with pytest.raises(ConfigurationError, match="unavailable"):
        training_trace(episode)
    with pytest.raises(ConfigurationError, match="not contain token ids"):
        training_trace(Episode())
    bad = in_tokens()
    bad.logprobs[1] = 0.5
    with pytest.raises(ValueError, match="positive_logprob"):
        training_trace(bad)
    trace = training_trace(in_tokens())
    trace.turns[1].prompt_token_ids[3] = 77
    with pytest.raises(ConfigurationError, match="turn 1 of the trace"):
        from_training_trace(trace)
