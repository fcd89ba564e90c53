"""The labelled pairs of public test suites: how often we agree with their authors, and with whom we do not.

The labels are lenient in places; comments argue the debatable ones. The bounds here were measured, so that a change
that loses a case shows.
"""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.verification import verify_many, verify_response

# Labels that contradict a rule. 0027, 0117 and 0118 are work that was not done; 0032, 0094 and 0109 state a false
# equality; 0034 is a division that was not done; 0098 is an approximation; 0100 and 0102 leave one step of an
# inequality. 0254 is mislabelled.
DEBATABLE = {
    f"math-verify-{number}"
    for number in ("0027", "0032", "0034", "0094", "0098", "0100", "0102", "0109", "0117", "0118", "0254")
}

# Wrong labels that we refuse: no question asks for the order of 0330 and 0337, and the sets of 0493 are equal.
LABELS_WE_REFUSE = {
    "math-0330",
    "math-0337",
    "tinyv-0493",
}


def test_answers_are_graded_as_their_authors_did(labelled: list[dict[str, Any]]) -> None:
    cases = [case for case in labelled if case["level"] == "answer"]
    verdicts = verify_many([(case["gold_answer"], case["pred_answer"]) for case in cases], timeout_s=20.0)
    pairs = list(zip(cases, verdicts, strict=True))
    false_positives = {case["id"] for case, verdict in pairs if verdict.correct and not case["expected"]}
    false_negatives = [case["id"] for case, verdict in pairs if not verdict.correct and case["expected"]]
    positives = sum(case["expected"] for case in cases)
    assert false_positives == LABELS_WE_REFUSE
    wrong = false_positives.union(false_negatives)
    assert 1 - len(wrong) / len(cases) >= 0.914
    assert 1 - len(wrong - DEBATABLE - LABELS_WE_REFUSE) / len(cases) >= 0.927
    assert 1 - len(false_negatives) / positives >= 0.858


def test_hacks_are_refused_and_what_models_write_is_read(labelled2: list[dict[str, Any]]) -> None:
    verdicts = verify_many([(case["gold"], case["pred"]) for case in labelled2], timeout_s=20.0)
    pairs = list(zip(labelled2, verdicts, strict=True))
    assert [case["id"] for case, verdict in pairs if verdict.correct and not case["expected"]] == []
    assert sum(verdict.correct is case["expected"] for case, verdict in pairs) >= 0.985 * len(pairs)


def test_extraction_does_not_make_a_wrong_answer_right(labelled: list[dict[str, Any]]) -> None:
    cases = [case for case in labelled if case["level"] == "answer" and not case["expected"]]
    right = {
        case["id"]
        for case in cases
        if verify_response(case["gold_answer"], case["pred_answer"], timeout_s=20.0).correct
    }
    assert right == LABELS_WE_REFUSE


def test_math_verifys_own_cases_are_graded_as_whole_texts(labelled: list[dict[str, Any]]) -> None:
    cases = [case for case in labelled if case["id"].startswith("math-verify") and not case.get("exempt")]
    wrong = []
    for case in cases:
        options = case.get("options") or {}
        tolerance = 10.0 ** -options["precision"] if options.get("precision", 6) < 6 else None
        verdict = verify_response(
            case["gold"], case["pred"], strict=options.get("strict", True), tolerance=tolerance, timeout_s=20.0
        )
        if verdict.correct is not case["expected"]:
            wrong.append(case["id"])
    # A formula broken over lines (2), prose after the box, a pair labelled both ways, and single sentences without a
    # mark (4).
    numbers = ("0007", "0012", "0013", "0014", "0028", "0029", "0166", "0181")
    assert set(wrong) - DEBATABLE == {f"math-verify-{number}" for number in numbers}


def test_every_gold_answer_equals_itself_written_otherwise(college_golds: list[str]) -> None:
    def respelled(text: str) -> str:
        inner = text.strip().strip("$") if text.count("$") == 2 else text
        return f" {inner} ".replace("\\frac", "\\dfrac").replace("\\left(", "(").replace("\\right)", ")")

    verdicts = verify_many([(gold, respelled(gold)) for gold in college_golds], timeout_s=20.0)
    assert sum(verdict.correct for verdict in verdicts) >= 0.995 * len(college_golds)


@pytest.mark.slow
def test_no_gold_answer_equals_another_problems(college_golds: list[str]) -> None:
    step = 37
    pairs = [(gold, college_golds[(at + step) % len(college_golds)]) for at, gold in enumerate(college_golds)]
    equal = [pair for pair, verdict in zip(pairs, verify_many(pairs, timeout_s=20.0), strict=True) if verdict.correct]
    # Some problems do have the same answer: each pair that is left must say so at sight.
    assert all(one.strip("$ ") == other.strip("$ ") for one, other in equal), equal
