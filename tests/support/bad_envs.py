"""Environments that are bad in one way each, for the checks of ``rstar2 validate --level``; ``Sums`` is the good one.

They are plain classes at the top of a module, so that another process can make them by name. ``BAD`` says which checks
each must fail, and no others.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace

from bad_conduct import (
    Hoards,
    LosesIds,
    NotANumber,
    NotJson,
    NotPickled,
    OneStart,
    OtherSchema,
    Overlapping,
    PlaysOn,
    Remembers,
    Restless,
    Shared,
    Undocumented,
    Unfinished,
    Unpinned,
    Unseeded,
    WrongParts,
)
from good_sums import Sums

from rstar2_env.env.turn_result import Ended
from rstar2_env.sandbox.limits import Limits
from rstar2_env.tools import FunctionTool, PythonTool


def printed(code: str, input: str = "") -> str:
    """Run a program in a process that nothing isolates."""
    command = [sys.executable, "-I", "-S", "-c", code]
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=1).stdout


class BareProcess(Sums):
    """Runs programs in a process that nothing isolates."""

    def __init__(self, **options):
        super().__init__(tools=[FunctionTool(printed)], **options)


class Labelled(PythonTool):
    """Writes the gold answer above every program."""

    owner = None

    def call(self, arguments, context):
        above = f"ANSWER = {self.owner.problem.answer!r}\n"
        return super().call({**arguments, "code": above + arguments["code"]}, context)


class LeaksInSandbox(Sums):
    """The program finds the gold answer in a variable."""

    def __init__(self, **options):
        tool = Labelled(limits=Limits(wall_s=1))
        super().__init__(tools=[tool], **options)
        tool.owner = self


class LeaksInQuestion(Sums):
    """The question ends with the answer."""

    def reset(self, **options):
        text, info = super().reset(**options)
        return f"{text}\n(internal key: {self.problem.answer})", info


class LeaksInInfo(Sums):
    """The info of reset holds the problem's record."""

    def reset(self, **options):
        text, info = super().reset(**options)
        return text, info | {"record": {"level": 1, "solution": self.problem.answer}}


class LeaksInStep(Sums):
    """The info of a turn with a call holds the answer."""

    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated, truncated, info | {"expected": [self.problem.answer]}


class LeaksInTool(Sums):
    """A tool tells the answer."""

    def __init__(self, **options):
        super().__init__(tools=[FunctionTool(self.notes, name="notes")], **options)

    def notes(self) -> str:
        """The notes."""
        return f"solution is {self.problem.answer}"


class PaysEcho(Sums):
    """Pays an answer that repeats the task."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        task = self.problem.question.partition(": ")[2]
        return Ended(ended.answer, 1.0, True) if ended.answer and task in ended.answer else ended


class PaysManyBoxes(Sums):
    """Pays if any of the marked answers is right."""

    def answer_turn(self, turn):
        boxes = re.findall(r"\\boxed\{([^{}]*)\}", turn)
        return Ended(boxes[-1], 1.0, True) if self.problem.answer in boxes else super().answer_turn(turn)


class PaysLists(Sums):
    """Pays a list that holds the answer."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return Ended(ended.answer, 1.0, True) if self.problem.answer in (ended.answer or "").split(", ") else ended


class PaysSentences(Sums):
    """Pays the answer wherever it stands in the turn."""

    def answer_turn(self, turn):
        right = self.problem.answer in re.findall(r"\d+", turn)
        return Ended(self.problem.answer, 1.0, True) if right else super().answer_turn(turn)


class PaysToolOutput(BareProcess):
    """Reads the answer from what the tool printed, too."""

    def reset(self, **options):
        self.shown = ""
        return super().reset(**options)

    def answer_turn(self, turn):
        found = self.dialect.answer([self.shown, turn])
        return Ended(found, float(found == self.problem.answer), found == self.problem.answer)

    def step(self, action):
        returned = super().step(action)
        self.shown += returned[0]
        return returned


class PaysStalling(Sums):
    """Pays an episode that used up its turns."""

    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, 1.0 if truncated else reward, terminated, truncated, info


class PaysConstant(Sums):
    """Pays "yes"."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return Ended("yes", 1.0, True) if ended.answer == "yes" else ended


class PaysNothing(Sums):
    """Pays a turn without an answer."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return Ended(None, 1.0, True, end="no_answer") if ended.answer is None else ended


