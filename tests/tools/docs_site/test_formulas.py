"""Formulas of the documents become MathML, and nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import DOCS, ROOT

pytest.importorskip("latex2mathml", reason="needs the extra docs")
import formulas
from markdown import markdown


def html(text: str) -> str:
    return markdown(text, extensions=["tables", "formulas"])


def test_a_formula_is_mathml_and_needs_no_script() -> None:
    found = html(r"The share is $\frac{a_i}{b}$ here.")
    assert re.search(r"<math [^>]*><mrow><mfrac>.*<msub><mi>a</mi><mi>i</mi></msub>", found)
    assert "$" not in found
    assert "<script" not in found


def test_a_formula_may_go_on_in_the_next_line_and_stand_in_a_table() -> None:
    assert html("It is $a +\nb$.").count("<math") == 1
    assert html("| a | b |\n|---|---|\n| $x_1 * y$ | *z* |").count("<math") == 1


@pytest.mark.parametrize(
    ("formula", "spaces"),
    [
        (r"A \log \pi", ["0.167em", "0.167em"]),
        (r"-\log \text{ratio}", ["0", "0.167em"]),
        (r"-\min(x, 1)", ["0", "0"]),
        (r"(1 + x) \operatorname{clip}(y)", ["0.167em", "0"]),
    ],
)
def test_the_name_of_a_function_has_the_space_of_tex(formula: str, spaces: list[str]) -> None:
    found = formulas.mathml(formula)
    assert re.findall(r'[lr]space="([^"]*)"', found) == spaces
    assert re.search('form="prefix" lspace="[^"]*" rspace="[^"]*">(?:log|min|clip)</mo>', found)


@pytest.mark.parametrize(
    "text", ["`$x$`", "from $5 to $6", r"\$5 and \$6", "a$b$c", "$ x $", "$ x$", "$x $", "    $x$ in a block of code"]
)
def test_dollar_signs_that_hold_no_formula_are_left_alone(text: str) -> None:
    assert "<math" not in html(text)


@pytest.mark.parametrize("formula", ["a_b_c", r"\nosuchcommand x"])
def test_a_formula_that_cannot_be_read_is_named(formula: str) -> None:
    with pytest.raises(formulas.FormulaError, match=re.escape(formula)):
        html(f"${formula}$")


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in sorted(DOCS.rglob("*.md"))])
def test_the_formulas_of_a_page_can_be_read(page: str) -> None:
    outside = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for formula in re.findall(formulas.FORMULA, outside):
        assert formulas.mathml(formula)


@pytest.mark.parametrize("page", sorted((DOCS / "trainers").glob("*.md")), ids=lambda path: path.name)
def test_every_formula_of_a_page_of_parts_is_rendered(page: Path) -> None:
    text = page.read_text("utf-8")
    outside = re.sub(r"`[^`]*`", "", text)
    written = re.findall(formulas.FORMULA, outside)
    assert [formula for formula in written if "|" in formula] == [], "a table would divide it: write \\lvert, \\rvert"
    found = html(text)
    assert found.count("<math") == len(written)
    assert [line for line in re.sub(r"<code>.*?</code>", "", found).split("\n") if "$" in line] == []
