"""Claims about results in a notebook: their tables in HTML, and their plots."""

from __future__ import annotations

import html
import re

import pytest

from rstar2_env import evaluate
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.text import html_table, text_table
from rstar2_env.evaluation.suite import make_suite, run_suite

PROBLEMS = [{"question": f"{n}+1?", "answer": n + 1} for n in range(4)]


@pytest.fixture(scope="module")
def result():
    return evaluate("rstar2/MathTool-v0", "oracle", problems=PROBLEMS, n=4, k=[1, 2, 4])


def cells(page):
    return [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)]


def test_an_evaluation_has_its_rows_in_html(result):
    shown = cells(result._repr_html_())
    assert dict(zip(shown[::2], shown[1::2], strict=True)) == result.rows()
    assert result.title in html.unescape(result._repr_html_())


def test_a_plot_is_a_picture_that_shows_every_share_and_curve(result, tmp_path):
    pytest.importorskip("matplotlib")
    plot = result.plot()
    assert plot._repr_png_().startswith(b"\x89PNG")
    assert plot.save(tmp_path / "deep" / "p.png").read_bytes().startswith(b"\x89PNG")
    shares, curve = plot.figure.axes
    assert "pass rate" in [label.get_text() for label in shares.get_yticklabels()]
    assert list(curve.lines[0].get_xdata()) == [1, 2, 4]
    assert list(curve.lines[0].get_ydata()) == [1, 1, 1]


def test_a_plot_is_not_written_under_the_suffix_of_another_format(result, tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(ConfigurationError, match=r"name the file plot\.png"):
        result.plot().save(tmp_path / "plot.txt")
    assert not list(tmp_path.iterdir())


def test_one_sample_has_no_curve():
    pytest.importorskip("matplotlib")
    assert len(evaluate("rstar2/MathTool-v0", "oracle", problems=PROBLEMS).plot().figure.axes) == 1


def test_a_suite_shows_each_set_and_the_means():
    env = {"env": "rstar2/MathTool-v0", "problems": PROBLEMS}
    suite = make_suite({"agent": "oracle", "sets": {"first": env, "second": env}})
    result = run_suite(suite)
    assert "mean of the sets" in str(result)
    assert cells(result._repr_html_()).count("pass rate") == 2


def test_texts_are_escaped_and_columns_are_aligned():
    page = html_table("a<b", [("<i>", "&")], headings=("x>y", ""))
    assert "<i>" not in page
    assert "a&lt;b" in page
    assert "x&gt;y" in page
    assert text_table("t", [("a", "1"), ("long", "2")]) == "t\n  a     1\n  long  2"
