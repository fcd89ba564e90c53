"""Claims about the levels: which checks they have, how results are told, on whose environments they work."""

from __future__ import annotations

import json

import bad_envs
import gymnasium as gym
import pytest
from bad_conduct import Endless

import rstar2_env
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.validation import Bounds, Report, Validation, validate
from rstar2_env.evaluation.validation.check import CHECKS, FAILED, LEVELS, NOT_APPLICABLE
from rstar2_env.evaluation.validation.levels import chosen_checks
from rstar2_env.problems import Problem
from rstar2_env.testing import PlainEnv
from rstar2_env.verification import Reason, Verdict

RFC_008 = {
    1: {"manifest", "timeout_ceiling", "resource_declaration", "task_distribution_pinning"},
    2: {
        "startup", "reward_well_formed", "observation_schema", "state_contract", "trajectory_record",
        "tool_declaration_accuracy", "task_declaration_accuracy", "seed_control", "episode_determinism",
        "network_policy", "host_containment", "resource_bounds", "episode_isolation", "oracle_containment",
    },
    3: {
        "oracle_max", "floor_gap", "canary_floor", "no_solution_leakage", "verifier_determinism",
        "verifier_portability", "resource_envelope", "replayability",
    },
    4: {
        "reward_reachability", "difficulty_separation", "headroom", "variance_bound", "training_signal",
        "adversarial_floor", "gameability_gap",
    },
}  # fmt: skip
CHEAP = ["manifest", "seed_control", "oracle_max"]
OWN = """
from rstar2_env import ToolEnv, GoldGrader


class Doubles(ToolEnv):
    "Doubles of a number."

    def __init__(self, **options):
        problems = [{"id": f"p{n}", "question": f"Double {n}.", "answer": str(2 * n)} for n in range(10, 40)]
        super().__init__(problems=problems, tools=[], grader=GoldGrader(), **options)
"""


def test_the_checks_bear_the_names_of_rfc_008_where_it_has_one():
    for level, names in RFC_008.items():
        assert names <= {one.name for one in CHECKS.values() if one.level == level}


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_holds_those_below_it_in_order(level):
    levels = [one.level for one in chosen_checks(level)]
    assert levels == sorted(levels)
    assert set(levels) == set(range(1, level + 1))


def test_without_a_level_it_is_what_it_was():
    found = validate(bad_envs.Sums, episodes=2, contract=False)
    assert isinstance(found, Validation)
    assert found.checked == 2
    assert rstar2_env.validate is validate


def test_every_result_says_what_is_demanded_and_a_failure_what_to_do():
    report = validate(bad_envs.PaysEcho, level=4, episodes=4, checks=["adversarial_floor", "manifest"])
    assert isinstance(report, Report)
    passed, failed = report.to_dict()["checks"]
    assert (passed["outcome"], passed["remedy"], passed["evidence"]) == ("passed", "", [])
    assert failed["outcome"] == "failed"
    assert failed["demands"] == CHECKS["adversarial_floor"].demands
    assert failed["remedy"] == CHECKS["adversarial_floor"].remedy
    assert failed["evidence"][0]["turns"][0]["reward"] == 1.0
    assert report.named("manifest").outcome == "passed"


def test_a_check_that_raises_fails(monkeypatch):
    def broken(*given, **more):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(bad_envs.Sums, "reset", broken)
    report = validate(bad_envs.Sums, level=2, episodes=2, checks=["seed_control"])
    assert not report.ok
    assert "RuntimeError: no such luck" in report.named("seed_control").said


def test_an_environment_that_never_ends_is_found_by_its_turns():
    report = validate(Endless, level=3, checks=["noop"], episodes=1, bounds={"turns": 20})
    assert "did not end within 20 turns" in report.named("noop").said
    assert Endless.answered == 20


def test_bounds_are_the_authors():
    env, check = bad_envs.Uneven, ["oracle_max"]
    assert not validate(env, level=3, checks=check, episodes=4).ok
    assert validate(env, level=3, checks=check, episodes=4, bounds={"oracle_tolerance": 1.0}).ok
    assert validate(env, level=3, checks=check, episodes=4, bounds=Bounds(oracle_tolerance=1.0)).ok
    with pytest.raises(ConfigurationError, match="oracle_tolerance"):
        validate(env, level=3, bounds={"oracle_toleranse": 1.0})


def test_an_environment_that_shows_no_answer_is_told_what_does_not_apply():
    report = validate(PlainEnv, level=4, episodes=3, contract=False, checks=[*CHEAP, "no_solution_leakage", "contract"])
    assert {result.check.name for result in report.of(NOT_APPLICABLE)} == {
        "oracle_max", "no_solution_leakage", "contract",
    }  # fmt: skip
    assert "oracle_turn()" in report.named("oracle_max").said


def test_ones_own_file_is_checked_in_another_process_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doubles.py").write_text(OWN)
    report = validate("./doubles.py:Doubles", level=3, episodes=3, checks=[*CHEAP, "verifier_determinism"])
    assert report.ok, report.to_dict()
    assert report.named("verifier_determinism").figures["in another process"] == "the same"


def test_what_no_other_process_can_make_is_said():
    def local(**options):
        return bad_envs.Sums(**options)

    report = validate(local, level=3, episodes=2, checks=["verifier_determinism"])
    assert report.ok
    assert report.named("verifier_determinism").figures["in another process"].startswith("not tried")


