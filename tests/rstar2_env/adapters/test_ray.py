"""Episodes whose environments live on nodes of a real cluster: the same episodes, and none lost but those there."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded
from places import DOCS
from scripted_engine import call, echo_player, scripted

from rstar2_env.adapters.ray import NodeLostError, RayEnvs
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.rollout import EpisodeRequest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_thread_left")]

SLOW = call("import time\ntime.sleep(4.5)\nprint(1)")
SANDBOX = {"provider": "local", "workers": 1, "preload": ()}


def math_env() -> gym.Env[str, str]:
    env: gym.Env[str, str] = gym.make("rstar2/MathTool-v0", sandbox={**SANDBOX}, disable_env_checker=True)
    return env


@pytest.fixture(scope="module")
def nodes(ray_cluster: Any) -> Any:
    """Two nodes, of one CPU each."""
    for _ in range(2):
        ray_cluster.add(resources={"envs": 1})
    return ray_cluster


@pytest.fixture
def envs(nodes: Any) -> Iterator[RayEnvs]:
    def make() -> gym.Env[str, str]:
        return gym.make("rstar2/MathTool-v0", sandbox={"workers": 1, "preload": ()}, disable_env_checker=True)

    # Sent by value: the nodes have the package installed, and not its tests.
    with RayEnvs(make, resource="envs", watch_s=0.1) as made:
        yield made


def has_called(text: str) -> bool:
    return text.count("<|im_start|>assistant") > 1


def policy(text: str) -> str:
    """Draws a number in the first turn, which the call's seed decides, and answers with what it was shown."""
    if not has_called(text):
        return call("import random\nprint(random.random())")
    return f"<answer>\\boxed{{{text.rpartition('<tool_response>')[2][:12].strip()}}}</answer>"


def told(episode: Episode) -> tuple[Any, ...]:
    messages = [(message.role, message.content) for message in episode.messages]
    return episode.end, episode.reward, episode.turns, episode.problem_id, episode.statuses, messages


def test_the_same_seeds_give_the_same_episodes_as_here(envs: RayEnvs) -> None:
    requests = [EpisodeRequest(group=i // 2, seed=i // 2) for i in range(12)]
    with echo_player(scripted(policy), math_env) as player:
        here = [told(episode) for episode in player.play(requests)]
    with echo_player(scripted(policy), envs) as player:
        there = [told(episode) for episode in player.play(requests)]
        assert {seat.envs for seat in envs._seats} == {6}, "they are shared evenly"
        again = [told(episode) for episode in player.play(requests)]
    assert here == there == again
    assert {episode[0] for episode in here} == {"answered"}
    assert len({str(episode) for episode in here}) == 6


@pytest.mark.proof
def test_a_node_that_dies_takes_its_episodes_and_no_other(nodes: Any, envs: RayEnvs) -> None:
    victim, said = nodes.add(resources={"envs": 1}), []

    def talk(text: str) -> str:
        if has_called(text):
            return "<answer>\\boxed{1}</answer>"
        said.append(text)
        if len(said) == 9:  # every episode has taken its seat, and steps now
            threading.Timer(1.0, nodes.kill, (victim,)).start()
        return SLOW

    engine = scripted(talk)
    time.sleep(0.2)
    with echo_player(engine, envs, max_failed=1.0) as player:
        episodes = player.play([EpisodeRequest(seed=i) for i in range(9)])
        lost = [episode for episode in episodes if not episode.available]
        assert 1 <= len(lost) <= 5
        assert all("NodeLostError" in str(e.error) and "in step" in str(e.error) for e in lost)
        assert all(e.statuses == [ToolStatus.OK] for e in episodes if e.available)
        # Environments of the dead node that were not in an episode, too, are elsewhere from now on.
        engine.policy = lambda text: "<answer>\\boxed{1}</answer>"
        assert all(episode.available for episode in player.play([EpisodeRequest(seed=i) for i in range(9)]))


@pytest.mark.proof
def test_an_environment_between_episodes_moves_when_its_node_dies(nodes: Any) -> None:
    home, other = nodes.add(resources={"home": 1}), None
    with RayEnvs("rstar2/MathTool-v0", resource="home", watch_s=0.1) as envs:
        env = envs(sandbox={**SANDBOX})
        first = env.reset(seed=3)[0]
        assert env.observation_space.contains(first)
        other = nodes.add(resources={"home": 1})
        threading.Timer(1.0, nodes.kill, (home,)).start()
        with pytest.raises(NodeLostError, match="node"):
            env.step(SLOW)
        with pytest.raises(EpisodeOverError, match="reset"):
            env.step("an answer")
        assert env.reset(seed=3)[0] == first
        _, _, terminated, _, info = env.step("I give up.")
        assert (terminated, info["end"]) == (True, "no_answer")
        env.close()
        nodes.kill(other)


def test_an_exception_there_is_raised_here_with_its_traceback(nodes: Any) -> None:
    def broken() -> gym.Env[str, str]:
        raise OSError("no environment today")

    with RayEnvs(broken, resource="envs") as envs, pytest.raises(OSError, match="no environment today") as raised:
        envs()
    assert "in broken" in raised.value.__notes__[0]
    with RayEnvs("rstar2/MathTool-v0", resource="envs") as envs:
        env = envs(sandbox={**SANDBOX})
        with pytest.raises(ResetNeeded):
            env.step("before any reset")
        with pytest.raises(ConfigurationError, match="problem_id"):
            env.reset(options={"nonsense": 1})
        assert [seat.envs for seat in envs._seats].count(1) == 1
        env.close()
        env.close()
        assert all(seat.envs == 0 for seat in envs._seats)


def test_a_call_that_takes_too_long_ends_its_episode(nodes: Any) -> None:
    with RayEnvs("rstar2/MathTool-v0", resource="envs", call_timeout_s=5.0) as envs:
        env = envs(sandbox={**SANDBOX}, limits={"wall_s": 60})
        env.reset(seed=0)
        with pytest.raises(NodeLostError, match="does not respond"):
            env.step(call("import time\ntime.sleep(30)"))
        assert env.reset(seed=0)


def test_wrong_options_are_named(nodes: Any) -> None:
    makers: list[tuple[Callable[[], Any], str]] = [
        (lambda: RayEnvs("x", threads=0), "threads"),
        (lambda: RayEnvs("x", actors_per_node=0), "actors_per_node"),
        (lambda: RayEnvs(3), "make_env"),  # type: ignore[arg-type]  # the mistake is the point
    ]
    for make, says in makers:
        with pytest.raises(ConfigurationError, match=says):
            make()
    with pytest.raises(SandboxUnavailableError, match="'gold'"):
        RayEnvs("x", resource="gold")
    envs = RayEnvs("rstar2/MathTool-v0", resource="envs")
    envs.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        envs()


def test_the_documented_example_runs(nodes: Any) -> None:
    page = (DOCS / "remote-environments.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "RayEnvs" in block]
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["info"]["problem_id"]
