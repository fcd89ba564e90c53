"""Level 2, runtime: whether episodes follow the rules that hold for every environment, whatever its task.

Not covered: access of the policy's programs to the machine (``containment``).
"""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import EpisodeOverError
from rstar2_env.core.status import ToolStatus
from rstar2_env.env.reference import playing
from rstar2_env.evaluation.validation.bench import Bench, BenchEpisode, StepRecord, TextEnv, replayed, source_of
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.evaluation.validation.players import NO_ANSWER, PLAYERS, fitting_call
from rstar2_env.problems import FiniteSource
from rstar2_env.testing.env_checks import check_text_env
from rstar2_env.testing.harness import ConformanceError, canonical, write_call

_PLAYERS = ("guesser", "noise", "prober")
"""Players of the episodes that the checks of level 2 share; none of the players needs the gold answer."""
_FEW = 6


@check(
    2,
    demands="Two instances start and close, one while the other runs.",
    remedy="Do not create anything in __init__ that only one instance at a time can have (a port, a file with a "
    "fixed name).",
)
def startup(bench: Bench) -> CheckFinding:
    """Check that two instances can run at the same time, and an instance can be closed twice (OpenEnv RFC 008)."""
    one, other = bench.make(), bench.make()
    try:
        for env in (one, other):
            env.reset(seed=bench.seed)
    finally:
        one.close()
        other.close()
    one.close()
    return CheckFinding(True, "two instances of the environment were started and closed")


@check(
    2,
    demands="Every reward is one finite number, and named components add up to it.",
    remedy="Return a float from step, and in info['reward_components'] numbers whose sum is the reward.",
)
def reward_well_formed(bench: Bench) -> CheckFinding:
    """Check that rewards are finite, and equal to the sum of their components (two checks of OpenEnv RFC 008)."""
    episodes = _episodes(bench)
    for played in episodes:
        for turn in played.turns:
            if not math.isfinite(turn.reward):
                return CheckFinding(False, f"a reward of {turn.reward}", evidence=[played])
        parts = played.last.get("reward_components")
        if parts and not math.isclose(math.fsum(parts.values()), played.reward, abs_tol=1e-6):
            return CheckFinding(
                False, f"the sum of the components {dict(parts)} is not the reward {played.reward:g}", evidence=[played]
            )
    rewards = [played.reward for played in episodes]
    return CheckFinding(True, f"{len(rewards)} episodes", {"least": min(rewards), "most": max(rewards)})


@check(
    2,
    demands="Every text is in the observation space, info can be written as JSON, and no episode is both "
    "terminated and truncated.",
    remedy="Return texts within the length of the space and JSON values in info, and never terminate and "
    "truncate at once.",
)
def observation_schema(bench: Bench) -> CheckFinding:
    """Check that observations fit their space, info is JSON, and no step terminates and truncates (OpenEnv RFC 008)."""
    space = bench.env.observation_space
    episodes = _episodes(bench)
    for played in episodes:
        for text, info in [(played.question, played.info), *((turn.text, turn.info) for turn in played.turns)]:
            if text not in space:
                return CheckFinding(False, f"the text {text!r:.80} is not in the observation space", evidence=[played])
            try:
                canonical(info)
            except (TypeError, ValueError) as error:
                return CheckFinding(False, f"info cannot be written as JSON: {error}", evidence=[played])
        if played.turns[-1].terminated and played.turns[-1].truncated:
            return CheckFinding(False, "an episode was terminated and truncated at once", evidence=[played])
    return CheckFinding(True, f"{len(episodes)} episodes")


@check(
    2,
    demands="A step outside of an episode raises an error that asks for reset, and a reset then starts an episode.",
    remedy="Raise rstar2_env.core.errors.EpisodeOverError (or gymnasium.error.ResetNeeded) from step.",
)
def state_contract(bench: Bench) -> CheckFinding:
    """Check that a step outside of an episode raises an error, and a reset then starts an episode (OpenEnv RFC 008)."""
    env = bench.fresh()
    if not _refuses(env.unwrapped):
        return CheckFinding(False, "a step before the first reset was accepted, or its error does not mention reset")
    bench.play("silent", PLAYERS["silent"], bench.seed, env=env)
    if not _refuses(env):
        return CheckFinding(False, "a step after the end was accepted, or its error does not mention reset")
    bench.play("silent", PLAYERS["silent"], bench.seed, env=env)
    return CheckFinding(True, "steps outside of an episode are refused")


