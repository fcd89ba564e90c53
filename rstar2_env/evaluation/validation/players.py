"""Scripted players of growing skill, and players that solve nothing, to test whether a reward distinguishes them.

Covered: the reference player, the random player, mixtures of the two, silence, noise, a wrong answer. Not covered:
players that try to earn reward without solving the problem (``exploits``).
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.reference import guesser_of, playing, reference_of
from rstar2_env.evaluation.play.episode import python_call
from rstar2_env.evaluation.validation.bench import Bench, ScriptedPlayer, TextEnv, View, problem_of
from rstar2_env.evaluation.validation.check import NotApplicableError
from rstar2_env.problems.perturb import changed_answer
from rstar2_env.testing.harness import typical_call

NO_ANSWER = "I do not know."
SKILLS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Skills of the mixed players: the share of turns that the reference player chooses; the other turns are random."""

_CANARY = "canary 5f1c"
_NOISE = ("<answer>", "</answer>", "\\boxed{", "}", "<tool_call>", "```", "{", "so", "thus", "the", "is", "7", "x", "=")


def oracle(view: View) -> str:
    """Play as the environment's reference player, or give the gold answer.

    Raises:
        NotApplicableError: The environment has neither a reference player nor a gold answer.
    """
    own = reference_of(playing(view.env)) or reference_of(view.env)
    if own is not None:
        return str(own())
    if view.problem is None:
        raise NotApplicableError(
            "the environment has neither a method oracle_turn() nor a problem with a gold answer "
            "(env.unwrapped.problem)"
        )
    return view.say(view.problem.answer)


def guesser(view: View) -> str:
    """Play as the environment's own random player, or answer a random number from 0 to 99."""
    own = guesser_of(view.env)
    return view.say(str(view.rng.randrange(100))) if own is None else str(own(view.draws))


def noise(view: View) -> str:
    """Write pieces of markup, such as tags, at random."""
    return " ".join(view.rng.choice(_NOISE) for _ in range(view.rng.randrange(1, 20)))


def canary(view: View) -> str:
    """Give a wrong answer: a changed gold answer, or nonsense if the environment has no single gold answer."""
    problem = view.problem
    if problem is None or reference_of(playing(view.env)) is not None:
        return view.say(_CANARY)
    return view.say(wrong(view.env, problem.answer))


def caller(view: View) -> str:
    """In the first turn, run a program with random output if a tool runs code; otherwise, play as ``oracle``."""
    if view.turn == 0 and takes_code(view):
        return code_turn(view, "import random\nprint(random.random(), hash('replay') % 1000)")
    return oracle(view)


def prober(view: View) -> str:
    """Call every tool once with the smallest arguments that fit, then end with a turn that has no answer."""
    if view.turn < len(view.tools):
        return fitting_call(playing(view.env), view.tools[view.turn])
    return NO_ANSWER


def skilled(skill: float) -> ScriptedPlayer:
    """Make a player that plays each turn like the reference player with probability ``skill``, else randomly."""

    def player(view: View) -> str:
        # The draw does not depend on the skill, so a better player knows every turn that a worse player knows.
        lot = Random(f"skill {view.seed} {view.draw} {view.turn}").random()
        return oracle(view) if lot < skill else guesser(view)

    return player


def wrong(env: TextEnv, gold: str) -> str:
    """Return a wrong answer: a changed ``gold`` if the environment grades by a gold answer, else ``({gold})+1``."""
    one_answer = isinstance(getattr(playing(env), "grader", None), GoldGrader)
    return changed_answer(gold) if one_answer else f"({gold})+1"


def takes_code(view: View) -> bool:
    """Return whether a tool of the environment runs code."""
    return view.dialect is not None and any("code" in _arguments(tool) for tool in view.tools)


def code_turn(view: View, code: str) -> str:
    """A turn that runs code in the environment's tool."""
    return python_call(view.dialect, view.tools, code)


def fitting_call(env: TextEnv, tool: Mapping[str, Any]) -> str:
    """A call of a tool with arguments that fit its schema.

    Args:
        env: The environment whose episode is running.
        tool: The schema of the tool.
    """
    dialect = getattr(env, "dialect", None)
    if dialect is not None and "code" in _arguments(tool):
        return python_call(dialect, [tool], "print(1)")  # a dialect of code fences has no other arguments
    return typical_call(env, tool)


def need_oracle(bench: Bench) -> None:
    """Check that the environment has a reference player, or a problem whose gold answer can be played.

    Raises:
        NotApplicableError: There is neither; the message states how to provide a reference player.
    """
    env = bench.env
    env.reset(seed=bench.seed)
    if reference_of(env) is None and reference_of(playing(env)) is None and problem_of(env) is None:
        raise NotApplicableError(
            "there is no reference player (a player that knows the answer): give the environment a "
            "method oracle_turn(), or a problem (env.unwrapped.problem)"
        )


def _arguments(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tool["function"]["parameters"].get("properties", {})
    return found


PLAYERS: Mapping[str, ScriptedPlayer] = MappingProxyType(
    {
        "oracle": oracle,
        "guesser": guesser,
        "silent": lambda view: NO_ANSWER,
        "empty": lambda view: "",
        "noise": noise,
        "canary": canary,
        "fixed": lambda view: view.say(_CANARY),
        "caller": caller,
        "prober": prober,
        **{f"skill {skill:g}": skilled(skill) for skill in SKILLS},
    }
)
"""Every scripted player by its name.

``silent`` writes words without an answer, ``empty`` writes nothing, ``fixed`` gives the same nonsense in every turn.
"""
