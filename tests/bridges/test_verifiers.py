"""verifiers, both ways, against the real package: its loader, its command and its conversation."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import verifiers.v1 as vf
from bridged import SCRIPTS, SUMS, answer, call, direct

from rstar2_env.adapters.export import export_env
from rstar2_env.adapters.verifiers import whole_reply
from rstar2_env.adapters.verifiers_client import VerifiersEnv
from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.testing import check_text_env

SUPPORT = Path(__file__).parents[1] / "support"

CAPITALS = """
import verifiers.v1 as vf


class Data(vf.TaskData):
    answer: str = ""


class Capital(vf.Task[Data]):
    @vf.reward(weight=0.75)
    async def right(self, task, trace) -> float:
        return float(task.answer in (trace.last_reply or ""))

    @vf.reward(weight=0.25)
    async def short(self, trace) -> float:
        return float(len(trace.last_reply or "") < 20)

    @vf.metric
    async def letters(self, trace) -> float:
        return float(len(trace.last_reply or ""))


class Capitals(vf.Taskset[Capital, vf.TasksetConfig]):
    def load(self):
        for place, answer in (("France", "Paris"), ("Italy", "Rome"), ("Peru", "Lima")):
            data = Data(prompt=f"The capital of {place}?", system_prompt="Be short.", answer=answer)
            yield Capital(data, self.config.task)


__all__ = ["Capitals"]
"""

ASKING = """
import verifiers.v1 as vf


class Task(vf.Task[vf.TaskData]):
    pass


class Asking(vf.Taskset[Task, vf.TasksetConfig]):
    def load(self):
        yield Task(vf.TaskData(prompt="Count."), self.config.task)


class Config(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class AskingEnv(vf.Env[Config]):
    async def run(self, task, agents):
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            count = 0
            while not segment.terminated and segment.last_reply != "stop":
                if segment.last_reply == "break":
                    raise ValueError("the user is gone")
                count += 1
                segment = await interaction.turn(f"That was {count}: {segment.last_reply}")
        interaction.trace.record_reward("count", count / 10)


__all__ = ["Asking", "AskingEnv"]
"""


class Model:
    """An endpoint that answers the n-th turn of every conversation with the n-th turn of a script."""

    def __init__(self, turns):
        self.asked = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.asked.append(body["messages"])
                turn = turns[sum(one["role"] == "assistant" for one in body["messages"])]
                message = {"role": "assistant", "content": turn}
                reply = {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
                data = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(scope="module", autouse=True)
def packages(tmp_path_factory):
    """The exported package, built and installed by pip, and two tasksets of verifiers' own kind."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "capitals.py").write_text(CAPITALS)
    (folder / "asking.py").write_text(ASKING)
    export_env(SUMS, "verifiers", folder / "source", name="sums", options={"max_turns": 5})
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(folder / "source")], check=True, timeout=400)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield folder
    sys.path.remove(str(folder))


def episodes(config, turns, task=0):
    """verifiers' own run of a task, its model an endpoint that plays ``turns``."""
    with Model(turns) as model:
        client = vf.EvalClientConfig(base_url=model.url, api_key_var="NO_KEY")
        context = vf.ModelContext(model="m", client=client)
        env = vf.load_environment(vf.resolve_env_config(config))

        async def play():
            async with env.serving():
                return await env.run_episode(next(iter(env.taskset.skip(task))), context)

        return asyncio.run(play()), model


