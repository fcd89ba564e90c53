"""Formulas of docstrings are readable as plain text."""

import pytest

from rstar2_env.core.formulas import plain, with_plain_formulas


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"\frac{r - \text{mean}}{\text{std} + \epsilon}", "(r - mean) / (std + epsilon)"),
        (r"\frac{4}{\tau} \operatorname{sigmoid}(\tau x) A", "4 / tau sigmoid(tau x) A"),
        (r"\frac{((R - m) - A)^2}{2 (n - 1)}", "((R - m) - A)^2 / (2 (n - 1))"),
        (r"\frac{1}{\text{rows} \cdot \text{tokens of the row}}", "1 / (rows * tokens of the row)"),
        (r"-\min(\text{ratio} \, A, 1 + \text{high})", "-min(ratio A, 1 + high)"),
        (r"\lvert\log \pi - \log \pi_\text{old}\rvert", "|log pi - log pi_old|"),
        (r"\sum_{k \ge t} \gamma^{k - t} r_k", "sum_(k >= t) gamma^(k - t) r_k"),
        (r"\sqrt{\left(1 + n_i\right)}", "sqrt((1 + n_i))"),
        (r"w^k \exp(k' (1 - w))", "w^k exp(k' (1 - w))"),
        (r"2\pi", "2 pi"),
        (r"\{0,\;1\}", "{0, 1}"),
        (r"V_{\text{old}, t + 1}", "V_(old, t + 1)"),
        (r"e^{-0.4}", "e^(-0.4)"),
    ],
)
def test_a_formula_has_a_text(formula: str, text: str) -> None:
    assert plain(formula) == text


def test_only_formulas_of_a_text_change() -> None:
    text = r"From $5 to $6, `$x$`, and $\frac{a}{b}$ where $A \ge 0$: \n."
    assert with_plain_formulas(text) == r"From $5 to $6, `$x$`, and a / b where A >= 0: \n."
