"""Claims about the pages on problems and on traces: their examples run."""

from __future__ import annotations

import re

import pytest
from places import DOCS

from rstar2_env.problems import FAMILIES, load_problems

FAMILIES_PAGE = DOCS / "problem-families.md"
TEXTS = [page.read_text("utf-8") for page in (DOCS / "problems.md", FAMILIES_PAGE, DOCS / "write-traces.md")]
EXAMPLES = [example for text in TEXTS for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_page_run(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example writes a file
    exec(compile(EXAMPLES[number], f"example {number + 1}", "exec"), {})


def test_the_example_of_a_family_is_a_family():
    if "powers" not in FAMILIES:
        exec(next(example for example in EXAMPLES if "register_problems(" in example), {})
    problem = load_problems("powers:largest=9", split="test")[4]
    assert problem.id == "powers:largest=9/test/4"
    assert str(eval(problem.meta["expression"])) == problem.answer


def test_the_sample_on_the_page_is_the_real_one():
    problem = load_problems("arithmetic:level=3")[0]
    for text in (problem.question, problem.answer, problem.meta["expression"]):
        assert text in FAMILIES_PAGE.read_text("utf-8")
