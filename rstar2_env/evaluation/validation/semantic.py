"""Level 3, semantic: whether the reward is right for players that know the answer and for players that do not.

Not covered: whether the gold answer can be read somewhere (``leakage``), and whether the verifier repeats its verdicts
(``grading_again``).
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.validation.bench import Bench, BenchEpisode, mean, replayed, source_of
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.evaluation.validation.players import PLAYERS, caller, need_oracle
from rstar2_env.evaluation.validation.problems import UNREADABLE, Checker
from rstar2_env.evaluation.validation.runtime import recorded
from rstar2_env.testing.harness import canonical

_DO_NOTHING = ("silent", "empty")
_LEAKS = 2
"""A growth below this number of handles or threads does not count as a leak: a new worker or log may explain it."""


@check(
    3,
    demands="A player that knows the answer earns the full reward in every episode.",
    remedy="Correct the gold answers or the verifier; `rstar2 validate ID` without --level lists the faults of "
    "each problem.",
)
def oracle_max(bench: Bench) -> CheckFinding:
    """Check that a player that knows the answer earns the full reward (OpenEnv RFC 008)."""
    episodes = _oracle(bench)
    reached = mean(episodes)
    figures = {"oracle": round(reached, 4), "episodes": len(episodes)}
    short = [played for played in episodes if played.reward < 1 - 1e-9 or not played.last.get("correct", True)]
    if reached < 1 - bench.bounds.oracle_tolerance - 1e-9 or (short and not bench.bounds.oracle_tolerance):
        return CheckFinding(
            False,
            f"the player that knows the answer earned less than 1 in {len(short)} of {len(episodes)} episodes",
            figures,
            short,
        )
    return CheckFinding(True, f"mean reward {reached:g}", figures)


@check(
    3,
    demands="A random player earns clearly less than a player that knows the answer.",
    remedy="Make the task harder to guess, or the reward stricter; bounds.floor_margin is the required distance.",
)
def floor_gap(bench: Bench) -> CheckFinding:
    """Check that a random player earns clearly less than a player that knows the answer (OpenEnv RFC 008)."""
    top, floor = mean(_oracle(bench)), mean(bench.episodes("guesser", PLAYERS["guesser"]))
    figures = {"oracle": round(top, 4), "random": round(floor, 4)}
    said = f"random {floor:.3g}, reference {top:.3g}"
    return CheckFinding(
        floor <= top - bench.bounds.floor_margin, said, figures, bench.episodes("guesser", PLAYERS["guesser"])
    )


@check(
    3,
    demands="A wrong answer is not reported as correct, and earns almost nothing.",
    remedy="Make the grader compare the whole answer: a wrong answer that only contains the correct one must "
    "not be accepted.",
)
def canary_floor(bench: Bench) -> CheckFinding:
    """Check that a wrong answer is not reported as correct, and earns almost nothing (OpenEnv RFC 008)."""
    episodes = [played for name in ("canary", "fixed") for played in bench.episodes(name, PLAYERS[name])]
    paid = [played for played in episodes if played.correct or played.reward > bench.bounds.floor_margin]
    most = max(played.reward for played in episodes)
    said = f"{len(paid)} of {len(episodes)} wrong answers were rewarded" if paid else "no wrong answer was rewarded"
    return CheckFinding(not paid, said, {"most": most, "paid": len(paid)}, paid)


@check(
    3,
    demands="Without an answer, an episode earns no reward, whether its turns are empty or contain only text.",
    remedy="Start at a reward of 0, and grade only an answer that the policy gave.",
)
def noop(bench: Bench) -> CheckFinding:
    """Check that turns without an answer earn nothing, as in ``validate`` of the library verifiers (not in RFC 008)."""
    episodes = [played for name in _DO_NOTHING for played in bench.episodes(name, PLAYERS[name])]
    paid = [played for played in episodes if played.correct or played.reward > 0]
    said = f"{len(paid)} of {len(episodes)} episodes without an answer were rewarded"
    return CheckFinding(not paid, said, {"paid": len(paid)}, paid)


@check(
    3,
    demands="An episode that is replayed from its JSON record alone gives the same texts, rewards and info.",
    remedy="Derive everything from the seed of reset and the turns, also the results of tools (CallContext.seed).",
)
def replayability(bench: Bench) -> CheckFinding:
    """Check that replaying an episode from its JSON record alone gives the same episode (OpenEnv RFC 008)."""
    need_oracle(bench)
    episodes = bench.episodes("caller", caller, 6) + bench.episodes("noise", PLAYERS["noise"], 4)
    fresh = bench.fresh()
    for played in episodes:
        record = Episode.from_record(json.loads(json.dumps(recorded(played).record())))
        actions = [message.content for message in record.messages if message.role == "assistant"]
        again = replayed(fresh, played.seed, actions)
        if again.comparable() != played.comparable():
            return CheckFinding(False, f"seed {played.seed}: {_difference(played, again)}", evidence=[played, again])
    return CheckFinding(True, f"{len(episodes)} episodes were identical when replayed from their records")


@check(
    3,
    demands="Episodes end within the time limit, and leave no handles, threads or memory behind.",
    remedy="At the end of an episode and in close(), close everything that the episode opened, and limit the data that "
    "is kept between episodes.",
)
def resource_envelope(bench: Bench) -> CheckFinding:
    """Check that episodes end in time, and leave no handles, threads or memory behind (OpenEnv RFC 008)."""
    env = bench.fresh()
    longest = 0.0
    before = _held()
    for number, seed in enumerate(bench.seeds):
        for name in ("prober", "guesser"):
            began = time.monotonic()
            bench.play(name, PLAYERS[name], seed, env=env)
            longest = max(longest, time.monotonic() - began)
        if number == 0:
            before = _held()  # by now, resources that are opened only once are open
    grown = {name: after - before[name] for name, after in _held().items()}
    if longest > bench.bounds.episode_s:
        return CheckFinding(
            False,
            f"an episode took {longest:.0f} s; at most {bench.bounds.episode_s:g} s are allowed (bounds.episode_s)",
        )
    most = max(_LEAKS, bench.plays // 2)
    if bench.plays > _LEAKS and (left := [name for name in ("handles", "threads") if grown[name] >= most]):
        return CheckFinding(
            False, f"after {2 * bench.plays} episodes, {grown[left[0]]} {left[0]} were still open", grown
        )
    if grown["memory_mb"] > bench.bounds.memory_mb:
        return CheckFinding(
            False, f"the process grew by {grown['memory_mb']} MiB, more than bounds.memory_mb allows", grown
        )
    return CheckFinding(
        True, f"after {2 * bench.plays} episodes, no handles, threads or memory were left behind", grown
    )


@check(
    3,
    demands="For every problem, the gold answer earns 1, a changed answer earns 0, a malformed call gets its status, "
    "and repetitions give the same results.",
    remedy="`rstar2 validate ID` without --level lists every faulty problem with its fault.",
)
def problems(bench: Bench) -> CheckFinding:
    """Check that the first problems pass the four checks of ``rstar2 validate`` without a level (not in RFC 008)."""
    source = source_of(bench.env)
    if source is None:
        raise NotApplicableError("the environment does not expose a source of problems (env.unwrapped.problems)")
    checker = Checker(bench.env, bench.seed)
    faults, unreadable, number = [], 0, 0
    with suppress(IndexError):
        for number in range(bench.plays):
            for fault in checker.check(source[number]):
                unreadable += fault.check == UNREADABLE
                if fault.check != UNREADABLE:
                    faults.append(fault)
    figures = {"problems": number + 1, "faults": len(faults), UNREADABLE: unreadable}
    said = f"{faults[0].problem_id} ({faults[0].check}): {faults[0].detail}" if faults else "no problem has a fault"
    return CheckFinding(not faults, said, figures)


def _oracle(bench: Bench) -> list[BenchEpisode]:
    need_oracle(bench)
    return bench.episodes("oracle", PLAYERS["oracle"])


def _difference(one: BenchEpisode, other: BenchEpisode) -> str:
    if (one.question, canonical(one.info)) != (other.question, canonical(other.info)):
        return "the start differs"
    for number, (here, there) in enumerate(zip(one.turns, other.turns, strict=False), 1):
        if here.comparable() != there.comparable():
            return f"turn {number} differs"
    return f"one play had {len(one.turns)} turns, and its repetition had {len(other.turns)}"


def _held() -> dict[str, int]:
    """Return the ``handles``, ``threads`` and ``memory_mb`` (resident, MiB) of this process; 0 if unknown."""
    handles = memory = 0
    with suppress(OSError):
        handles = len(os.listdir("/proc/self/fd"))
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    return {"handles": handles, "threads": threading.active_count(), "memory_mb": memory}
