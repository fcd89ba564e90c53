"""docs/losses.md has every part with its options and defaults, and its numbers are those of the code."""

import json
import math
import re

import pytest
import torch
from loss_tokens import tokens
from places import DOCS

from rstar2_env.core.parts import make_part
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.mismatch import DEPTHS, mismatch, summary
from rstar2_env.trainers.slots import parts_of

PAGE = (DOCS / "losses.md").read_text("utf-8")


def tables(title):
    """Rows of the tables of a chapter, as lists of cells."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[row[0].strip(" `"), *(cell.strip() for cell in row[1:])] for row in rows]


def written(option):
    if option.required:
        return f"`{option.name}`"
    default = "none" if option.default is None else json.dumps(option.default).strip('"')
    return f"`{option.name}={default}`"


@pytest.mark.parametrize(
    ("kind", "title"), [("term", "Terms"), ("aggregation", "Aggregations"), ("correction", "Corrections")]
)
def test_every_part_is_there_with_its_options(kind, title):
    parts = {part.name: part for part in parts_of("loss") if part.kind == kind}
    listed = {row[0]: row for row in tables(title) if row[0] in parts}
    assert listed.keys() == parts.keys()
    for name, part in parts.items():
        column = listed[name][2]
        assert re.findall(r"`\w+(?:=[^`]*)?`", column.split("(")[0]) == [written(option) for option in part.options]


def test_the_surrogate_has_the_values_of_its_table():
    header = ["ρ", "A", "options", "-loss"]
    rows = tables("Terms")
    rows = rows[rows.index(header) + 2 :][:8]
    for ratio, advantage, options, value in rows:
        batch = tokens([[math.log(float(ratio))]], old=[[0.0]], advantage=[[float(advantage)]])
        loss = make_part(LOSSES, "ppo_clip" + (f":{options.strip('`')}" if options else ""))(batch)
        assert -loss.item() == pytest.approx(float(value)), (ratio, advantage, options)


def test_the_metrics_are_those_of_the_code():
    names = {
        name for row in tables("Metrics") for name in re.findall(r"[a-z_]+(?:/[a-z_0-9]+)?", row[0].replace("`", ""))
    }
    batch = tokens([[0.0]], entropy=[[1.0]], reference=[[0.0]])
    made = {name: (total.item(), count.item()) for name, (total, count) in mismatch(batch, torch.ones(1, 1)).items()}
    found = {name for name in summary(made) if name.count("/") == 1}
    for part in ("ppo_clip", "kl", "entropy", "adaptive_entropy"):
        found |= make_part(LOSSES, part).figures(batch).keys()
    assert found == names - {"metric"}
    assert all(f"`{depth}`" in PAGE or f"/{depth}`" in PAGE for depth in DEPTHS)