@pytest.mark.parametrize("name", ["right", "wrong", "malformed", "no answer", "turns"])
def test_an_exported_environment_plays_in_verifiers_as_it_does_directly(name):
    turns = tuple(f" {turn}\n" for turn in SCRIPTS[name])
    episode, model = episodes({"taskset": {"id": "sums", "first_seed": 3}}, turns)
    (text, asked), *steps = direct(SUMS, 3, turns)
    (trace,) = episode.traces
    assert episode.ok
    assert [one.message.content for one in trace.nodes] == [
        asked["system"],
        text,
        *(one for turn, step in zip(turns, steps, strict=False) for one in (turn, step[0]) if one),
    ]
    assert trace.rewards["environment_return"].score == sum(step[1] for step in steps)
    end = steps[-1][4]
    told = trace.info["rstar2"]
    assert {key: told[key] for key in ("end", "answer", "correct")} == {
        key: end[key] for key in ("end", "answer", "correct")
    }
    assert [one["info"] for one in told["steps"]] == [step[4] for step in steps]
    assert trace.is_truncated is steps[-1][3]
    assert trace.metrics["tool_errors"] == end["tool_errors"]
    assert trace.metrics["tool_calls"] == end["tool_calls_total"]
    assert len(model.asked) == len(steps)


def test_a_turn_reaches_the_environment_with_the_space_around_it():
    assert whole_reply(vf.Segment(messages=[vf.AssistantMessage(content=" a\n")])) == " a\n"


def test_statuses_are_metrics():
    episode, _ = episodes({"taskset": {"id": "sums"}}, SCRIPTS["right"])
    metrics = episode.traces[0].metrics
    assert (metrics["status/ok"], metrics["status/exception"], metrics["injected_faults"]) == (1.0, 1.0, 0.0)


def test_injected_faults_and_the_components_of_a_reward_are_metrics_too():
    faults = {"taskset": {"id": "sums", "wrappers": ["fault_injection:rate=1,kinds=timeout"]}}
    metrics = episodes(faults, SCRIPTS["right"])[0].traces[0].metrics
    assert (metrics["injected_faults"], metrics["tool_errors"]) == (1.0, 1.0)
    game = {"taskset": {"id": "sums", "env": "rstar2/TicTacToe-v0", "options": {}}}
    trace = episodes(game, ("hm",) * 3)[0].traces[0]
    assert (trace.metrics["reward/outcome"], trace.metrics["reward/intermediate"]) == (0.0, 0.0)


def test_an_unavailable_episode_is_an_error_of_verifiers():
    episode, _ = episodes({"taskset": {"id": "sums"}}, SCRIPTS["unavailable"])
    assert not episode.ok
    assert "SandboxError" in {one.type for one in episode.errors}
    assert "environment_return" not in episode.traces[0].rewards


def test_verifiers_own_limit_ends_an_episode_as_truncated():
    episode, _ = episodes({"taskset": {"id": "sums"}, "agent": {"max_turns": 2}}, SCRIPTS["turns"])
    (trace,) = episode.traces
    assert (trace.stop_condition, trace.is_truncated) == ("max_turns", True)
    assert trace.info["rstar2"]["end"] == ""
    assert trace.rewards["environment_return"].score == 0.0


def test_the_tasks_are_seeds_and_may_end():
    config = vf.resolve_env_config({"taskset": {"id": "sums", "first_seed": 7, "tasks": 3}})
    tasks = list(vf.load_environment(config).taskset)
    assert [task.data.seed for task in tasks] == [7, 8, 9]
    for task in tasks:
        text, info = direct(SUMS, task.data.seed, ())[0]
        assert (task.data.prompt, task.data.system_prompt) == (text, info["system"])
        assert task.data.problem_id == info["problem_id"]
    endless = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "sums"}})).taskset
    assert not endless.bounded