def test_an_answer_among_others_to_choose_from_is_no_leak():
    words = ["ape", "bee", "cat", "dog", "eel", "fox"]
    problems = [
        {"id": f"p{n}", "question": f"Which is letter {n % 6}: {', '.join(words)}?", "answer": words[n % 6]}
        for n in range(40)
    ]
    larger = [
        {"id": f"p{n}", "question": f"Which is larger: {n * 37 % 100} or {n * 53 % 100}?", "answer": str(most)}
        for n in range(1, 40)
        if (most := max(n * 37 % 100, n * 53 % 100))
    ]
    for chosen in (problems, larger):  # of the second, the first number is right half of the time
        report = validate(bad_envs.Sums, level=3, checks=["no_solution_leakage"], env_options={"problems": chosen})
        assert report.ok, report.to_dict()


class Everything:
    """Takes every answer for right."""

    def __call__(self, gold, answer, question=None):
        return Verdict(True, Reason.EQUAL, "everything")

    async def acall(self, gold, answer, question=None):
        return self(gold, answer, question)


def test_hacks_that_a_verifier_pays_are_named_by_cause():
    options = {"env_options": {"verifier": Everything()}, "bounds": {"exploit_margin": 1.0}}
    report = validate("rstar2/MathTool-v0", level=4, checks=["adversarial_floor"], episodes=4, **options)
    result = report.named("adversarial_floor")
    assert not report.ok
    assert "wrong answers of the kind echo" in result.said
    assert result.figures["hacks"]["digits"] == 1


def test_a_stop_ends_it_between_two_checks():
    stop = Stop()
    told = []

    def progress(done, total, name):
        told.append((done, total, name))
        stop.request()

    report = validate(bad_envs.Sums, level=1, checks=["manifest", "text_spaces"], progress=progress, stop=stop)
    assert told == [(0, 2, "manifest")]
    assert report.interrupted
    assert [result.check.name for result in report.results] == ["manifest"]
    assert str(report).startswith(f"{report.env_id}: interrupted (1 passed, 0 failed, 0 not applicable)\n")
    assert "<td style='text-align:left'>manifest</td>" in report._repr_html_()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigurationError, match=r"`level` must be one of 1 \(static\)"):
        validate(bad_envs.Sums, level=5)
    with pytest.raises(UnknownNameError, match="noop"):
        validate(bad_envs.Sums, level=3, checks=["noops"])
    with pytest.raises(ConfigurationError, match="require a level"):
        validate(bad_envs.Sums, checks=["noop"])


def test_the_report_goes_to_json_under_the_documented_keys():
    told = json.loads(json.dumps(validate(bad_envs.Sums, level=1, episodes=2).to_dict()))
    assert list(told) == [
        "version", "env_id", "level", "ok", "plays", "seed", "passed", "failed", "not_applicable", "checks", "seconds",
        "interrupted",
    ]  # fmt: skip
    assert list(told["checks"][0]) == [
        "name", "level", "demands", "outcome", "said", "figures", "evidence", "remedy",
    ]  # fmt: skip


class Narrow(bad_envs.Sums):
    """No space of text."""

    def __init__(self, **options):
        super().__init__(**options)
        self.observation_space = _Any()


class _Any(gym.Space):
    def contains(self, x):
        return True


class Doubled(bad_envs.Sums):
    """Two problems under one id."""

    def __init__(self, **options):
        super().__init__(problems=_Same(), **options)


class _Same:
    name, split = "same", "train"

    def __getitem__(self, index):
        return Problem("p", f"Question {index}?", str(index))

    def __iter__(self):
        return (self[index] for index in range(3))

    def get(self, problem_id):
        return self[0]

    def sample(self, rng):
        return self[int(rng.integers(3))]


class OneAtATime(bad_envs.Sums):
    """There can be one."""

    alive = 0

    def __init__(self, **options):
        if OneAtATime.alive:
            raise RuntimeError("the port is taken")
        OneAtATime.alive = 1
        super().__init__(**options)

    def close(self):
        OneAtATime.alive = 0


@pytest.mark.parametrize(
    ("env", "level", "check"), [(Narrow, 1, "text_spaces"), (Doubled, 1, "problem_ids"), (OneAtATime, 2, "startup")]
)
def test_what_the_static_checks_are_for(env, level, check):
    assert [result.check.name for result in validate(env, level=level, episodes=2, checks=[check]).of(FAILED)] == [
        check
    ]


def test_a_limit_of_steps_around_it_and_a_program_of_hours_are_found():
    gym.register("test/Limited-v0", entry_point=bad_envs.Sums, max_episode_steps=3)
    try:
        assert not validate("test/Limited-v0", level=1, episodes=1, checks=["timeout_ceiling"]).ok
    finally:
        del gym.registry["test/Limited-v0"]
    options = {"limits": {"wall_s": 7200}}
    found = validate("rstar2/MathTool-v0", level=1, episodes=1, checks=["timeout_ceiling"], env_options=options)
    assert "7200" in found.named("timeout_ceiling").said


def test_a_broken_contract_is_told_clause_by_clause():
    report = validate(bad_envs.PlaysOn, level=2, episodes=2, checks=["contract"])
    assert "end_of_episode" in report.named("contract").said
