"""Every metric that a run can write is in the table, with a unit, a meaning and a range or the checks that judge it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.metric_table import METRICS, metric_of
from rstar2_env.diagnosis.metrics import Metric, checks_of
from rstar2_env.evaluation.figures.summary import summarize

ALL = [metric for group in METRICS.values() for metric in group]
EVALUATED = {"held_out_falls", "reward_exploited"}
TRAINERS = ROOT / "trainers"
OF_OTHERS = {"trainers/prove", "trainers/plan", "trainers/launch"}
"""Folders that write reports, but no metrics of a run."""


def text_of(node: ast.expr | None) -> str | None:
    """A text of the code; a value at its end becomes ``X``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant) and len(node.values) == 2:
        return f"{node.values[0].value!s}X"
    return None


def written(path: Path) -> Iterator[str]:
    """The names of metrics in a file: added to sums, set in a mapping, or keys of what a method ``figures`` returns.

    Names with a value in them, apart from those of samplers, are looked up by the tests of what makes them.
    """
    prefix = "sampler/" if path.parent.name == "samplers" else ""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        keys: list[ast.expr | None] = []
        match node:
            case ast.Call(func=ast.Attribute(attr="add"), args=[key, _, *_]):
                keys = [key]
            case ast.Call(func=ast.Name(id="measured"), args=[key, *_]):
                keys = [key]
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(text)) as key)]) if "/" in text:
                keys = [key]
            case ast.FunctionDef(name="figures"):
                keys = [key for part in ast.walk(node) if isinstance(part, ast.Dict) for key in part.keys]
                keys += [part.key for part in ast.walk(node) if isinstance(part, ast.DictComp)]
        texts = [found for key in keys if (found := text_of(key)) and (prefix or "X" not in found)]
        yield from (f"{prefix}{name}" for name in texts if re.fullmatch(r"[a-z_]+(?:/[a-zX_]+)*", name))


def test_every_name_that_the_code_of_training_writes_is_in_the_table() -> None:
    names = {
        (name, path.relative_to(ROOT).as_posix())
        for path in TRAINERS.rglob("*.py")
        if not any(path.is_relative_to(ROOT / folder) for folder in OF_OTHERS)
        for name in written(path)
    }
    assert len({name for name, _ in names}) > 50
    assert {"loss", "seconds/tool", "kl", "teacher_kl", "sampler/share/X", "memory/peak_gib"} <= {
        name for name, _ in names
    }
    assert [one for one in sorted(names) if metric_of(one[0]) is None] == []


def test_every_figure_of_an_evaluation_is_in_the_table() -> None:
    figures = summarize(
        [Episode(problem_id="a", end="answered", statuses=[ToolStatus.OK], rewards={"format": 1.0})]
    ).figures()
    assert len(figures) > 15
    assert [name for name in figures if metric_of(f"eval/{name}") is None] == []


def test_every_metric_has_a_unit_a_meaning_and_a_range_or_checks() -> None:
    assert [one.names for one in ALL if not one.unit or not one.meaning.endswith(".")] == []
    assert [one.names for one in ALL if not one.healthy.endswith(".") and not checks_of(one)] == []


def test_a_name_belongs_to_one_metric() -> None:
    names = [name for one in ALL for name in one.names]
    assert [name for name in names if sum(one.matches(name) for one in ALL) != 1] == []


def test_every_check_that_a_metric_names_exists() -> None:
    assert {name for one in ALL for name in one.checks} <= set(CHECKS.names())


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        ("rollout/pass_rate", {*EVALUATED, "curriculum_still", "lengths_collapse", "lengths_explode"}),
        ("groups/signal", {"all_rejected", "all_right", "all_unavailable", "all_wrong", "few_signals"}),
        ("groups/none_correct", {"all_wrong"}),
        ("tokens/trained", {"gradient_zero"}),
        ("seconds/rollout", {"throughput_falls"}),
        ("speed/generated_tokens_per_second", {"throughput_falls"}),
        ("policy/entropy", {"entropy_collapsed", "entropy_exploded"}),
        ("clip/high", {"clip_always", "clip_never"}),
        ("rollout/end/time", {"cut_by_time", "cut_by_tokens", "cut_by_turns"}),
        ("eval/repetition", {"repetition"}),
        ("seconds/wait", set()),
    ],
)
def test_the_checks_of_a_metric_are_those_that_read_it(name: str, checks: set[str]) -> None:
    metric = metric_of(name)
    assert metric is not None
    assert {one.name for one in checks_of(metric)} == checks


def test_a_word_in_capitals_stands_for_any_text() -> None:
    metric = Metric(("rollout/status/NAME",), "share", "Calls.")
    assert metric.matches("rollout/status/syntax_error")
    assert not metric.matches("rollout/status/")
    assert not metric.matches("kept/status/ok")
