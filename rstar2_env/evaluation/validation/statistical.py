"""Level 4, statistical: whether a policy trained on this reward would learn the task instead of an exploit.

Not covered: the difficulty for a particular model (play it with ``rstar2 eval``).
"""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

from rstar2_env.evaluation.validation.bench import Bench, BenchEpisode, deviation, mean, replayed
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.evaluation.validation.exploits import EXPLOITS, Exploit, attacks, commonest
from rstar2_env.evaluation.validation.players import PLAYERS, SKILLS, need_oracle, skilled

_GROUP = 8
_GROUPS = 6
_SURE = 3.0
"""A difference below this number of standard errors counts as chance. The number is high because many exploits are
compared."""


@check(
    4,
    demands="The full reward can be reached, and a player that knows the correct action in half of the turns "
    "earns a part of it.",
    remedy="Correct the gold answers; use problems that can be solved; if no problem is solved, reward "
    "intermediate steps.",
)
def reward_reachability(bench: Bench) -> CheckFinding:
    """Check that the full reward can be reached, and partial skill earns part of it (OpenEnv RFC 008)."""
    need_oracle(bench)
    best = bench.episodes("oracle", PLAYERS["oracle"])
    some = bench.episodes("skill 0.5", PLAYERS["skill 0.5"])
    solved = sum(played.reward >= 1 - 1e-9 for played in best) / len(best)
    figures = {"solved": round(solved, 4), "half_skilled": round(mean(some), 4)}
    if solved < 1 - bench.bounds.oracle_tolerance - 1e-9:
        unsolved = [played for played in best if played.reward < 1 - 1e-9]
        return CheckFinding(False, f"{1 - solved:.0%} of the problems cannot be solved", figures, unsolved)
    ok = any(played.reward > 0 for played in some)
    return CheckFinding(
        ok,
        "reached" if ok else "a player that knows the correct action in half of the turns earns no reward",
        figures,
        some,
    )


@check(
    4,
    demands="Players of higher skill earn more.",
    remedy="Make the reward increase with the quality of play: a policy learns only if better play earns more.",
)
def difficulty_separation(bench: Bench) -> CheckFinding:
    """Check that players of higher skill earn more (OpenEnv RFC 008)."""
    need_oracle(bench)
    ladder = {skill: bench.episodes(f"skill {skill:g}", PLAYERS[f"skill {skill:g}"]) for skill in SKILLS}
    means = {skill: mean(episodes) for skill, episodes in ladder.items()}
    figures = {f"skill {skill:g}": round(value, 4) for skill, value in means.items()}
    for lower, higher in itertools.pairwise(SKILLS):
        if means[higher] < means[lower] - _SURE * _error(ladder[higher], ladder[lower]) - 1e-9:
            return CheckFinding(
                False,
                f"the player of skill {higher:g} earns less than the player of skill {lower:g}",
                figures,
                ladder[higher],
            )
    apart = means[SKILLS[-1]] - means[SKILLS[0]]
    said = f"from {means[SKILLS[0]]:.3g} to {means[SKILLS[-1]]:.3g}"
    return CheckFinding(apart >= bench.bounds.floor_margin, said, figures, ladder[SKILLS[-1]])


