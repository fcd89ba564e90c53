"""Checks of the rules for environments, one function for each rule; ``check_text_env`` runs them all.

Covered: the rules for every text environment, independently of its task. Not covered: whether the reward is right,
which the environment's own tests must check.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import math
import pickle
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils.env_checker import check_env

from rstar2_env.core.errors import EpisodeOverError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing.harness import (
    MAX_STEPS,
    Harness,
    TextEnv,
    canonical,
    comparable,
    harness_for,
    require,
    steps,
    typical_call,
)
from rstar2_env.testing.hostile import HOSTILE_TURNS, REPEATED
from rstar2_env.testing.randomness import require_own_randomness
from rstar2_env.testing.runner import by_name, run_checks

_CALL_KEYS = {"name", "status", "error_type", "exit_code", "truncated", "injected"}
_TERMINATED, _TRUNCATED = {"answered", "no_answer"}, {"turns", "tokens", "time", "unavailable"}
_PATIENCE_S = 60.0
"""Maximum CPU seconds for a hostile turn, far more than a turn needs."""


def gymnasium_check(harness: Harness) -> None:
    """Check that Gymnasium's own ``check_env`` reports nothing, not even a warning."""
    env = harness.env().unwrapped
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        check_env(env, skip_render_check=env.spec is None)


def returns(harness: Harness) -> None:
    """Check that ``reset`` and ``step`` return valid observations, and a complete ``info`` of JSON values."""
    env = harness.env()
    for script in harness.scripts(env):
        for seed in harness.seeds:
            check_reset(env, env.reset(seed=seed))
            for step in steps(env, script):
                check_step(env, step)


def determinism(harness: Harness) -> None:
    """Check that the same seed and actions give the same texts, rewards and ``info``, in every instance."""
    first, second = harness.env(), harness.env()
    for script in harness.scripts(first):
        for seed in harness.seeds:
            once = harness.play(first, seed, script)
            require(once == harness.play(first, seed, script), f"two episodes of seed {seed} in one instance differ")
            require(once == harness.play(second, seed, script), f"the episodes of seed {seed} in two instances differ")


def end_of_episode(harness: Harness) -> None:
    """Check that ``step`` raises an error that advises a reset, before the first ``reset`` and after the end."""
    env = harness.env()
    _must_refuse(env.unwrapped, "before the first reset")
    env.reset(seed=harness.seeds[0])
    _play_out(env)
    _must_refuse(env, "after the end of the episode")
    _must_refuse(env, "after the end of the episode, a second time")
    env.reset(seed=harness.seeds[0])
    check_step(env, env.step("I do not know."))


def budget(harness: Harness) -> None:
    """Check that a budget of the environment ends the episode if the policy never stops calling tools."""
    env = harness.env()
    _, info = env.reset(seed=harness.seeds[0])
    calls = [typical_call(env, tool) for tool in info["tools"]]
    _play_out(env, calls[0] if calls else "I do not know.")


def hostile_turns(harness: Harness) -> None:
    """Check that no text of a policy makes ``step`` raise, return an invalid observation, or take a long time."""
    env = harness.env()
    for what, turn in HOSTILE_TURNS.items():
        if turn not in env.action_space:
            continue
        env.reset(seed=harness.seeds[0])
        start = time.process_time()
        try:
            check_step(env, env.step(turn))
        except Exception as error:
            raise AssertionError(
                f"on {what}, the environment raised {type(error).__name__}: {str(error)[:300]}"
            ) from error
        require(
            time.process_time() - start < _PATIENCE_S,
            f"on {what}, the environment used more than {_PATIENCE_S:g} s of CPU time",
        )


def linear_time(harness: Harness) -> None:
    """Check that the time to read a turn is proportional to its length, even if it repeats a fragment many times."""
    env = harness.env()
    for what, piece in REPEATED.items():
        short, long = piece * 5_000, piece * 40_000
        if long not in env.action_space:
            continue
        least = min(_cpu_s(env, harness.seeds[0], short) for _ in range(2))
        # A text 8 times as long takes 8 times as long if the time is linear, and 64 times as long if it is quadratic.
        # Very short times are mostly noise.
        bound = 24 * max(least, 0.01)
        require(
            any(_cpu_s(env, harness.seeds[0], long) < bound for _ in range(3)),
            f"40,000 {what} take more than 24 times as long as 5,000 ({least * 1000:.1f} ms)",
        )


