"""Every row of the tables of examples in docs/verification-rules.md holds, and further examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import DOCS

from rstar2_env.dialects.base import Dialect
from rstar2_env.dialects.fenced import FencedDialect
from rstar2_env.dialects.rstar2 import Rstar2Dialect
from rstar2_env.testing.hacks import CAUSES, hacks
from rstar2_env.verification import verify, verify_response

DOCUMENTS = (DOCS / "verification-rules.md", Path(__file__).with_name("more_examples.md"))
HEADER = "| gold | answer | right | rule |"
ROW = re.compile(r"\| `(?P<gold>.+?)` \| `(?P<answer>.+?)` \| (?P<right>yes|no) \|")


def rows() -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    in_table = False
    for line in "\n\n".join(path.read_text("utf-8") for path in DOCUMENTS).splitlines():
        if line == HEADER:
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            match = ROW.match(line)
            assert match is not None, f"not a row of examples: {line}"
            gold, answer = (match[name].replace("\\|", "|") for name in ("gold", "answer"))
            found.append((gold, answer, match["right"] == "yes"))
    return found


def test_the_document_has_its_tables() -> None:
    assert len(rows()) > 100


DIALECTS = (Rstar2Dialect(), FencedDialect())


def said_in(dialect: Dialect, answer: str) -> str | None:
    """The answer that a dialect finds if a policy states an answer, in a box or in boxes of its own."""
    text = answer if "\\boxed" in answer else f"\\boxed{{{answer}}}"
    return dialect.answer([dialect.format_answer(answer) if text != answer else _around(dialect, text)])


def _around(dialect: Dialect, text: str) -> str:
    return dialect.format_answer("\0").replace("\\boxed{\0}", text)


@pytest.mark.parametrize(("gold", "answer", "right"), rows())
def test_each_documented_example_holds(gold: str, answer: str, right: bool) -> None:
    graded = {"verify": verify(gold, answer, timeout_s=10.0), "response": verify_response(gold, answer, timeout_s=10.0)}
    graded |= {dialect.name: verify(gold, said_in(dialect, answer), timeout_s=10.0) for dialect in DIALECTS}
    assert {way for way, verdict in graded.items() if verdict.correct is not right} == set()


@pytest.mark.parametrize("cause", CAUSES)
def test_no_hack_is_paid_in_any_way(cause: str) -> None:
    paid = []
    for hack in hacks([cause], count=25):
        given = {"answer": hack.answer} | {dialect.name: said_in(dialect, hack.answer) for dialect in DIALECTS}
        graded = {way: verify(hack.gold, text, question=hack.question, timeout_s=10.0) for way, text in given.items()}
        graded["response"] = verify_response(hack.gold, hack.answer, question=hack.question, timeout_s=10.0)
        paid += [(way, hack.gold, hack.answer) for way, verdict in graded.items() if verdict.correct]
    assert paid == []
