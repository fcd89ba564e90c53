"""A puzzle becomes an environment in a few lines, and refuses at once what it could not grade."""

import pickle
import sys
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest

from rstar2_env.agents.oracle import Oracle
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.dialects import make_dialect
from rstar2_env.env.family_env import environment_class
from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, PuzzleEnv, UnreadableAnswerError, knob, register
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import FAMILIES, load_problems
from rstar2_env.testing import StubSandbox, check_text_env
from rstar2_env.tools import PYTHON_TOOL_NAME
from rstar2_env.verification import Reason
from rstar2_env.worlds import PuzzleGrader

RSTAR2 = make_dialect("rstar2")
SATURN = "rstar2/Saturn-v0"


@dataclass(frozen=True)
class Reversal(Puzzle):
    """Write a word backwards: the whole of an author's file is this class and a call.

    ## Random baseline
    0.0: the word itself.
    """

    name = "reversal_of_this_test"
    random_baseline = 0.0
    length: int = knob(6, 3, 20)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        word = "".join("abcdefgh"[n] for n in rng.integers(8, size=self.length))
        return Draft(f"Write {word} backwards.", word[::-1], word, {"word": word})

    def solves(self, meta: Meta, answer: str) -> bool:
        if not answer.isalpha():
            raise UnreadableAnswerError("expected letters")
        return answer == meta["word"][::-1]

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        return str(meta["word"])


ReversalEnv = environment_class(PuzzleEnv, Reversal)


@pytest.fixture
def registered():
    register("Test/Reversal-v0", Reversal)
    yield "Test/Reversal-v0"
    gym.registry.pop("Test/Reversal-v0")
    FAMILIES._parts.pop(Reversal.name)


class TestAnAuthorsPuzzle:
    def test_is_an_environment_that_keeps_the_contract(self):
        check_text_env(ReversalEnv, actions=[RSTAR2.format_answer("abc")])

    def test_has_an_id_and_a_family_name_after_one_register(self, registered):
        assert gym.spec(registered).entry_point.endswith(":ReversalEnv")
        problem = load_problems("reversal_of_this_test:length=4", split="test")[3]
        assert play_episode(ReversalEnv(length=4), Oracle(), problem=problem).reward == 1.0

    def test_gets_the_sections_that_all_share_between_its_own(self):
        text = ReversalEnv.__doc__
        headings = [line for line in text.splitlines() if line.startswith("## ")]
        assert headings[0] == "## Random baseline"
        assert headings[-1] == "## Version history"
        assert {"## Action space", "## Observation space", "## Reward", "## Episode end", "## Information"} < set(
            headings
        )
        assert len(headings) == len(set(headings)) == 7

    def test_goes_through_pickle_with_its_environment(self):
        env = ReversalEnv(length=9)
        copy = pickle.loads(pickle.dumps(env))
        assert copy.reset(seed=4) == env.reset(seed=4)


class Undecorated(Reversal):
    """Its author forgot the decorator."""

    length: int = knob(6, 3, 20)


@dataclass(frozen=True)
class Nameless(Puzzle):
    """Its author forgot its name and its baseline."""


class TestAnAuthorsMistakes:
    def test_a_family_without_the_decorator_is_refused(self):
        with pytest.raises(ConfigurationError, match=r"put @dataclass\(frozen=True\) above it"):
            register("Test/Undecorated-v0", Undecorated)

    def test_a_family_without_a_name_or_a_baseline_is_refused(self):
        with pytest.raises(ConfigurationError, match=r"Nameless does not have .*name and random_baseline"):
            register("Test/Nameless-v0", Nameless)

    def test_a_family_inside_of_something_is_refused(self):
        @dataclass(frozen=True)
        class Inner(Reversal):
            """Inside of a function."""

        with pytest.raises(ConfigurationError, match="top level of its module"):
            register("Test/Inner-v0", Inner)


class TestKnobs:
    def test_make_the_difficulty(self):
        env = gym.make(SATURN, variables=7, clauses=40).unwrapped
        env.reset(seed=1)
        assert (env.problem.meta["variables"], len(env.problem.meta["clauses"])) == (7, 40)
        assert env.problem.id.startswith("saturn:clauses=40,variables=7/train/")

    @pytest.mark.parametrize("value", [1, 99, 2.5, "5", None, True])
    def test_out_of_range_are_refused_by_name(self, value):
        with pytest.raises(ConfigurationError, match="variables must be an integer from 2 to 20"):
            gym.make(SATURN, variables=value)

    def test_that_do_not_exist_are_refused(self):
        with pytest.raises(ConfigurationError, match="Did you mean 'variables'"):
            gym.make(SATURN, varables=5)
        with pytest.raises(ConfigurationError, match="Did you mean 'variables'"):
            load_problems("saturn:varables=5")

    def test_do_not_go_with_problems_from_elsewhere(self):
        with pytest.raises(ConfigurationError, match=r"clauses.*problems="):
            gym.make(SATURN, problems="saturn:clauses=5", clauses=6)


