"""``rstar2 audit`` of scorers of Inspect and of tasks of lm-eval.

Both packages take seconds to import, in every process of an audit. So the tests grade a few answers with each target;
``test_audit_verifiers`` has whole audits.
"""

from __future__ import annotations

import json

import pytest

from rstar2_env.evaluation.audit.process import AuditCall, GraderProcess
from rstar2_env.evaluation.audit.targets.resolve import resolve_target

SCORERS = """
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer


def scoring(rule):
    async def score(state, target):
        return Score(value=CORRECT if rule(state.output.completion.strip(), target.text) else INCORRECT)

    return score


@scorer(metrics=[accuracy()])
def sound():
    return scoring(lambda said, gold: said == gold)


@scorer(metrics=[accuracy()])
def faulty():
    return scoring(lambda said, gold: gold in said)
"""
TASK = """
task: {name}
custom_dataset: !function rules.dataset
output_type: generate_until
test_split: test
doc_to_text: question
doc_to_target: answer
{scored}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""
SCORED = {
    "stock": "",
    "sound": "process_results: !function rules.sound",
    "faulty": "process_results: !function rules.faulty",
}
LM_EVAL_RULES = """
from pathlib import Path

from datasets import Dataset


def dataset(**_):
    return {"test": Dataset.from_json(str(Path(__file__).with_name("rows.jsonl")))}


def sound(doc, results):
    return {"exact_match": float(results[0].strip() == doc["answer"])}


def faulty(doc, results):
    return {"exact_match": float(doc["answer"] in results[0])}
"""


ANSWERS = ("10", "about 10", "11")


def scores(target, gold, question, folder):
    calls = [AuditCall(gold, answer, question) for answer in ANSWERS]
    with GraderProcess(target.setup, folder, grade_timeout_s=60.0) as process:
        return [grade.score for grade in process.grade(calls)]


@pytest.mark.parametrize(("name", "paid"), [("sound", [1.0, 0.0, 0.0]), ("faulty", [1.0, 1.0, 0.0])])
def test_a_scorer_of_inspect_grades_with_its_own_values(name, paid, tmp_path):
    (tmp_path / "scorers.py").write_text(SCORERS)
    target = resolve_target(f"inspect:{tmp_path}/scorers.py:{name}")
    assert target.kind == "a scorer of Inspect"
    assert target.versions["inspect-ai"].startswith("0.3")
    assert scores(target, "10", "", tmp_path) == paid


def test_a_stock_scorer_of_inspect_is_found_by_its_module(tmp_path):
    target = resolve_target("inspect:inspect_ai.scorer:includes")
    assert scores(target, "10", "", tmp_path) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "paid"), [("stock", [1.0, 0.0, 0.0]), ("sound", [1.0, 0.0, 0.0]), ("faulty", [1.0, 1.0, 0.0])]
)
def test_a_task_of_lm_eval_grades_its_own_problems(name, paid, tmp_path):
    rows = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(5, 9)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rules.py").write_text(LM_EVAL_RULES)
    (tmp_path / f"{name}.yaml").write_text(TASK.format(name=f"sums_{name}", scored=SCORED[name]))
    target = resolve_target(f"lm-eval:{tmp_path}:sums_{name}")
    assert target.kind == "a task of lm-eval"
    assert target.versions["lm-eval"].startswith("0.4")
    assert target.problems == tuple((str(at), row["answer"]) for at, row in enumerate(rows))
    assert scores(target, "10", "0", tmp_path) == paid
