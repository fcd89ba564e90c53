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


def test_every_metric_has_a_unit_a_meaning_and_a_healthy_range() -> None:
    assert [one.names for one in ALL if not one.unit or not one.meaning.endswith(".")] == []
    assert [one.names for one in ALL if not one.healthy.endswith(".")] == []


def test_only_a_number_of_tokens_has_no_healthy_range_and_says_what_it_depends_on() -> None:
    without = {one.names[0]: one.healthy for one in ALL if "no general range" in one.healthy.lower()}
    assert list(without) == ["tokens/computed"]
    assert all("depends on" in text for text in without.values())


@pytest.mark.parametrize(
    ("name", "check", "range_and_rule"),
    [
        ("eval/pass_rate", "held_out_falls", ("more than 0.05", "more than 5 points")),
        ("rollout/tool_error_share", "tool_fails", ("0.3 to 0.7", "30 to 70 %")),
        ("rollout/tool_error_share", "tool_fails", ("above 0.9", "more than 90 %")),
        ("rollout/tool_calls", "tool_unused", ("less than 0.05 of the level", "fewer than 5 % of the calls")),
        ("eval/repetition", "repetition", ("0.05 to 0.2", "5 to 20 %")),
        ("eval/repetition", "repetition", ("at most 0.4", "above 40 %")),
        ("eval/truncated", "cut_by_tokens", ("Above 0.25", "more than 25 %")),
        ("rollout/end/tokens", "cut_by_tokens", ("above 0.25", "more than 25 %")),
        ("rollout/tokens", "lengths_collapse", ("less than a third", "less than a third")),
        ("rollout/tokens", "lengths_explode", ("more than 3 times", "more than 3 times")),
        ("rollout/status/timeout", "status_dominates", ("at most 0.5", "more than 50 %")),
        ("groups/signal", "few_signals", ("At least 30 %", "fewer than 30 %")),
        ("groups/signal", "few_signals", ("below 20 %", "fewer than 20 %")),
        ("grad_norm", "gradient_clipped", ("at most 10 times", "more than 10 times")),
        ("weights/change", "learning_rate_low", ("1e-7 to", "less than 1e-7")),
        ("weights/change", "learning_rate_high", ("to 1e-2", "more than 1e-2")),
        ("optimizer/second_moment", "optimizer_lost", ("at least half as large", "less than half as large")),
        ("mask/turn_ends", "turn_end_untrained", ("Below 0.75", "fewer than 75 %")),
        ("policy/entropy", "entropy_collapsed", ("Below 0.05", "below 0.05 nats")),
        ("policy/entropy", "entropy_exploded", ("more than 3 times", "more than 3 times")),
        ("policy/entropy", "entropy_exploded", ("0.1 to 0.8", "0.1 to 0.8 nats")),
        ("mismatch/logp_difference", "engine_differs", ("1e-6 to 1e-4", "1e-6 to 1e-4 nats")),
        ("mismatch/logp_difference", "engine_differs", ("0.01 to 0.03", "0.01 to 0.03 nats")),
        ("clip/high", "clip_never", ("0.001 to 0.02", "0.1 to 2 %")),
        ("clip/low", "clip_always", ("at most 0.5;", "more than 50 %")),
        ("clip/low", "clip_always", ("0.6 to 0.85, at most 0.95", "60 to 85 %")),
        ("kl", "kl_runs_away", ("below 0.1", "below 0.1 nats")),
        ("seconds/share_waiting", "process_waits", ("0.05 to 0.2", "5 to 20 %")),
        ("seconds/share_waiting", "process_waits", ("at most 0.28", "more than 28 %")),
        ("speed/generated_tokens_per_second", "throughput_falls", ("At least 55 %", "below 55 %")),
    ],
)
def test_a_healthy_range_and_the_rule_of_its_check_have_the_same_bound(
    name: str, check: str, range_and_rule: tuple[str, str]
) -> None:
    metric = metric_of(name)
    assert metric is not None
    (rule,) = [one.rule for one in checks_of(metric) if one.name == check]
    assert range_and_rule[0] in metric.healthy
    assert range_and_rule[1] in rule


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
