"""The tables of reading hold words and notations, never an answer of the labelled pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rstar2_env.verification.read.vocabulary import COUNTED_FILE, OPERATORS, REMARKS

TABLES = [file.read_text(encoding="utf-8").lower() for file in Path(COUNTED_FILE).parent.glob("*.txt")]
LONG_CHARS = 8
"""Shorter answers may be words of a table."""


def test_no_table_holds_an_answer_of_the_labelled_pairs(
    labelled: list[dict[str, Any]], labelled2: list[dict[str, Any]], labelled3: list[dict[str, Any]]
) -> None:
    cases = [*labelled, *labelled2, *labelled3]
    texts = {str(case.get(name, "")).lower().strip() for case in cases for name in ("gold", "pred", "answer")}
    phrases = {text for text in texts if len(text) > LONG_CHARS and " " in text}
    assert len(phrases) > 500
    assert [text for text in phrases if any(text in table for table in TABLES)] == []


def test_a_remark_changes_no_number() -> None:
    assert REMARKS.isdisjoint(OPERATORS)
    assert OPERATORS.isdisjoint(COUNTED_FILE.read_text(encoding="utf-8").split())
