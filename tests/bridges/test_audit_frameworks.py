"""``rstar2 audit`` of scorers of Inspect and of tasks of lm-eval."""

from __future__ import annotations

import json

import pytest

from rstar2_env.evaluation.audit import audit

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


def scorer(name, folder):
    (folder / "scorers.py").write_text(SCORERS)
    return audit(f"inspect:{folder}/scorers.py:{name}", golds=("integers", "words"), timeout_s=20)


def test_a_scorer_that_searches_the_answer_in_the_text_is_found(tmp_path):
    report = scorer("faulty", tmp_path)
    assert report.kind == "a scorer of Inspect"
    assert report.versions["inspect-ai"].startswith("0.3")
    assert report.of("paid"), report.causes


def test_a_scorer_that_compares_the_whole_answer_is_not_accused(tmp_path):
    report = scorer("sound", tmp_path)
    assert report.findings == []
    assert report.score.value == 1.0


def test_a_stock_scorer_of_inspect_pays_a_text_with_several_answers():
    report = audit("inspect:inspect_ai.scorer:includes", golds=("words",), timeout_s=20)
    assert report.of("paid"), report.causes


@pytest.fixture
def task(tmp_path):
    """Audits a task of lm-eval in a folder of its own."""
    rows = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(11, 19)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rules.py").write_text(LM_EVAL_RULES)
    for name, scored in SCORED.items():
        (tmp_path / f"{name}.yaml").write_text(TASK.format(name=f"sums_{name}", scored=scored))
    return lambda name: audit(f"lm-eval:{tmp_path}:sums_{name}", timeout_s=20)


def test_a_task_that_searches_its_answer_in_the_text_is_found(task):
    report = task("faulty")
    assert report.kind == "a task of lm-eval"
    assert report.versions["lm-eval"].startswith("0.4")
    assert report.of("paid"), report.causes


@pytest.mark.parametrize("name", ["sound", "stock"])
def test_a_task_that_compares_the_whole_answer_is_not_accused(task, name):
    report = task(name)
    assert [finding for finding in report.findings if finding.kind in ("paid", "exploit", "writable")] == []
