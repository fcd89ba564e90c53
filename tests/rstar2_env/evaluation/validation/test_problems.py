"""``validate`` finds what is wrong with an environment and its problems, and nothing where nothing is."""

from __future__ import annotations

import json
from types import SimpleNamespace

import gymnasium as gym
import pytest
from places import SHARED

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.progress import activities, screens
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.evaluation.validation import CHECKED, validate
from rstar2_env.problems import Problem
from rstar2_env.testing import StubSandbox, StubTool
from rstar2_env.testing.toy_env import ToyEnv
from rstar2_env.verification import Reason, Verdict

ID = "rstar2/MathTool-v0"
SHARED = SHARED / "data"
SUMS = [{"question": f"{n}+1?", "answer": n + 1} for n in range(12)]


def check(env_id=ID, **options):
    return validate(env_id, contract=False, **options)


class Lenient:
    """Takes every answer for right that holds the gold answer; and gets tired."""

    def __init__(self, tired: bool) -> None:
        self.tired = tired
        self.calls = 0

    def __call__(self, problem: Problem, answer: str) -> Verdict:
        self.calls += 1
        right = problem.answer in answer and not (self.tired and self.calls > 2)
        return Verdict(right, Reason.EQUAL if right else Reason.DIFFERENT, "lenient")


class LenientEnv(ToolEnv):
    def __init__(self, tired: bool = False, **options) -> None:
        super().__init__(problems=SUMS[:2], tools=[StubTool()], grader=Lenient(tired), **options)


class UntypedEnv(LenientEnv):
    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        for call in info["tool_calls"]:
            call["status"] = "exception"
        return text, reward, terminated, truncated, info


class Unlisted(ToyEnv):
    """Draws its problems, and shows no list of them, as another package's environment may."""

    def __init__(self, **options):
        super().__init__(**options)
        hidden = self.problems
        self.problems = SimpleNamespace(get=hidden.get, sample=hidden.sample)


@pytest.fixture
def registered():
    made = []

    def register(env):
        gym.register(f"test/{env.__name__}-v0", entry_point=env)
        made.append(f"test/{env.__name__}-v0")
        return made[-1]

    yield register
    for name in made:
        del gym.registry[name]


def test_problems_that_verify_themselves_have_no_fault():
    found = check(problems=SUMS)
    assert (found.ok, found.checked, found.faults, found.unreadable) == (True, 12, [], [])


@pytest.mark.parametrize("workers", [1, 5])
def test_a_gold_answer_that_does_not_survive_its_box_is_listed_in_order(workers):
    problems = [
        *SUMS[:3],
        {"id": "open", "question": "?", "answer": "{1"},
        {"id": "shut", "question": "?", "answer": "{3, "},
    ]
    found = check(problems=problems, workers=workers)
    assert [(fault.problem_id, fault.check) for fault in found.of("gold")] == [("open", "gold"), ("shut", "gold")]
    assert "end: no_answer" in found.of("gold")[0].detail
    assert not found.ok


def test_a_gold_answer_that_cannot_be_read_is_listed_and_is_no_fault():
    cut_off = r"\left[\begin{array}{r}3 \\ 0"
    found = check(problems=[*SUMS[:2], {"id": "cut off", "question": "?", "answer": cut_off}])
    assert found.ok
    assert [fault.problem_id for fault in found.unreadable] == ["cut off"]


def test_a_verifier_that_takes_a_corrupted_answer_is_found(registered):
    found = check(registered(LenientEnv))
    assert [fault.check for fault in found.faults] == ["corrupted", "corrupted"]
    assert "earned 1" in found.faults[0].detail


def test_a_verifier_that_changes_its_mind_is_found(registered):
    found = check(registered(LenientEnv), env_options={"tired": True}, workers=1, episodes=1)
    assert "repeated" in [fault.check for fault in found.faults]


def test_a_malformed_turn_with_another_status_is_found(registered):
    faults = check(registered(UntypedEnv)).of("malformed")
    assert len(faults) == 2
    assert "expected ['malformed']" in faults[0].detail


def test_the_split_reaches_the_environments_own_problems():
    found = check("rstar2/Game24-v0", split="test", episodes=5)
    assert (found.ok, found.split, found.checked) == (True, "test", 5)


def test_a_game_is_checked_with_its_own_reference_player():
    found = check("rstar2/TicTacToe-v0", episodes=20)
    assert (found.faults, found.checked) == ([], 20)


@pytest.mark.parametrize("env_id", ["rstar2/MathTool-v0", "rstar2/MathFence-v0"])
def test_both_dialects_pass_on_a_procedural_family(env_id):
    found = check(env_id, episodes=20)
    assert (found.ok, found.checked, found.problems) == (True, 20, "arithmetic")


def test_the_contract_is_part_of_the_report():
    found = validate(ID, episodes=1, env_options={"sandbox": StubSandbox()})
    assert "determinism" in found.contract
    assert found.breaks == ""


@pytest.mark.slow
def test_of_an_environment_without_problems_the_contract_alone_is_checked(registered):
    found = validate(registered(Unlisted))
    assert (found.breaks, found.checked, found.problems) == ("", 0, "")
    assert found.ok
    assert "determinism" in found.contract


def test_a_broken_contract_is_told(registered):
    class Loud(LenientEnv):
        def step(self, action):
            text, reward, terminated, truncated, info = super().step(action)
            return text, reward, terminated, truncated, info | {"role": ""}

    found = validate(registered(Loud), episodes=1)
    assert not found.ok
    assert "role" in found.breaks


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"episodes": 0}, "episodes"),
        ({"workers": 0}, "workers"),
        ({"env_id": Unlisted}, "Unlisted does not have problems"),
        ({"env_id": "CartPole-v1"}, "text environment"),
    ],
)
def test_options_that_do_not_fit_are_named(options, said):
    with pytest.raises(ConfigurationError, match=said):
        check(**options)


def test_what_it_prints_as_json_is_its_report():
    seen = []
    found = check(problems=SUMS, progress=lambda done, total: seen.append((done, total)))
    report = json.loads(json.dumps(found.to_dict()))
    assert report["n"] == 12
    assert {check: report[check] for check in CHECKED} == dict.fromkeys(CHECKED, 0)
    assert seen == [(n, 12) for n in range(1, 13)]


@pytest.mark.parametrize("shown", [True, False])
def test_the_progress_is_shown_and_the_result_is_a_table(shown, monkeypatch, capsys):
    monkeypatch.setattr(activities, "TICK_S", 0.0)
    monkeypatch.setattr(screens, "FIRST_LINE_S", 0.0)
    found = check(problems=SUMS, progress=shown)
    assert ("checking: 12/12 (100 %)" in capsys.readouterr().err) is shown
    assert str(found).startswith(f"{found.env_id}: all checks passed\n")
    assert "<td style='text-align:left'>12 of " in found._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("gsm8k_test", 1319), ("college_math", 1000)])
def test_whole_data_sets_pass_but_for_answers_that_cannot_be_read(name, count):
    file = SHARED / f"{name}.jsonl"
    if not file.exists():
        pytest.skip(f"{name}.jsonl is not beside the repository, under shared/data")
    found = check(problems=file)
    assert found.checked == count
    assert found.faults == []
    assert len(found.unreadable) < 0.1 * count


def test_wrappers_are_validated_with_what_they_make_of_it():
    assert validate(ToyEnv, episodes=2, wrappers=["tool_budget:calls=3"]).ok
    found = validate(ToyEnv, episodes=2, wrappers=["reward_shaping:components=answer_format,task_weight=0.5"])
    assert len(found.of("gold")) == 2
