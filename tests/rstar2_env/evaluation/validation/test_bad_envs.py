"""Each deliberately bad environment fails exactly where it should, and the good one nowhere."""

from __future__ import annotations

import os

import bad_envs
import pytest

from rstar2_env.evaluation.validation import validate
from rstar2_env.evaluation.validation.check import CHECKS, FAILED, NOT_APPLICABLE

ELSEWHERE = ["verifier_determinism", "verifier_portability"]
HERE = [name for name in CHECKS if name not in {"contract", *ELSEWHERE}]


def failed(env, checks, episodes=8):
    report = validate(env, level=4, episodes=episodes, checks=checks)
    return {result.check.name: result for result in report.of(FAILED)}


def test_the_good_one_passes_every_check_that_applies():
    report = validate(bad_envs.Sums, level=4, episodes=8)
    assert report.ok, [(result.check.name, result.said) for result in report.of(FAILED)]
    assert {result.check.name for result in report.of(NOT_APPLICABLE)} == {
        "resource_declaration", "network_policy", "host_containment", "resource_bounds", "oracle_containment",
    }  # fmt: skip


@pytest.mark.parametrize("env", bad_envs.BAD, ids=lambda env: env.__name__)
def test_a_bad_one_fails_exactly_where_it_should(env):
    found = failed(env, HERE, 4 if issubclass(env, bad_envs.BareProcess) else 8)
    assert set(found) == set(bad_envs.BAD[env]), [(name, result.said) for name, result in found.items()]


def test_every_check_fails_one_of_them():
    caught = set().union(*bad_envs.BAD.values(), *bad_envs.GRADED_ELSEWHERE.values())
    in_test_levels = {"text_spaces", "timeout_ceiling", "problem_ids", "startup", "contract"}
    assert set(CHECKS) - caught == in_test_levels | {"resource_declaration", "trajectory_record"}


@pytest.mark.parametrize(
    ("env", "check"),
    [(env, name) for env, names in bad_envs.GRADED_ELSEWHERE.items() for name in sorted(names)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_grader_that_is_bound_to_a_place_is_found(env, check, monkeypatch):
    monkeypatch.setenv("RSTAR2_TEST_PROCESS", str(os.getpid()))
    assert set(failed(env, [check])) == {check}


@pytest.mark.parametrize("env", [bad_envs.TimeZoneBound, bad_envs.Asserted], ids=lambda env: env.__name__)
def test_a_surrounding_is_not_taken_for_chance(env):
    assert not failed(env, ["verifier_determinism"])


@pytest.mark.parametrize(
    ("env", "exploit"),
    [
        (bad_envs.PaysEcho, "echo"),
        (bad_envs.PaysManyBoxes, "gold_then_other"),
        (bad_envs.PaysLists, "gold_in_list"),
        (bad_envs.PaysSentences, "gold_unmarked"),
        (bad_envs.PaysWrong, "gold_or_other"),
        (bad_envs.PaysToolOutput, "tool_gold"),
        (bad_envs.PaysStalling, "stall"),
        (bad_envs.PaysConstant, "always_yes"),
        (bad_envs.PaysNothing, "forged"),
        (bad_envs.LeaksInQuestion, "last_number"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_exploit_that_an_environment_pays_is_named_with_an_episode(env, exploit):
    result = failed(env, ["adversarial_floor"])["adversarial_floor"]
    assert result.figures["paid"][exploit] == 1.0
    assert result.evidence
    assert all(played.reward > 0 for played in result.evidence)


@pytest.mark.parametrize(
    ("env", "where"),
    [
        (bad_envs.LeaksInQuestion, "the text after the first 'ternal key: '"),
        (bad_envs.LeaksInInfo, "info ['record']['solution']"),
        (bad_envs.LeaksInStep, "info ['expected'][]"),
        (bad_envs.LeaksInTool, "solution is "),
    ],
    ids=lambda value: getattr(value, "__name__", "where"),
)
def test_the_place_of_a_leak_is_named(env, where, monkeypatch):
    from rstar2_env.evaluation.validation import leakage

    assert "appears in" in failed(env, ["no_solution_leakage"])["no_solution_leakage"].said  # by the marker
    monkeypatch.setattr(leakage, "marker_problem", lambda bench, seed: None)
    assert where in failed(env, ["no_solution_leakage"])["no_solution_leakage"].said  # by a fixed rule