class PaysWrong(Sums):
    """Pays every answer that holds the gold answer's digits."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return Ended(ended.answer, 1.0, True) if ended.answer and self.problem.answer in ended.answer else ended


class Unreachable(Sums):
    """No answer is right."""

    def answer_turn(self, turn):
        return Ended(super().answer_turn(turn).answer)


class Constant(Sums):
    """Every episode earns the same."""

    def answer_turn(self, turn):
        return Ended(super().answer_turn(turn).answer, 1.0, True)


class Guessed(Sums):
    """A random player knows everything."""

    def random_turn(self, rng):
        return self.dialect.format_answer(self.problem.answer)


class Uneven(Sums):
    """What is right earns now a third, now everything, as the problem has it."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return replace(ended, reward=ended.reward * (1.0 if int(self.problem.answer) % 2 else 0.2))


class Moody(Sums):
    """The grader throws a die with many faces, so that two grades of one answer practically never agree."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return replace(ended, reward=ended.reward * (1 - 1e-6 * random.randrange(100_000)))


class ThreadBound(Sums):
    """Grades in the main thread alone."""

    def answer_turn(self, turn):
        if threading.current_thread() is threading.main_thread():
            return super().answer_turn(turn)
        return Ended(super().answer_turn(turn).answer)


class ProcessBound(Sums):
    """Grades in the process that set a variable of its own."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return ended if os.environ.get("RSTAR2_TEST_PROCESS") == str(os.getpid()) else Ended(ended.answer)


class TimeZoneBound(Sums):
    """Grades by the time zone."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return Ended(ended.answer) if time.localtime(0).tm_gmtoff < -36_000 else ended


class Asserted(Sums):
    """Refuses wrong answers with an assert, which -O takes away."""

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        try:
            assert ended.correct
        except AssertionError:
            return Ended(ended.answer)
        return Ended(ended.answer, 1.0, True)


_UNSTEADY = {"episode_determinism", "episode_isolation", "pickled_state", "replayability", "problems"}
_BARE = {"network_policy", "host_containment", "resource_bounds", "replayability"}
_GAMED = {"adversarial_floor", "gameability_gap"}

BAD: dict[type[Sums], set[str]] = {
    BareProcess: _BARE,
    LeaksInSandbox: {"oracle_containment"},
    LeaksInQuestion: {"no_solution_leakage", *_GAMED},
    LeaksInInfo: {"no_solution_leakage"},
    LeaksInStep: {"no_solution_leakage"},
    LeaksInTool: {"no_solution_leakage"},
    PaysEcho: _GAMED,
    PaysManyBoxes: _GAMED,
    PaysLists: _GAMED,
    PaysSentences: {"canary_floor", "problems", *_GAMED},
    PaysToolOutput: {*_BARE, *_GAMED},
    PaysStalling: _GAMED,
    PaysConstant: _GAMED,
    PaysNothing: {"noop", *_GAMED},
    PaysWrong: {"canary_floor", "problems", *_GAMED},
    Unreachable: {
        "oracle_max", "floor_gap", "problems", "reward_reachability", "difficulty_separation", "training_signal",
        "gameability_gap",
    },
    Constant: {
        "floor_gap", "canary_floor", "noop", "problems", "difficulty_separation", "headroom", "training_signal",
        "gameability_gap",
    },
    Guessed: {"floor_gap", "headroom", "difficulty_separation", "training_signal"},
    Uneven: {"oracle_max", "reward_reachability", "variance_bound", "problems"},
    Restless: _UNSTEADY,
    Remembers: _UNSTEADY,
    Shared: {"episode_isolation"},
    Unfinished: {"episode_determinism", "episode_isolation", "problems"},
    Unseeded: {"seed_control", "episode_determinism", "episode_isolation", "replayability"},
    OneStart: {"seed_control"},
    NotANumber: {"reward_well_formed", "problems", "adversarial_floor"},
    WrongParts: {"reward_well_formed"},
    NotJson: {
        "observation_schema", "seed_control", "episode_determinism", "episode_isolation", "replayability",
        "no_solution_leakage",
    },
    PlaysOn: {"state_contract"},
    NotPickled: {"pickled_state"},
    Hoards: {"resource_envelope"},
    OtherSchema: {"tool_declaration_accuracy"},
    LosesIds: {"task_declaration_accuracy"},
    Overlapping: {"splits_disjoint"},
    Unpinned: {"task_distribution_pinning", "seed_control", "episode_determinism", "replayability"},
    Undocumented: {"manifest"},
}  # fmt: skip
"""What each must fail, of the checks that need no other process."""

GRADED_ELSEWHERE: dict[type[Sums], set[str]] = {
    Sums: set(),
    ThreadBound: {"verifier_determinism"},
    ProcessBound: {"verifier_determinism"},
    TimeZoneBound: {"verifier_portability"},
    Asserted: {"verifier_portability"},
    Moody: {"verifier_determinism"},
}
"""The check that must find each whose grader is bound to a place."""