@check(
    4,
    demands="Two episodes with the same start and the same turns earn the same reward, and the reward of the reference "
    "player hardly varies.",
    remedy="Remove randomness from the reward, or derive it from the seed of reset.",
)
def variance_bound(bench: Bench) -> CheckFinding:
    """Check that equal turns earn equal rewards, and the reference player's rewards hardly vary (OpenEnv RFC 008)."""
    need_oracle(bench)
    episodes = bench.episodes("oracle", PLAYERS["oracle"])
    repeated = [
        [replayed(bench.env, played.seed, played.actions).reward for _ in range(_GROUP // 2)]
        for played in episodes[: _GROUPS // 2]
    ]
    within = max((statistics.pstdev(rewards) for rewards in repeated), default=0.0)
    across = deviation(episodes)
    figures = {"within": round(within, 4), "across": round(across, 4)}
    if within > 1e-9:
        return CheckFinding(
            False,
            "episodes with the same start and the same turns earned different rewards (standard "
            f"deviation {within:.3g})",
            figures,
            episodes,
        )
    return CheckFinding(
        across <= bench.bounds.variance_tolerance, f"standard deviation {across:.3g}", figures, episodes
    )


@check(
    4,
    demands="The reward of a random player is so low that a policy can still improve.",
    remedy="Raise the difficulty; compare every score with the random baseline.",
)
def headroom(bench: Bench) -> CheckFinding:
    """Check that a random player's reward leaves room to learn; RFC 008 of OpenEnv measures this with a model."""
    episodes = bench.episodes("guesser", PLAYERS["guesser"])
    floor = mean(episodes)
    return CheckFinding(
        floor <= 1 - bench.bounds.headroom, f"random {floor:.3g}", {"random": round(floor, 4)}, episodes
    )


@check(
    4,
    demands="Rewards differ within groups of episodes that a player of medium skill plays from one start.",
    remedy="Give different rewards to better and worse episodes; a constant reward gives no advantage to train on.",
)
def training_signal(bench: Bench) -> CheckFinding:
    """Check that rewards differ within groups of episodes with the same start (advisory in OpenEnv's RFC 008)."""
    need_oracle(bench)
    player = skilled(0.5)
    groups = [
        [bench.play("skill 0.5", player, seed, draw=draw) for draw in range(_GROUP)] for seed in bench.seeds[:_GROUPS]
    ]
    lively = sum(deviation(group) > 1e-9 for group in groups) / len(groups)
    said = f"in {lively:.0%} of the {len(groups)} groups of {_GROUP} episodes, the rewards differ"
    return CheckFinding(
        lively >= bench.bounds.signal, said, {"groups": len(groups), "lively": round(lively, 4)}, groups[0]
    )


@check(
    4,
    demands="No exploit (a player that does not try to solve the problem) earns significantly more than a random "
    "player, and no wrong answer that was generated to deceive the grader earns a reward.",
    remedy="The evidence shows the rewarded answers: grade only one marked answer, from the policy's own turns.",
)
def adversarial_floor(bench: Bench) -> CheckFinding:
    """Check that no exploit earns significantly more than a random player (OpenEnv RFC 008).

    Also check that no generated wrong answer (``attacks``) earns a reward.
    """
    floor = bench.episodes("guesser", PLAYERS["guesser"])
    earned = exploited(bench)
    best = max(earned, key=lambda name: mean(earned[name]))
    figures: dict[str, Any] = {"random": round(mean(floor), 4), "best_exploit": best}
    figures["exploit"] = round(mean(earned[best]), 4)
    figures["paid"] = {name: round(mean(played), 4) for name, played in earned.items() if mean(played) > 0}
    for name in sorted(earned, key=lambda name: -mean(earned[name])):
        allowed = mean(floor) + bench.bounds.exploit_margin + _SURE * _error(earned[name], floor)
        if mean(earned[name]) > allowed + 1e-9:
            paid = [played for played in earned[name] if played.reward > 0]
            said = f"{name} ({what_it_does(bench, name)}) earns {mean(earned[name]):.3g}, random {mean(floor):.3g}"
            return CheckFinding(False, said, figures, paid)
    try:
        tallies = attacks(bench.fresh(), count=max(1, bench.plays // 4), seed=bench.seed)
    except NotApplicableError as error:
        figures["hacks"] = f"not tried: {error}"
    else:
        figures["hacks"] = {cause: tally.paid for cause, tally in tallies.items() if tally.paid}
        figures["hacks_tried"] = sum(tally.tried for tally in tallies.values())
        for cause, tally in tallies.items():
            if tally.paid:
                hack = tally.examples[0]
                return CheckFinding(
                    False,
                    f"the grader accepts wrong answers of the kind {cause}: {hack.answer!r} for the gold "
                    f"answer {hack.gold!r}",
                    figures,
                )
    return CheckFinding(
        True,
        f"the best exploit, {best}, earns {mean(earned[best]):.3g}; the random player earns {mean(floor):.3g}",
        figures,
    )


@check(
    4,
    demands="Most of the reward lies between the best exploit and the reference player.",
    remedy="Make the task harder, or prevent the exploit that the check adversarial_floor names.",
)
def gameability_gap(bench: Bench) -> CheckFinding:
    """Check that the reference player earns much more than the best exploit (OpenEnv RFC 008)."""
    need_oracle(bench)
    earned = exploited(bench)
    best = max(earned, key=lambda name: mean(earned[name]))
    gap = mean(bench.episodes("oracle", PLAYERS["oracle"])) - mean(earned[best])
    figures = {"best_exploit": best, "gap": round(gap, 4)}
    paid = [played for played in earned[best] if played.reward > 0]
    return CheckFinding(gap >= bench.bounds.gap, f"{gap:.3g} above {best}", figures, paid)


def exploited(bench: Bench) -> dict[str, list[BenchEpisode]]:
    """Return the episodes of every exploit that applies, by name; they are played once and cached."""
    found = {}
    for name, exploit in _all(bench).items():
        try:
            found[name] = bench.episodes(name, exploit.player)
        except NotApplicableError:
            continue
    return found


def what_it_does(bench: Bench, name: str) -> str:
    """Describe how an exploit plays, in a few words."""
    return _all(bench)[name].what


def _all(bench: Bench) -> dict[str, Exploit]:
    own = commonest(bench)
    return {**EXPLOITS, **({} if own is None else {"commonest": own})}


def _error(one: list[BenchEpisode], other: list[BenchEpisode]) -> float:
    """Standard error of the difference between two players' mean rewards, with their episodes paired by start."""
    pairs = [
        here.reward - there.reward
        for here, there in zip(one, other, strict=False)
        if not (here.unavailable or there.unavailable)
    ]
    return statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else 0.0
