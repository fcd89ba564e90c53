"""The numbers of docs/loss-computation.md are those of the code, and so are the metrics of parts."""

import math

import numpy as np
import pytest
import torch
from loss_tokens import tokens
from places import DOCS

from rstar2_env.core.options.parts import make_part
from rstar2_env.diagnosis.metric_table import METRICS
from rstar2_env.trainers.losses.base import AGGREGATIONS, LOSSES, Measures
from rstar2_env.trainers.losses.mismatch import DEPTHS, mismatch, summary
from rstar2_env.trainers.ranks import ONE

PAGE = (DOCS / "loss-computation.md").read_text("utf-8")


def tables(title):
    """Rows of the tables of a chapter, as lists of cells."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[row[0].strip(" `"), *(cell.strip() for cell in row[1:])] for row in rows]


def test_the_aggregations_have_the_values_of_their_table():
    lengths, groups, losses = np.array([2, 4]), np.array([0, 1]), np.array([1.0, 2.0])
    rows = tables("Aggregations")[2:]
    assert len(rows) == 5
    for name, _, value in rows:
        weights = make_part(AGGREGATIONS, name)(lengths, groups, ONE)
        assert (weights * lengths * losses).sum() == pytest.approx(float(value), abs=1e-4), name


def test_the_surrogate_has_the_values_of_its_table():
    header = ["ρ", "A", "options", "-loss"]
    rows = tables("Terms")
    rows = rows[rows.index(header) + 2 :][:8]
    for ratio, advantage, options, value in rows:
        batch = tokens([[math.log(float(ratio))]], old=[[0.0]], advantage=[[float(advantage)]])
        loss = make_part(LOSSES, "ppo_clip" + (f":{options.strip('`')}" if options else ""))(batch)
        assert -loss.item() == pytest.approx(float(value)), (ratio, advantage, options)


def test_what_is_left_of_a_gradient_is_what_the_table_says():
    rows = tables("Terms")
    at = next(number for number, row in enumerate(rows) if row[0] == "term")
    ratios = [float(cell.removeprefix("ρ =")) for cell in rows[at][1:6]]
    terms = rows[at + 2 : at + 9]
    assert terms[0][0] == "reinforce"
    assert terms[-1][0] == "vespo"
    for name, *cells in terms:
        for ratio, cell in zip(ratios, cells, strict=False):
            for advantage, left in zip((2.0, -2.0), cell.split(", "), strict=True):
                batch = tokens([[math.log(ratio)]], old=[[0.0]], sampled=[[0.0]], advantage=[[advantage]])
                make_part(LOSSES, name)(batch).sum().backward()
                assert -batch.logp.grad.item() / advantage == pytest.approx(float(left), abs=6e-4), (name, ratio)


def test_the_metrics_of_parts_are_those_of_their_table():
    titles = ("Terms of the loss", "Engine against trainer")
    names = {name for title in titles for metric in METRICS[title] for name in metric.names if "DEPTH" not in name}
    batch = tokens([[0.0]], entropy=[[1.0]], reference=[[0.0]], teacher=[[0.0]], answered=[[-1]])
    made = {name: (total.item(), count.item()) for name, (total, count) in mismatch(batch, torch.ones(1, 1)).items()}
    found = {name for name in summary(made) if name.count("/") == 1}
    batch.columns = dict.fromkeys(("clip_cov", "kl_cov", "m2po", "gvpo/distance", "off_policy"), torch.zeros(1, 1))
    for part in (make_part(LOSSES, name) for name in LOSSES):
        found |= part.figures(batch).keys() if isinstance(part, Measures) else set()
    assert found | {"mismatch/explained"} == names, "the rollouts add what a run's precision explains"
    assert all(f"`{depth}`" in (DOCS / "metrics.md").read_text("utf-8") for depth in DEPTHS)