@check(
    2,
    demands="The record of an episode survives a round trip through JSON unchanged.",
    remedy="Put only the keys of the contract (docs/environment-contract.md) into info, with JSON values.",
)
def trajectory_record(bench: Bench) -> CheckFinding:
    """Check that the record of an episode survives a round trip through JSON unchanged (OpenEnv RFC 008)."""
    for played in _episodes(bench):
        record = json.loads(json.dumps(recorded(played).record()))
        if json.loads(json.dumps(Episode.from_record(record).record())) != record:
            return CheckFinding(
                False, "the record of an episode changed when it was written as JSON and read back", evidence=[played]
            )
    return CheckFinding(True, "the records of the episodes did not change when they were written as JSON and read back")


@check(
    2,
    demands="Every declared tool accepts a call that fits its schema, and a call of an undeclared tool is "
    "reported as unknown.",
    remedy="Correct the schema (ToolSpec.parameters), or the arguments that the tool accepts.",
)
def tool_declaration_accuracy(bench: Bench) -> CheckFinding:
    """Check that declared tools accept valid calls, and that any other tool name is refused (OpenEnv RFC 008)."""
    env = bench.env
    seed, tools = next(
        ((seed, tools) for seed in bench.seeds if (tools := env.reset(seed=seed)[1].get("tools"))), (0, ())
    )
    if not tools:
        raise NotApplicableError("the environment declares no tools")
    statuses = {}
    for tool in tools:
        name = tool["function"]["name"]
        env.reset(seed=seed)
        statuses[name] = StepRecord.play(env, fitting_call(playing(env), tool)).status
        if statuses[name] in {ToolStatus.UNKNOWN_TOOL, ToolStatus.INVALID_ARGUMENTS, ToolStatus.MALFORMED, None}:
            return CheckFinding(False, f"a valid call of the tool {name} was reported as {statuses[name]}", statuses)
    env.reset(seed=seed)
    unknown = StepRecord.play(env, write_call(playing(env), "no_such_tool", {})).status
    if unknown not in {ToolStatus.UNKNOWN_TOOL, ToolStatus.MALFORMED, None}:
        return CheckFinding(False, f"a call of an undeclared tool was reported as {unknown}", statuses)
    return CheckFinding(True, f"{len(statuses)} tools", statuses)


@check(
    2,
    demands="A reset with the id of a problem starts with the same problem again.",
    remedy="Let reset take options={'problem_id': ...}, and put the id into its info.",
)
def task_declaration_accuracy(bench: Bench) -> CheckFinding:
    """Check that a reset with the problem id of an earlier episode begins like that episode (OpenEnv RFC 008)."""
    env = bench.env
    text, info = env.reset(seed=bench.seed)
    named = info.get("problem_id")
    if not named or source_of(env) is None:
        raise NotApplicableError(
            "info does not contain the id of a problem, or the environment does not expose a source of problems"
        )
    again, info = env.reset(seed=bench.seed + 1, options={"problem_id": named})
    return CheckFinding(again == text and info.get("problem_id") == named, f"problem {named!r} by its id")


@check(
    2,
    demands="The same seed gives the same start, also in another instance, and other seeds give other starts.",
    remedy="Draw random numbers only with self.np_random, after super().reset(seed=seed).",
)
def seed_control(bench: Bench) -> CheckFinding:
    """Check that a seed gives the same start in any instance, and starts differ between seeds (OpenEnv RFC 008)."""
    one, other = bench.env, bench.fresh()
    starts = set()
    for seed in bench.seeds:
        text, info = one.reset(seed=seed)
        for env in (one, other):
            again, told = env.reset(seed=seed)
            if (again, canonical(told)) != (text, canonical(info)):
                return CheckFinding(False, f"seed {seed} gave two different starts")
        starts.add(text)
    figures = {"seeds": bench.plays, "starts": len(starts)}
    if len(starts) == 1 and bench.plays > 1 and _many_problems(one):
        return CheckFinding(False, f"all {bench.plays} seeds gave the same start", figures)
    return CheckFinding(True, f"{bench.plays} seeds gave {len(starts)} different starts", figures)


@check(
    2,
    demands="The same seed and the same turns give the same episode, in the same instance and in another.",
    remedy="Make texts, rewards and info independent of clocks, counters and draws of random or numpy.random.",
)
def episode_determinism(bench: Bench) -> CheckFinding:
    """Check that the same seed and the same turns give the same episode in any instance (OpenEnv RFC 008)."""
    other = bench.fresh()
    episodes = _episodes(bench)
    for played in episodes:
        for where, env in (("in one instance", bench.env), ("in another instance", other)):
            if replayed(env, played.seed, played.actions).comparable() != played.comparable():
                return CheckFinding(
                    False, f"the episode of seed {played.seed}, played twice {where}, differs", evidence=[played]
                )
    return CheckFinding(True, f"{len(episodes)} episodes were identical when each was played three times")