def independence(harness: Harness) -> None:
    """Check that instances share no state, and that a caller may change the values that they return."""
    alone, other, spoiled = harness.env(), harness.env(), harness.env()
    script = max(harness.scripts(alone), key=len)
    seed, elsewhere = harness.seeds[0], harness.seeds[-1] + 1
    expected = harness.play(alone, seed, script)
    trace = [comparable(alone.reset(seed=seed))]
    for turn in script[: len(expected) - 1]:
        other.reset(seed=elsewhere)
        other.step(turn)
        trace.append(comparable(alone.step(turn)))
    require(trace == expected, "an episode differs while another instance plays at the same time")
    _, info = spoiled.reset(seed=seed)
    _spoil(info)
    _spoil(spoiled.step(script[0])[4])
    for env, whose in ((spoiled, "the same"), (harness.env(), "a new")):
        same = harness.play(env, seed, script) == expected
        require(same, f"changing an info that was returned changes {whose} instance")


def pickling(harness: Harness) -> None:
    """Check that a pickled or copied environment continues from the state of the original."""
    env = harness.env()
    for script in harness.scripts(env):
        seed = harness.seeds[0]
        expected = harness.play(env, seed, script)
        twins: dict[str, Callable[[Any], Any]] = {
            "pickle": lambda env: pickle.loads(pickle.dumps(env)),
            "copy.deepcopy": copy.deepcopy,
        }
        for how, twin in twins.items():
            fresh = twin(harness.env())
            require(harness.play(fresh, seed, script) == expected, f"{how} of a new environment plays differently")
            fresh.close()
            started = harness.env()
            started.reset(seed=seed)
            last = len(expected) - 2
            for turn in script[:last]:
                started.step(turn)
            copied = twin(started)
            require(
                comparable(copied.step(script[last])) == expected[-1],
                f"{how} in the middle of an episode plays differently",
            )
            copied.close()


def global_random_state(harness: Harness) -> None:
    """Check that the environment neither uses nor changes the states of ``random`` and ``numpy.random``."""

    def play() -> list[Any]:
        env = harness.env()
        traces = [harness.play(env, seed, ["I do not know."]) for seed in harness.seeds]
        env.reset()
        return traces

    require_own_randomness(play, "draw from self.np_random")


CHECKS = by_name(
    gymnasium_check,
    returns,
    determinism,
    end_of_episode,
    budget,
    hostile_turns,
    linear_time,
    independence,
    pickling,
    global_random_state,
)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_reset(env: TextEnv, returned: tuple[str, dict[str, Any]]) -> None:
    """Check the return value of one ``reset``."""
    text, info = returned
    require(
        isinstance(text, str) and text in env.observation_space,
        f"reset returned {text!r:.80}, which is not in the observation space",
    )
    for key, kind in (("problem_id", str), ("tools", list), ("system", str)):
        require(
            isinstance(info.get(key), kind),
            f"the info that reset returned does not have the key {key!r} of type {kind.__name__}",
        )
    for tool in info["tools"]:
        schema = tool.get("function", {}) if isinstance(tool, dict) else {}
        complete = isinstance(schema.get("name"), str) and isinstance(schema.get("parameters"), dict)
        require(complete, f"info['tools'] contains an entry that is not the schema of a function: {tool!r:.80}")
    canonical(info)


def check_step(env: TextEnv, returned: tuple[str, SupportsFloat, bool, bool, dict[str, Any]]) -> None:
    """Check the return value of one ``step``."""
    text, reward, terminated, truncated, info = returned
    require(
        isinstance(text, str) and text in env.observation_space,
        f"step returned {text!r:.80}, which is not in the observation space",
    )
    text.encode("utf-8")  # lone surrogates would fail in every tokenizer and text file
    require(math.isfinite(float(reward)), f"the reward is {reward!r}, not a finite number")
    require(
        isinstance(terminated, bool) and isinstance(truncated, bool),
        "terminated and truncated must be of the type bool",
    )
    require(not (terminated and truncated), "terminated and truncated are both true")
    require(
        isinstance(info.get("role"), str) and info["role"],
        "the info that step returned does not have the 'role' of the text",
    )
    require(isinstance(info.get("tool_calls"), list), "the info that step returned does not have the list 'tool_calls'")
    for call in info["tool_calls"]:
        require(set(call) >= _CALL_KEYS, f"a call in info['tool_calls'] does not have {sorted(_CALL_KEYS - set(call))}")
        require(
            call["status"] in set(ToolStatus), f"the status of a call, {call['status']!r}, is not one of the statuses"
        )
        require(isinstance(call["injected"], bool), "the value 'injected' of a call must be a bool")
    canonical(info).encode("utf-8")  # ``info`` must not contain lone surrogates either
    if terminated or truncated:
        _check_end(terminated, float(reward), info)


