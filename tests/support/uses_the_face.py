"""A program that uses every name of the public face, for type checkers: they read it beside an installed wheel.

Each ``reveal_type`` stands beside the type that both checkers must name in it. It is not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, reveal_type

import numpy as np

import rstar2_env
from rstar2_env import (
    Agent,
    CallContext,
    ConfigurationError,
    Draft,
    Ended,
    Episode,
    FunctionTool,
    Game,
    GameEnv,
    GoesOn,
    GoldGrader,
    IllegalMoveError,
    Job,
    Limits,
    NotebookTool,
    Problem,
    ProceduralSource,
    Puzzle,
    PuzzleEnv,
    PythonTool,
    Rstar2Error,
    ToolEnv,
    ToolStatus,
    UnreadableAnswerError,
    Verdict,
    evaluate,
    knob,
    load_problems,
    make_agent,
    make_env,
    make_sandbox,
    play_episode,
    read_run,
    register_agent,
    register_dialect,
    register_env,
    register_problems,
    register_reward,
    register_sandbox,
    register_verifier,
    register_wrapper,
    validate,
    verify,
)
from rstar2_env.trainers import make as make_trainer


def draw(rng: np.random.Generator) -> Draft:
    n = int(rng.integers(2, 100))
    return Draft(f"Twice {n}?", str(2 * n), key=str(n))


def dice(sides: int, context: CallContext) -> int:
    """Throw one die of so many sides."""
    return 1 + context.seed % sides


def grade(problem: Problem, answer: str) -> Verdict:
    verdict = verify(problem.answer, answer)
    reveal_type(verdict)  # Verdict
    return verdict


class TwiceEnv(ToolEnv):
    def __init__(self, *, split: str = "train", **options: Any) -> None:
        super().__init__(
            problems=ProceduralSource("twice", draw, split),
            tools=[FunctionTool(dice), PythonTool(), NotebookTool()],
            grader=grade,
            **options,
        )

    def answer_turn(self, turn: str) -> Ended | GoesOn:
        ended = super().answer_turn(turn)
        return ended if isinstance(ended, Ended) and ended.correct else GoesOn("Once more.")


@dataclass(frozen=True)
class Echo(Puzzle):
    name = "echo"
    random_baseline = 0.0
    length: int = knob(6, 3, 20)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        reveal_type(self.length)  # int
        return draw(rng)

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        if not answer:
            raise UnreadableAnswerError("expected a word")
        return True

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        return "a"


def stones(stones_game: type[Game]) -> type[GameEnv]:
    try:
        return register_env("mine/Stones-v0", stones_game)
    except IllegalMoveError as error:
        reveal_type(error.status)  # str
        raise


class Silent:
    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None: ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        return "nothing"


agent: Agent = Silent()
register_agent("silent", Silent)
reveal_type(make_agent("silent"))  # Agent
reveal_type(register_env("mine/Twice-v0", TwiceEnv))  # TwiceEnv
puzzle_env: type[PuzzleEnv] = register_env("mine/Echo-v0", Echo)
reveal_type(register_dialect)  # Dialect
reveal_type(register_problems)  # ProblemSource
reveal_type(register_sandbox)  # Sandbox
reveal_type(register_reward)  # Episode
reveal_type(register_verifier)  # Verifier
reveal_type(register_wrapper)  # Env

env = make_env("mine/Twice-v0", wrappers=["tool_budget:calls=3"], max_turns=4)
reveal_type(env.reset(seed=1))  # str
reveal_type(env.unwrapped.dialect)  # Dialect
reveal_type(make_env(ToolEnv, problems="twice").unwrapped)  # ToolEnv
trainer = make_trainer("grpo", model="PATH", steps=2, selector="roc", optim={"learning_rate": 1e-5})
reveal_type(trainer.train())  # TrainResult
episode = play_episode(env, agent, seed=0, problem=load_problems("twice")[0])
reveal_type(episode)  # Episode
reveal_type(load_problems("twice"))  # ProblemSource
played: Episode = episode
reveal_type(played.reward)  # float
reveal_type(evaluate("mine/Twice-v0", "silent", episodes=3))  # EvalResult
reveal_type(validate("mine/Twice-v0"))  # Validation
reveal_type(read_run("runs/mine"))  # Run
reveal_type(read_run("runs/mine").groups(1)[0][0].episode)  # Episode
grader = GoldGrader()
reveal_type(grader)  # GoldGrader

try:
    with make_sandbox("local") as sandbox:
        reveal_type(sandbox.run(Job("6 * 7", limits=Limits(wall_s=2.0))))  # Outcome
        assert sandbox.run(Job("6 * 7")).status is ToolStatus.OK
except ConfigurationError as error:
    reveal_type(error)  # ConfigurationError
except Rstar2Error as error:
    reveal_type(error)  # Rstar2Error

reveal_type(rstar2_env.__version__)  # str