def test_the_command_of_verifiers_evaluates_an_exported_environment(packages, tmp_path):
    with Model((call("hello"), answer("6"))) as model:
        code = "import sys; from verifiers.v1.cli.eval.main import main; sys.exit(main())"
        words = [sys.executable, "-c", code, "sums", "-n", "2", "-m", "m", "--no-push", "--no-rich"]
        words += ["--client.base-url", model.url, "--env.taskset.tasks", "2", "-o", str(tmp_path)]
        done = subprocess.run(
            words,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": f"{packages}:{SUPPORT}"},
            capture_output=True,
            text=True,
            timeout=800,
        )
    assert done.returncode == 0, done.stderr
    traces = [json.loads(line) for file in tmp_path.rglob("traces.jsonl") for line in file.read_text().splitlines()]
    found = json.dumps(traces)
    assert found.count('"environment_return": {') == 2, found[:2000]


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_environment_of_ours_comes_back_through_verifiers(name):
    env = VerifiersEnv(taskset="sums", config={"taskset": {"first_seed": 3}}, tasks=1)
    text, info = env.reset(seed=0)
    (plain, asked), *expected = direct(SUMS, 3, SCRIPTS[name])
    assert (text, info["system"]) == (plain, asked["system"])
    for turn, step in zip(SCRIPTS[name], expected, strict=False):
        text, reward, terminated, truncated, info = env.step(turn)
        assert [text, reward, terminated, truncated] == step[:4]
    env.close()
    assert info["end"] == step[4]["end"]
    if info["end"] != "unavailable":
        assert (info["answer"], info["correct"]) == (step[4]["answer"], step[4]["correct"])
        assert info["reward_components"] == {"environment_return": reward}
    else:
        assert info["error"].startswith("SandboxError")


@pytest.mark.parametrize("turn", ["Paris. ", "It is the city of Paris, of course."])
def test_a_taskset_of_theirs_is_scored_as_verifiers_scores_it(turn):
    env = VerifiersEnv(taskset="capitals")
    text, info = env.reset(options={"problem_id": "verifiers/capitals/0"})
    assert (text, info["system"]) == ("The capital of France?", "Be short.")
    text, reward, terminated, _, info = env.step(turn)
    env.close()
    config = {"taskset": {"id": "capitals"}, "agent": {"harness": {"id": "rstar2_text_harness"}}}
    config["agent"]["runtime"] = {"type": "subprocess"}
    episode, _ = episodes(config, (turn,))
    (trace,) = episode.traces
    assert (text, terminated, reward) == ("", True, trace.reward)
    assert info["reward_components"] == {name: one.value for name, one in trace.rewards.items()}
    assert info["metrics"] == trace.metrics
    assert info["correct"] is (reward == 1.0)


def test_a_user_of_theirs_answers_turn_by_turn_and_their_limits_hold():
    env = VerifiersEnv(taskset="asking", max_turns=3)
    assert env.reset(seed=1)[0] == "Count."
    assert env.step("one")[0] == "That was 1: one"
    text, reward, terminated, truncated, info = env.step("stop")
    assert (text, reward, terminated, truncated) == ("", 0.1, True, False)
    env.reset(seed=1)
    for _ in range(3):
        text, reward, terminated, truncated, info = env.step("more")
    assert (info["end"], info["stop_condition"], reward) == ("turns", "max_turns", 0.3)
    env.reset(seed=1)
    env.step("one")
    *_, info = env.step("break")
    assert info["end"] == "unavailable"
    assert "the user is gone" in info["error"]
    env.reset(seed=1)
    env.reset(seed=1)
    assert env.step("one")[0] == "That was 1: one", "an episode that was given up leaves nothing behind"
    env.close()


def test_theirs_keeps_our_contract():
    made = check_text_env(lambda: VerifiersEnv(taskset="asking", max_turns=3), actions=["stop"], seeds=(0,))
    assert len(made) == 10


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"taskset": "no_such_taskset"}, "cannot load 'no_such_taskset'"),
        ({"taskset": "capitals", "config": {"id": "user-sim"}}, "several agents in each episode"),
        ({"taskset": "capitals", "config": {"colour": 1}}, "cannot load"),
    ],
)
def test_wrong_options_are_told(options, said):
    with pytest.raises(ConfigurationError, match=said):
        VerifiersEnv(**options)


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(Rstar2Error, match="Did you mean 'verifiers'"):
        export_env(SUMS, "verfiers", tmp_path / "a")
    with pytest.raises(ConfigurationError, match="in a file"):
        export_env("./mine.py:Env", "verifiers", tmp_path / "a")
    with pytest.raises(ConfigurationError, match="max_turns"):
        export_env(SUMS, "verifiers", tmp_path / "a", options={"max_turns": 0})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").touch()
    with pytest.raises(ConfigurationError, match="files of yours"):
        export_env(SUMS, "verifiers", tmp_path / "b")