def _check_end(terminated: bool, reward: float, info: Mapping[str, Any]) -> None:
    ends = _TERMINATED if terminated else _TRUNCATED
    flag = "terminated" if terminated else "truncated"
    require(info.get("end") in ends, f"{flag} with end={info.get('end')!r}; it must be one of {sorted(ends)}")
    require(isinstance(info.get("correct"), bool), "the info at the end of an episode does not have the bool 'correct'")
    require(
        "answer" in info and isinstance(info["answer"], str | None),
        "the info at the end of an episode does not have 'answer' (str or None)",
    )
    for key in ("turns", "tool_errors", "tool_calls_total", "answer_tags"):
        require(
            isinstance(info.get(key), int) and info[key] >= 0,
            f"the info at the end of an episode does not have the count {key!r}",
        )
    require(info["turns"] >= 1, "info['turns'] is 0 after a turn")
    require(info["tool_errors"] <= info["tool_calls_total"], "info counts more tool errors than calls")
    if info["end"] == "unavailable":
        require(reward == 0, f"an episode that ended with `unavailable` must have the reward 0.0, not {reward}")


def _must_refuse(env: TextEnv, when: str) -> None:
    try:
        env.step("I do not know.")
    except (EpisodeOverError, gym.error.ResetNeeded) as error:
        require("reset" in str(error), f"step {when} raises an error whose message does not mention reset: {error}")
    except Exception as error:
        raise AssertionError(
            f"step {when} must raise EpisodeOverError or ResetNeeded, not {type(error).__name__}: {error}"
        ) from error
    else:
        raise AssertionError(f"step {when} must raise EpisodeOverError")


def _play_out(env: TextEnv, turn: str = "I do not know.") -> None:
    for step in steps(env, [turn] * MAX_STEPS):
        check_step(env, step)
    require(step[2] or step[3], f"an episode continues after {MAX_STEPS} turns")


def _cpu_s(env: TextEnv, seed: int, turn: str) -> float:
    env.reset(seed=seed)
    # The garbage collector is off: in a large process, a collection would take longer than the turn.
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        env.step(turn)
        return time.thread_time() - start
    finally:
        if collecting:
            gc.enable()


def _spoil(value: Any) -> None:
    """Modify every mutable object within ``value`` in place."""
    if isinstance(value, dict):
        for item in value.values():
            _spoil(item)
        value.clear()
        value["spoiled"] = True
    elif isinstance(value, list):
        for item in value:
            _spoil(item)
        value.append("spoiled")


def check_text_env(
    env: str | TextEnv | Callable[[], TextEnv],
    *,
    actions: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check an environment against Gymnasium's API and the contract of docs/environment-contract.md. Needs no pytest.

    Args:
        env: A registered id; a function that makes a new instance; or an instance, which is made again from its spec,
            or copied if it has no spec. If ``env`` is copied, the checks may miss state that instances share.
        actions: Turns to play in addition to the check's standard turns; for example, a right answer.
        seeds: Seeds of the episodes that are played.
        skip: Names of checks to leave out; see ``rstar2_env.testing.CHECKS``.
        **options: Options of ``gym.make``, when ``env`` is an id: with ``sandbox=StubSandbox()`` no program is run.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The environment breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check.
        ConfigurationError: There is no seed, ``env`` has a wrong type, or options are given although ``env`` is not an
            id.
    """
    what, harness = harness_for(env, seeds, actions, options)
    return run_checks(what, CHECKS, harness, skip=skip, after=harness.close)
