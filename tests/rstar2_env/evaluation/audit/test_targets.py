"""Claims about the targets of an audit."""

from __future__ import annotations

import importlib.util

import pytest

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, Rstar2Error
from rstar2_env.evaluation.audit import audit
from rstar2_env.evaluation.audit.process import AuditCall, GraderProcess
from rstar2_env.evaluation.audit.targets.resolve import KINDS, resolve_target


@pytest.fixture
def grades(tmp_path):
    """Grades (gold, answer) pairs with a target whose file has a source."""

    def grade(source, *pairs, name="grade"):
        (tmp_path / "grader.py").write_text(source)
        target = resolve_target(f"{tmp_path}/grader.py:{name}")
        with GraderProcess(target.setup, tmp_path / "work") as process:
            return target, [one.score for one in process.grade(AuditCall(*pair) for pair in pairs)]

    return grade


PAIRS = (("5", "5"), ("5", "6"))


@pytest.mark.parametrize(
    "source",
    [
        "def grade(gold, answer): return float(gold == answer and len(gold) == 1)",
        "def grade(answer, gold): return float(answer in '5' and gold == '5')",
        "def grade(x, y): return float((x, y) == ('5', '5'))",
        "def grade(x, y, /): return float((x, y) == ('5', '5'))",
        "def grade(prediction, ground_truth): return float(prediction == '5' == ground_truth)",
        "def grade(question, gold, answer): return float(question == '' and gold == answer)",
        "async def grade(gold, answer): return float(gold == answer)",
        "class grade_class:\n    def __call__(self, gold, answer): return float(gold == answer)\ngrade = grade_class()",
    ],
)
def test_a_function_gets_gold_and_answer_by_the_names_of_its_parameters(grades, source):
    assert grades(source, *PAIRS)[1] == [1.0, 0.0]


def test_names_decide_over_the_order(grades):
    _, scores = grades(
        "def grade(response, target): return float(response == 'a' and target == 'g')", ("g", "a"), ("a", "g")
    )
    assert scores == [1.0, 0.0]


@pytest.mark.parametrize("names", ["response, answer", "answer, response", "question, completion, answer"])
def test_beside_a_response_the_answer_is_the_gold(grades, names):
    said = "completion" if "completion" in names else "response"
    source = f"def grade({names}): return float(answer == 'g' and {said} == 'a')"
    assert grades(source, ("g", "a"), ("a", "g"))[1] == [1.0, 0.0]


@pytest.mark.parametrize("column", ["solution", "answer", "ground_truth"])
def test_a_reward_function_of_trl_gets_a_conversation_and_columns(grades, column):
    source = (
        f"def reward(completions, {column}, **kwargs):\n"
        f"    return [float(one[0]['content'] == gold) for one, gold in zip(completions, {column})]\n"
    )
    target, scores = grades(source, *PAIRS, name="reward")
    assert target.kind == "a TRL reward function"
    assert scores == [1.0, 0.0]


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed")
def test_a_stock_reward_of_trl_is_called_as_its_trainer_calls_it(tmp_path):
    target = resolve_target("trl.rewards:accuracy_reward")
    assert (target.kind, list(target.versions)) == ("a TRL reward function", ["trl"])
    calls = [AuditCall("5", "\\boxed{5}"), AuditCall("5", "\\boxed{6}")]
    with GraderProcess(target.setup, tmp_path, grade_timeout_s=60.0) as process:
        assert [grade.score for grade in process.grade(calls)] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def grade(text): return 1.0", "expected a function of"),
        ("def grade(gold, answer, tests): return 1.0", "also needs tests"),
        ("def grade(completions, tests): return [1.0]", "needs the columns tests"),
        ("import no_such_module", "no_such_module"),
        ("x = 1", "cannot import name 'grade'"),
    ],
)
def test_a_function_that_cannot_be_audited_is_refused_with_the_reason(grades, source, said):
    with pytest.raises(ConfigurationError, match=said):
        grades(source)


@pytest.mark.parametrize(
    ("target", "package", "extra"),
    [
        ("verifiers:gsm8k-v1", "verifiers", "verifiers"),
        ("openenv:http://127.0.0.1:1", "openenv", "openenv"),
        ("lm-eval:gsm8k", "lm_eval", "lm-eval"),
        ("inspect:inspect_ai.scorer:match", "inspect_ai", "inspect"),
    ],
)
def test_a_framework_that_is_not_installed_is_refused_with_its_extra(target, package, extra):
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(MissingExtraError, match=rf"rstar2-env\[{extra}\]"):
        resolve_target(target)


def test_a_kind_without_a_name_and_an_unknown_target_are_refused():
    for written in (*(f"{kind}:" for kind in KINDS), "rstar2/NoSuchEnv-v0", "nothing", "nemo-gym:rows.jsonl@http://x"):
        with pytest.raises(Rstar2Error):
            resolve_target(written)


def test_an_unknown_class_of_golds_is_refused():
    with pytest.raises(ConfigurationError, match="no class of gold answers named 'integer'"):
        audit("json:loads", golds=["integer"])


@pytest.mark.parametrize(
    ("written", "right", "wrong"),
    [
        ("verifier:rules", ("5", "5.0"), ("5", "6")),
        ("reward:outcome", ("5", "5.0"), ("5", "6")),
        ("rstar2/MathTool-v0", ("5", "5.0"), ("5", "6")),
    ],
)
def test_parts_of_this_package_grade_through_their_own_code(written, right, wrong, tmp_path):
    target = resolve_target(written)
    with GraderProcess(target.setup, tmp_path, grade_timeout_s=120.0) as process:
        assert [grade.score for grade in process.grade([AuditCall(*right), AuditCall(*wrong)])] == [1.0, 0.0]


def test_a_puzzle_is_audited_with_its_own_problems(tmp_path):
    target = resolve_target("rstar2/KnightsKnaves-v0")
    assert target.own_problems
    assert len(target.problems) > 10


def test_a_generator_of_reasoning_gym_is_audited_with_its_own_problems(tmp_path):
    pytest.importorskip("reasoning_gym")
    target = resolve_target("reasoning-gym:leg_counting:max_animals=4")
    question, gold = target.problems[0]
    with GraderProcess(target.setup, tmp_path, grade_timeout_s=120.0) as process:
        right, wrong = process.grade([AuditCall(gold, gold, question), AuditCall(gold, "-1", question)])
    assert right.score == 1.0
    assert wrong.score < 0.5