class TestProblemsFromElsewhere:
    def test_of_the_family_are_played(self):
        env = gym.make(SATURN, problems="saturn:clauses=7", split="test").unwrapped
        env.reset(seed=1)
        assert env.problem.id.startswith("saturn:clauses=7/test/")
        assert len(env.problem.meta["clauses"]) == 7

    @pytest.mark.parametrize(
        ("problem", "fault"),
        [
            ({"question": "What is 1+1?", "answer": "2"}, "meta is not in the format of the family"),
            ({"question": "?", "answer": "2", "variables": 2, "clauses": [[1]]}, "gold answer cannot be parsed"),
            ({"question": "?", "answer": "00", "variables": 2, "clauses": [[1]]}, "rejects the problem's gold answer"),
            (
                {"question": "?", "answer": "00", "variables": 2, "clauses": [["A"]]},
                "meta is not in the format of the family",
            ),
        ],
    )
    def test_that_could_not_be_graded_are_refused_at_reset(self, problem, fault):
        with pytest.raises(ConfigurationError, match=fault):
            gym.make(SATURN).reset(options={"problem": problem})
        with pytest.raises(ConfigurationError, match=fault):
            gym.make(SATURN, problems=[problem]).reset(seed=1)

    def test_by_an_id_of_another_split_are_refused(self):
        with pytest.raises(UnknownNameError, match="saturn/test/0"):
            gym.make(SATURN, split="test").reset(options={"problem_id": "saturn/train/0"})


class TestTurns:
    def test_without_the_tool_there_is_one_and_no_word_of_tools(self):
        env = gym.make(SATURN)
        _, info = env.reset(seed=1)
        assert info["tools"] == []
        assert "tool" not in info["system"].lower()
        *_, terminated, truncated, info = env.step(RSTAR2.format_call(PYTHON_TOOL_NAME, {"code": "1", "input": ""}))
        assert (terminated, truncated, info["end"]) == (False, True, "turns")

    def test_with_the_tool_programs_run_and_the_episode_goes_on(self):
        env = gym.make(SATURN, tool=True, sandbox=StubSandbox("10011\n"))
        _, info = env.reset(seed=1)
        assert [tool["function"]["name"] for tool in info["tools"]] == [PYTHON_TOOL_NAME]
        text, reward, terminated, truncated, info = env.step(
            RSTAR2.format_call(PYTHON_TOOL_NAME, {"code": "print(10011)", "input": ""})
        )
        assert "10011" in text
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert info["tool_calls"][0]["status"] == "ok"
        assert env.step(RSTAR2.format_answer(env.unwrapped.problem.answer))[1] == 1.0

    def test_a_step_with_a_call_checks_no_option(self):
        env = gym.make(SATURN, tool=True, sandbox=StubSandbox("1\n"))
        env.reset(seed=1)
        action = RSTAR2.format_call(PYTHON_TOOL_NAME, {"code": "print(1)", "input": ""})
        env.step(action)  # what is read once and kept, such as a lazy import, is not part of a step
        checks: list[str] = []
        modules = tuple(f"core/options/{name}.py" for name in ("declare", "rules", "targets"))

        def note(frame, event, argument):
            if event == "call" and frame.f_code.co_filename.endswith(modules):
                checks.append(frame.f_code.co_qualname)

        sys.setprofile(note)
        try:
            *_, info = env.step(action)
        finally:
            sys.setprofile(None)
        assert info["tool_calls"][0]["status"] == "ok"
        assert checks == []


class TestTheGrader:
    grade = PuzzleGrader(Reversal())
    problem = Reversal().source()[0]

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (problem.answer, Reason.EQUAL),
            (problem.answer + "a", Reason.DIFFERENT),
            ("1", Reason.UNPARSABLE_ANSWER),
            ("a" * 5000, Reason.TOO_LARGE),
        ],
    )
    def test_says_why(self, answer, reason):
        verdict = TestTheGrader.grade(self.problem, answer)
        assert (verdict.correct, verdict.reason, verdict.method) == (reason is Reason.EQUAL, reason, Reversal.name)