@check(
    2,
    demands="An episode does not depend on other episodes in the same instance, whether they ran earlier, ran at "
    "the same time or were interrupted.",
    remedy="Keep the data of an episode in attributes that reset (or begin) sets again, and keep no data in the class.",
)
def episode_isolation(bench: Bench) -> CheckFinding:
    """Check that an episode does not depend on earlier, simultaneous or interrupted episodes (OpenEnv RFC 008)."""
    used, beside = bench.env, bench.fresh()
    episodes = _episodes(bench)
    for played, before in zip(episodes, [episodes[-1], *episodes[:-1]], strict=True):
        used.reset(seed=before.seed)
        used.step(before.turns[0].action)  # the rest of this episode is not played
        if replayed(used, played.seed, played.actions).comparable() != played.comparable():
            return CheckFinding(
                False,
                f"the episode of seed {played.seed} differs after other episodes in the same instance",
                evidence=[played],
            )
        if _interleaved(bench, played, before, used, beside).comparable() != played.comparable():
            return CheckFinding(
                False, f"the episode of seed {played.seed} differs while another instance plays", evidence=[played]
            )
    return CheckFinding(True, f"{len(episodes)} episodes")


@check(
    2,
    demands="An environment that is pickled in the middle of an episode continues at the same point.",
    remedy="Leave open resources (sandboxes, files, threads) out of __getstate__, and open them again when they "
    "are used.",
)
def pickled_state(bench: Bench) -> CheckFinding:
    """Check that an environment that is pickled during an episode continues at the same point (not in RFC 008).

    Vector environments and other processes require this.
    """
    played = max(_episodes(bench), key=lambda played: len(played.turns))
    env = bench.fresh()
    env.reset(seed=played.seed)
    for turn in played.turns[:-1]:
        env.step(turn.action)
    try:
        twin: TextEnv = pickle.loads(pickle.dumps(env))
    except Exception as error:
        return CheckFinding(False, f"the environment cannot be pickled: {type(error).__name__}: {str(error)[:200]}")
    try:
        last = StepRecord.play(twin, played.turns[-1].action)
    finally:
        twin.close()
    same = last.comparable() == played.turns[-1].comparable()
    return CheckFinding(same, f"after {len(played.turns) - 1} turns", evidence=[played])


@check(
    2,
    demands="The environment satisfies the whole contract of text environments (rstar2_env.testing.check_text_env).",
    remedy="The message names each violated clause of the contract; docs/environment-contract.md explains the clauses.",
)
def contract(bench: Bench) -> CheckFinding:
    """Check that the environment passes ``check_text_env``, which checks the whole contract (not in RFC 008)."""
    if not bench.contract:
        raise NotApplicableError("skipped, because the contract was excluded (--no-contract)")

    def environment() -> TextEnv:
        return bench.make()

    try:
        made = check_text_env(environment, seeds=(bench.seed, bench.seed + 1))
    except ConformanceError as error:
        return CheckFinding(False, str(error)[:2000])
    return CheckFinding(True, f"{len(made)} clauses", {"clauses": len(made)})


def recorded(played: BenchEpisode) -> Episode:
    """Return the record of an episode, as evaluation and training keep it."""
    episode = Episode(seed=played.seed).begin(played.question, played.info)
    for turn in played.turns:
        episode.step(turn.action, (turn.text, turn.reward, turn.terminated, turn.truncated, turn.info))
    return episode


def _episodes(bench: Bench) -> list[BenchEpisode]:
    return [played for name in _PLAYERS for played in bench.episodes(name, PLAYERS[name], _FEW)]


def _refuses(env: TextEnv) -> bool:
    try:
        env.step(NO_ANSWER)
    except (EpisodeOverError, gym.error.ResetNeeded) as error:
        return "reset" in str(error)
    except Exception:
        return False
    return False


def _many_problems(env: TextEnv) -> bool:
    source = source_of(env)
    return not isinstance(source, FiniteSource) or len(source) > 1


def _interleaved(
    bench: Bench, played: BenchEpisode, other: BenchEpisode, env: TextEnv, beside: TextEnv
) -> BenchEpisode:
    """Play the episode ``played`` again in ``env``, and use the environment ``beside`` before each turn.

    Each time, ``beside`` is reset to the start of the episode ``other``, and plays that episode's first turn.
    """

    def player(view: Any) -> str:
        beside.reset(seed=other.seed)
        beside.step(other.turns[0].action)
        return played.turns[view.turn].action if view.turn < len(played.turns) else NO_ANSWER

    return bench.play(played.player, player, played.seed, env=env)
